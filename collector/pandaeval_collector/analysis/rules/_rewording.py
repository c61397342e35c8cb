"""Finds requests repeated in other words or edited code, without news or with the same failure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from operator import itemgetter
from typing import Any

from pandaeval_collector.analysis.rules._canonical import (
    CODE_KEYS,
    has_outcome,
    in_arguments,
    masked_error,
    pieces,
    statements,
)
from pandaeval_collector.analysis.rules._cycles import Step
from pandaeval_collector.analysis.rules._failures import error_of, failed
from pandaeval_collector.analysis.rules._verbs import Nature, runs_code
from pandaeval_otel.model import ToolCall

_LEAST_CALLS = 3
"""Tools called less often are skipped: a single rewording is reasonable."""
UNSEEN = 0.05
"""Results with at most this share of new content, by length, have no news."""
_ALIKE, _ALIKE_UNANSWERED = 0.5, 0.75
"""Minimum shared words of the shorter request, normally and if both found nothing."""
_COMPARED = 4
"""Maximum requests of a subject that are compared with a new request: the first, and the latest."""
_SUBJECTS = 48
"""Maximum subjects that are compared with a new request: the latest."""
_STEPS = 1_000
"""Maximum calls of a trace whose requests are compared: the first."""
_LONGEST = 2000
_FAILED = "!"
"""Prefix of the reason of a failed call, among the results of calls."""
_WORD = re.compile(r"[^\W_]+")
_COSMETIC = " \t\n.,;:!?\"'`"
_FILLERS = frozenset(
    """
    a about all an and any are as at be by can do does find for from get give go have how i in info information is it
    latest list look me my of on or please search show some tell that the there this to was what when where which who
    why will with you
    """.split()  # noqa: SIM905 - a readable list of words
)
_Fixed = tuple[tuple[str, str, object], ...]
# Whether two pieces of a model's code differ only in cosmetics, and whether they failed in the same way.
_LONGEST_CODE = 20_000
"""Characters; longer code is not compared."""
_SAME = 0.7
"""The share of all names that two pieces of code must have in common."""
_FEW = 6
"""With fewer names, code must have the same names, because a changed name is a new request."""
_CONTENT = 80
"""A literal of more characters is content (a file, a patch) and compared by its words."""
_TOKEN = re.compile(
    r"(?P<text>\"\"\"[\s\S]*?\"\"\"|(?<!\\)\"(?:[^\"\\\n]|\\.)*+\")|(?P<comment>#[^\n]*)|(?P<number>\b\d[\w.]*)|(?P<name>[^\W\d]\w*)"
)
_ASIDE = re.compile(
    r"^[ \t]*(?:(?:print|console\.log|logg(?:er|ing)\.\w+|echo)\b[^()\n]*+(?:\([^()\n]*+)?+\)?[ \t]*;?"
    r"|(?:import|from)\b.*)$",
    re.MULTILINE,
)
"""A line without effect, such as a message or import."""
_CODE_WORD = re.compile(r"\w+")
_CAUSE = re.compile(r"(?<![\w.])[\w.]*(?:Error|Exception|Interrupt|Timeout)\b[ \t]*:[ \t]*\S[^\n]*")
_PLACE = re.compile(r"\bline \d+|\b0x[0-9a-fA-F]+", re.IGNORECASE)
_ERROR_END = 4_000
_FRAME = re.compile(
    r"=(?:observations?|execution logs|last output from code snippet|output|result|none|null|ok|done)?\W*",
    re.IGNORECASE,
)


class _Request:
    """A call's request: free ``texts`` and names per piece of ``code``."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.code: list[frozenset[str]] = []

    @cached_property
    def words(self) -> tuple[frozenset[str], frozenset[str]]:
        words: set[str] = set()
        names: set[str] = set()
        for place, word in (each for text in self.texts for each in enumerate(_WORD.findall(text))):
            plain = word.casefold()
            if plain[-1] in "gs":
                plain = _stem(plain)
            if plain in _FILLERS:
                continue
            words.add(plain)
            if (not word.isalpha() and any(sign.isdigit() for sign in word)) or (place and word[:1].isupper()):
                names.add(plain)
        return frozenset(words), frozenset(names)

    def alike(self, others: Sequence[_Request], least: float) -> bool:
        """Return whether similar code and ``least`` of the shorter request's words recur in a request of ``others``."""
        for other in others:
            (words, names), (others_words, others_names) = self.words, other.words
            shorter = min(len(words), len(others_words))
            if (
                names <= others_words
                and others_names <= words
                and all(map(_alike, self.code, other.code))
                and (not self.texts or (shorter > 0 and len(words & others_words) >= least * shorter))
            ):
                return True
        return False


@dataclass(slots=True)
class _Subject:
    """A topic with several wordings under a signature, and its answers. ``unread``: calls with unread answers."""

    signature: str
    turn: int
    requests: list[_Request]
    unread: list[ToolCall]
    known: set[str] = field(default_factory=set)
    empty: bool = True
    varied: bool = False

    def is_read(self) -> bool:
        for call in self.unread:
            answer_pieces = _said(call)
            if answer_pieces is None:
                return False
            self.take(answer_pieces)
        self.unread = []
        return True

    def take(self, answer_pieces: tuple[str, ...]) -> None:
        self.known.update(answer_pieces)
        self.empty = self.empty and _found_nothing(answer_pieces)


def mark_rewordings(steps: Sequence[Step]) -> None:
    """Find reworded requests without news or with the same failure; set ``stale`` and the first request's signature.

    Never raises.
    """
    counts = Counter(step.call.name for step in steps)
    subjects: dict[tuple[str, _Fixed], list[_Subject]] = {}
    for step in steps[:_STEPS]:
        if counts[step.call.name] < _LEAST_CALLS or step.signature is None:
            continue
        if _may_be_another(step.call, step.nature):
            _place(step, step.signature, subjects)


def _place(step: Step, signature: str, subjects: dict[tuple[str, _Fixed], list[_Subject]]) -> None:
    call = step.call
    if not call.has_arguments or not has_outcome(call):
        return
    request, fixed = _asked(call.arguments)
    found = subjects.setdefault((signature.rpartition("\0")[0], fixed), [])
    answer_pieces: tuple[str, ...] | None = None
    for subject in found:
        if subject.turn != step.turn or not request.alike(subject.requests, _ALIKE) or not subject.is_read():
            continue
        answer_pieces = answer_pieces or _said(call)
        if answer_pieces is None or _may_do_more(step, request, answer_pieces):
            return
        if subject.empty and _found_nothing(answer_pieces) and not request.alike(subject.requests, _ALIKE_UNANSWERED):
            continue
        _compare(step, signature, subject, answer_pieces)
        subject.take(answer_pieces)
        subject.requests.append(request)
        if len(subject.requests) > _COMPARED:
            del subject.requests[1]
        return
    found.append(_Subject(signature, step.turn, [request], [call]))
    if len(found) > _SUBJECTS:
        del found[0]


def _may_do_more(step: Step, request: _Request, answer_pieces: Sequence[str]) -> bool:
    if step.nature is not Nature.CHANGING or failed(step.call):
        return False
    return not request.code or all(map(_FRAME.fullmatch, answer_pieces))


def _compare(step: Step, signature: str, subject: _Subject, answer_pieces: Sequence[str]) -> None:
    size = sum(len(piece) + 1 for piece in answer_pieces)
    unseen = sum(len(piece) + 1 for piece in answer_pieces if piece not in subject.known)
    if not size or unseen / size <= UNSEEN:
        subject.varied = subject.varied or signature != subject.signature
        step.stale = subject.varied
        step.signature = subject.signature
    else:  # progress: later requests are compared with everything known now
        subject.signature, subject.varied = signature, False


def _may_be_another(call: ToolCall, of: Nature) -> bool:
    return of is Nature.READING or (of is Nature.CHANGING and (failed(call) or runs_code(call.name)))


def _said(call: ToolCall) -> tuple[str, ...] | None:
    return (_FAILED + _cause(error_of(call)),) if failed(call) else pieces(call.result)


def _found_nothing(answer_pieces: tuple[str, ...]) -> bool:
    empty = all(piece.endswith(("=[]", "={}", "=None", "=", "=0", "=False")) for piece in answer_pieces)
    return empty or answer_pieces[0].startswith(_FAILED)


def _stem(word: str) -> str:
    for ending, instead in (("ing", ""), ("ies", "y"), ("es", ""), ("s", "")):
        if len(word) > len(ending) + 3 and word.endswith(ending):
            return word[: -len(ending)] + instead
    return word


def _asked(arguments: Any) -> tuple[_Request, _Fixed]:
    """Split arguments into a request (free texts, names in code) and a key of everything fixed."""
    named = {"": arguments} if isinstance(arguments, str) else arguments if isinstance(arguments, dict) else {}
    request = _Request()
    fixed: list[tuple[str, str, object]] = []
    for key, value in named.items():
        name = str(key)
        if value is None or value == "" or in_arguments(name):
            continue
        if not isinstance(value, str) or len(value) > _LONGEST_CODE:
            fixed.append((name, "", _cosmetic(value)))
        elif name.lower() in CODE_KEYS and "\n" in value:
            asked, names = _sketch(statements(value))
            request.code.append(names)
            fixed.append((name, "code", asked))
        elif _is_prose(value):
            request.texts.append(value)
            fixed.append((name, "text", ""))
        else:
            fixed.append((name, "", _cosmetic(value)))
    return request, tuple(sorted(fixed, key=itemgetter(0)))


def _is_prose(text: str) -> bool:
    if not 0 < len(text) <= _LONGEST or text.lstrip()[:1] in ("{", "["):
        return False
    return len(text.split(None, 2)) >= 2 or len(_WORD.findall(text)) >= 3


def _cosmetic(value: Any) -> str:
    text = value if isinstance(value, str) else repr(value)
    return text.strip(_COSMETIC).casefold() if len(text) <= _LONGEST else text


def _sketch(statements: str) -> tuple[frozenset[str], frozenset[str]]:
    """Return numbers and short texts of code, then names, without comments, imports and printed messages."""
    asked: set[str] = set()
    names: set[str] = set()
    for token in _TOKEN.finditer(_ASIDE.sub("", statements)):
        text = token.group()
        if token.lastgroup == "comment":
            continue
        if token.lastgroup == "name":
            names.add(text)
        elif len(text) > _CONTENT:
            names.update(_CODE_WORD.findall(text))
        else:
            asked.add(text.strip('"'))
    return frozenset(asked), frozenset(names)


def _alike(names: frozenset[str], others: frozenset[str]) -> bool:
    if min(len(names), len(others)) < _FEW:
        return bool(names) and names == others
    return len(names & others) >= _SAME * len(names | others)


def _cause(text: str) -> str:
    end = text[-_ERROR_END:]
    causes = _CAUSE.findall(end)
    return _PLACE.sub("*", masked_error(causes[-1] if causes else end) or "").strip()
