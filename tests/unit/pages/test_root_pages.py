"""The changelog begins with the current version."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

_ROOT = Path(__file__).parents[3]


def test_the_first_version_in_the_changelog_is_the_current_version() -> None:
    """Changes since that version may be above, under Unreleased."""
    version = tomllib.loads((_ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    sections = re.findall(r"^## \[(.+?)\]", (_ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert next(name for name in sections if name != "Unreleased") == version


def test_a_changelog_entry_has_at_most_25_words() -> None:
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", (_ROOT / "CHANGELOG.md").read_text(encoding="utf-8"))
    entries = re.findall(r"^- (.+(?:\n  .+)*)", text, re.MULTILINE)
    assert [entry for entry in entries if len(entry.split()) > 25] == []
