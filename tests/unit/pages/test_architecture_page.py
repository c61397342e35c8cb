"""docs/architecture.md lists what is there: every file and folder at the top of both packages and of the tests."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "architecture.md"
LISTED = {
    "pandaeval_collector": ROOT / "collector" / "pandaeval_collector",
    "pandaeval_otel": ROOT / "pandaeval_otel",
    "tests": ROOT / "tests",
}
NOT_LISTED = {"__init__.py", "__pycache__", "py.typed"}


def on_the_page(name: str) -> dict[str, str]:
    """Entries of the table under a name, and what is said of each."""
    table = PAGE.read_text().partition(f"`{name}`:\n\n")[2].partition("\n\n")[0]
    return dict(re.findall(r"^\| `([^`]+)` \| (.+) \|$", table, re.MULTILINE))


def in_the_tree(folder: Path) -> set[str]:
    entries = (entry for entry in folder.iterdir() if entry.name not in NOT_LISTED and entry.suffix != ".so")
    return {f"{entry.name}/" if entry.is_dir() else entry.name for entry in entries}


@pytest.mark.parametrize("name", LISTED)
def test_each_entry_has_its_line(name: str) -> None:
    said = on_the_page(name)
    assert said.keys() == in_the_tree(LISTED[name])
    assert all(len(line) > 10 for line in said.values())


def test_what_the_page_names_exists() -> None:
    """Every ``folder/`` and ``file.py`` in the text, wherever it lies below a package or the tests."""
    names = set(re.findall(r"`((?:[\w.]+/)*\w+(?:\.py|/))`", PAGE.read_text()))
    paths = [f"/{path.relative_to(ROOT)}{'/' * path.is_dir()}" for top in LISTED.values() for path in top.rglob("*")]
    missing = {name for name in names if not any(path.endswith(f"/{name}") for path in paths)}
    assert len(names) > 50
    assert missing <= {"proto/"}
