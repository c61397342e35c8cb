"""Measures the prose of documentation pages.

Ignores code, tables, headings, HTML and pictures.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

_WORD = re.compile(r"[A-Za-z0-9][\w'’.,%/\-]*")
_SENTENCE = re.compile(r"(?<=[.!?])[\"”)]?\s+(?=[A-Z0-9\"“(\[])")
_ITEM = re.compile(r"(?:>\s*)?(?:[-*+]|\d+[.)])\s+(.*)")
_SKIPPED = re.compile(r"#|:::|!!!|\?\?\?|</?[A-Za-z][^>]*>?\s*$|!\[|\[!\[|\[[^\]]+\]:")
_SHOWN = (
    (re.compile(r"!\[[^\]]*\]\([^)]*\)"), ""),
    (re.compile(r"\[([^\]]*)\]\((?:[^()]|\([^)]*\))*\)"), r"\1"),
    (re.compile(r"`[^`]+`"), "CODE"),
    (re.compile(r"<[^>]+>|[*_]{2,3}"), ""),
)
HABITS = {
    "what": r"\bwhat\b(?!\s*\?)",
    "one": r"\bones?\b",
    "say or tell": r"\b(?:say|says|said|saying|tell|tells|told|telling)\b",
    "that which": r"\b(?:that|those) (?:which|of|that|who)\b",
    "stand": r"\b(?:stand|stands|stood|standing)\b",
    "nothing": r"\b(?:nothing|nobody|nowhere|no one)\b",
    "of it": r"\bof (?:it|them|those|these|which|whom|whose)\b",
    "else": r"\b(?:else|beside|anew|whoever|whatever|wherever)\b",
    "starts": r"(?:^|(?<=\. ))(?:What|Of|Whoever|Whatever|Which|Where|Whose)\b[^?\n]*(?:[.;:]|$)",
    "you": r"\b(?:you|your|yours)\b",
}


@dataclass(frozen=True)
class Prose:
    """Sentences, paragraph lengths and table words of pages."""

    sentences: tuple[str, ...]
    paragraphs: tuple[int, ...]
    table_words: int

    @property
    def words(self) -> int:
        return sum(self.lengths)

    @property
    def lengths(self) -> tuple[int, ...]:
        """Return words per sentence."""
        return tuple(_count(sentence) for sentence in self.sentences)

    @property
    def mean(self) -> float:
        return mean(self.lengths)

    @property
    def table_share(self) -> float:
        return 100 * self.table_words / (self.words + self.table_words)

    def longer_than(self, words: int) -> float:
        return 100 * sum(length > words for length in self.lengths) / len(self.lengths)

    def rate(self, habit: str) -> float:
        """Return uses of a habit per 1,000 words."""
        return 1000 * len(re.findall(HABITS[habit], "\n".join(self.sentences), re.I | re.M)) / self.words


def percentile(values: Iterable[int], share: float) -> int:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def read(*pages: Path) -> Prose:
    sentences: list[str] = []
    paragraphs: list[int] = []
    table_words = 0
    for page in pages:
        text = re.sub(r"^( *)(`{3,}).*?^\1\2", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
        table_words += sum(len(re.findall(r"[A-Za-z']+", row)) for row in re.findall(r"^\s*\|.*$", text, re.MULTILINE))
        for paragraph in _paragraphs(text):
            found = [part for part in _SENTENCE.split(paragraph) if _count(part) >= 3]
            sentences += found
            if found:
                paragraphs.append(sum(map(_count, found)))
    return Prose(tuple(sentences), tuple(paragraphs), table_words)


def _paragraphs(text: str) -> list[str]:
    paragraphs: list[list[str]] = [[]]
    for line in text.splitlines():
        stripped = line.strip()
        if not stripped or stripped.startswith("|") or _SKIPPED.match(stripped):
            paragraphs.append([])
        elif item := _ITEM.match(stripped):
            paragraphs.append([item[1]])
        else:
            paragraphs[-1].append(stripped)
    return [_plain(" ".join(lines)) for lines in paragraphs if lines]


def _plain(paragraph: str) -> str:
    for pattern, shown in _SHOWN:
        paragraph = pattern.sub(shown, paragraph)
    return " ".join(paragraph.split())


def _count(text: str) -> int:
    return len(_WORD.findall(text))


def docstrings(modules: Iterable[Path]) -> Prose:
    """Read the docstrings of modules, functions, classes and attributes."""
    texts = [
        " ".join(node.value.value.split())
        for module in modules
        for node in ast.walk(ast.parse(module.read_text(encoding="utf-8")))
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    ]
    return Prose(tuple(texts), (), 0)


_PLACEHOLDER = "X"
_CODE = re.compile(r"\\[bwsd]|\(\?|<[a-z!]|\b(?:SELECT|BEGIN|PRAGMA|INSERT|UPDATE|DELETE)\b|[{\[]\"")
"""Texts without prose: patterns, HTML, SQL, JSON."""


def literals(module: Path) -> Iterator[tuple[int, str]]:
    """Yield line and text of each sentence-like string, with ``X`` for inserted values."""
    tree = ast.parse(module.read_text(encoding="utf-8"))
    skipped: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr | ast.JoinedStr):
            skipped |= {
                id(inner) for inner in ast.walk(node) if isinstance(inner, ast.Constant) and _is_own(node, inner)
            }
    for node in ast.walk(tree):
        text = _text(node)
        if id(node) in skipped or text is None or "\n" in text.strip() or text.isupper() or _CODE.search(text):
            continue
        if len(text.split()) >= 4:
            yield node.lineno, text  # type: ignore[attr-defined]


def _is_own(node: ast.AST, inner: ast.Constant) -> bool:
    """Return whether a constant is a docstring or part of an f-string."""
    return inner in getattr(node, "values", ()) or getattr(node, "value", None) is inner


def _text(node: ast.AST) -> str | None:
    if isinstance(node, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else _PLACEHOLDER for part in node.values)
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None
