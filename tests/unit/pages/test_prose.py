"""The user pages are written in plain English: short sentences, few tables, no habits that readers misread."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from support.prose import percentile, read

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
_MOST_WORDS = {"README.md": 450, "index.md": 250}


def _name(page: Path) -> str:
    return str(page.relative_to(ROOT))


def test_the_pages_together() -> None:
    prose = read(*_PAGES)
    assert prose.mean <= 18
    assert percentile(prose.lengths, 0.9) <= 30
    assert prose.longer_than(40) <= 3
    assert percentile(prose.paragraphs, 0.9) <= 55
    assert prose.table_share <= 25
    assert {habit: prose.rate(habit) for habit, most in _MOST.items() if prose.rate(habit) > most} == {}
    assert prose.rate("you") >= 2


@pytest.mark.parametrize("page", _PAGES, ids=_name)
def test_a_page(page: Path) -> None:
    prose = read(page)
    assert len(page.read_text(encoding="utf-8").split()) <= _MOST_WORDS.get(page.name, 1800)
    if prose.words < 200:
        return
    assert prose.mean <= 20
    assert percentile(prose.lengths, 0.9) <= 33
    assert prose.rate("say or tell") <= 4
    assert prose.rate("what") <= 6


@pytest.mark.parametrize("page", _PAGES, ids=_name)
def test_evidence_is_in_the_internals(page: Path) -> None:
    """User pages name no tests, and their sentences no seeds or dates."""
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
