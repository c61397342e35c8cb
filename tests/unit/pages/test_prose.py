"""Documentation, help, errors and docstrings use plain English."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.main import get_command

from support.commands import whole_app
from support.prose import docstrings, literals, percentile, read

ROOT = Path(__file__).parents[3]
_DOCS = ROOT / "docs"
_PAGES = [
    ROOT / "README.md",
    ROOT / "SECURITY.md",
    *(page for page in sorted(_DOCS.rglob("*.md")) if not {"internals", "reference"} & set(page.parts)),
]
_MOST = {
    "what": 3,
    "one": 5,
    "say or tell": 1,
    "that which": 0.3,
    "stand": 0.2,
    "nothing": 0.6,
    "of it": 1.2,
    "else": 0.5,
    "starts": 0.5,
}
"""Uses in 1,000 words."""
_HABITS = ("what", "one", "say or tell", "stand", "nothing")
_MOST_IN_DOCSTRINGS = {
    "pandaeval_otel": (0.2, 0.8, 0.3, 0, 0.1),
    "collector/pandaeval_collector": (0.6, 3.5, 0.5, 0.2, 0.7),
    "collector/pandaeval_lab": (0.9, 1.7, 0.8, 0.3, 0.9),
    "tests/support": (3, 7, 1.5, 0.3, 0.7),
    "tests/unit": (2.5, 7, 2.5, 0.4, 1.5),
}
"""Uses in 1,000 words, in the order of ``_HABITS``."""
_MOST_WORDS = {"README.md": 450, "index.md": 250}


def _name(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize(
    "pages", [_PAGES, [*_PAGES[:2], *sorted(_DOCS.rglob("*.md"))]], ids=["user pages", "all pages"]
)
def test_all_pages_together_meet_the_style_limits(pages: list[Path]) -> None:
    prose = read(*pages)
    assert prose.mean <= 18
    assert percentile(prose.lengths, 0.9) <= 30
    assert prose.longer_than(40) <= 3
    assert percentile(prose.paragraphs, 0.9) <= 55
    assert pages != _PAGES or prose.table_share <= 25
    assert {habit: prose.rate(habit) for habit, most in _MOST.items() if prose.rate(habit) > most} == {}
    assert prose.rate("you") >= 2


@pytest.mark.parametrize("page", _PAGES, ids=_name)
def test_each_user_page_meets_the_style_limits(page: Path) -> None:
    prose = read(page)
    assert len(page.read_text(encoding="utf-8").split()) <= _MOST_WORDS.get(page.name, 1800)
    if prose.words < 200:
        return
    assert prose.mean <= 20
    assert percentile(prose.lengths, 0.9) <= 33
    assert prose.rate("say or tell") <= 4
    assert prose.rate("what") <= 6


@pytest.mark.parametrize("page", _PAGES, ids=_name)
def test_user_pages_name_no_test_paths_dates_or_seeds(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert re.findall(r"tests/(?:unit|integration|golden|lab|e2e)[\w/.-]*", text) == []
    assert [each for each in read(page).sentences if re.search(r"\b20[23]\d-\d\d-\d\d\b|--seed\b", each)] == []


def test_a_level_of_the_navigation_has_at_most_seven_entries() -> None:
    navigation = re.search(r"^nav:\n(?: .*\n)+", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE)
    assert navigation
    levels: list[list[dict[str, Any]]] = [yaml.safe_load(navigation[0])["nav"]]
    for level in levels:
        assert len(level) <= 7
        levels += [value for entry in level for value in entry.values() if isinstance(value, list)]


def test_every_user_page_is_in_the_navigation() -> None:
    text = (ROOT / "mkdocs.yml").read_text()
    pages = [str(page.relative_to(_DOCS)) for page in _DOCS.rglob("*.md") if "internals" not in page.parts]
    assert [page for page in pages if f": {page}\n" not in text] == []


_BANNED = {
    "stand": r"\b(?:stands?|stood)\b",
    "what": r"(?:^|[.;:,] |\b(?:as|by|for|from|in|of|on|or|and|with|is|are|see|show|read) )"
    r"what (?:is|was|were|are|it|they|the|a|an|you|has|had|came|could|can|should)\b",
    "that which": r"\b(?:that|those) which\b",
    "say or tell": r"\b(?:says|tells|told)\b",
    "misread": r"\bmax risk\b|\bhold copies\b|\bgravest\b|requests, X agent traces",
}
_MOST_IN_A_SENTENCE = 25
_PROMPTS = re.compile(r"/judge/|jobs/same_cause|custom/functions|scoring/metrics/|/graders/|replay/grouping")
"""Modules whose texts are sent to a judge."""
_SENTENCE = re.compile(r"(?<=[.!?;:])\s+")


def _messages(root: str) -> Iterator[tuple[str, str]]:
    for module in sorted((ROOT / root).rglob("*.py")):
        if "_recordings" not in module.parts:
            name = str(module.relative_to(ROOT))
            yield from ((f"{name}:{line}", text) for line, text in literals(module))


@pytest.mark.parametrize(
    "root", ["collector/pandaeval_collector", "collector/pandaeval_lab", "pandaeval_otel/processor"]
)
def test_help_errors_and_reasons_are_plain(root: str) -> None:
    found = []
    for place, text in _messages(root):
        if _PROMPTS.search(place):
            continue
        found += [f"{place}: {habit}: {text}" for habit, form in _BANNED.items() if re.search(form, text)]
        found += [f"{place}: long: {part}" for part in _SENTENCE.split(text) if len(part.split()) > _MOST_IN_A_SENTENCE]
    assert found == []


def test_reasons_of_metrics_have_no_banned_forms() -> None:
    metrics = "collector/pandaeval_collector/scoring/metrics"
    reasons = [(place, text) for place, text in _messages(metrics) if "X" in text and not re.match(r"\w+: ", text)]
    assert len(reasons) > 20
    assert [each for each in reasons for form in _BANNED.values() if re.search(form, each[1])] == []


@pytest.mark.parametrize("root", _MOST_IN_DOCSTRINGS)
def test_docstrings_of_each_package_meet_the_style_limits(root: str) -> None:
    """Limits only fall."""
    prose = docstrings(sorted((ROOT / root).rglob("*.py")))
    assert prose.words > 1000
    most = dict(zip(_HABITS, _MOST_IN_DOCSTRINGS[root], strict=True))
    assert {habit: prose.rate(habit) for habit in _HABITS if prose.rate(habit) > most[habit]} == {}


def test_the_lint_finds_banned_forms(tmp_path: Path) -> None:
    module = tmp_path / "module.py"
    module.write_text('"""Stands here."""\nA = f"{1} stands in no result"\nB = "a note of what was found"\n')
    texts = [text for _, text in literals(module)]
    assert texts == ["X stands in no result", "a note of what was found"]
    assert [habit for text in texts for habit, form in _BANNED.items() if re.search(form, text)] == ["stand", "what"]


def test_summaries_of_commands_fit_their_column() -> None:
    found = []
    for path, command in _tree(get_command(whole_app())):
        first = " ".join((command.help or "").split("\n\n")[0].split())
        found += [f"{path}: {first}"] if len(first) > 60 and path != "pandaeval" else []
        texts = [getattr(option, "help", None) or "" for option in command.params]
        found += [f"{path}: {text}" for text in texts if not 1 <= len(text) <= 100]
    assert found == []


def _tree(command: Any, path: str = "pandaeval") -> Iterator[tuple[str, Any]]:
    yield path, command
    for name, inner in getattr(command, "commands", {}).items():
        yield from _tree(inner, f"{path} {name}")
