"""The pages at the top of the repository: what they link to is there, and the changes are told by version."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

_ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md"])
def test_links_lead_somewhere(page: str) -> None:
    links = re.findall(r"\]\((?!https?:)([^)]+)\)", (_ROOT / page).read_text(encoding="utf-8"))
    assert links
    for link in links:
        name, _, anchor = link.partition("#")
        target = _ROOT / (name or page)
        assert target.exists(), link
        assert not anchor or anchor in _anchors(target), link


def _anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_the_version_has_its_section_below_what_is_not_released() -> None:
    version = tomllib.loads((_ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    sections = re.findall(r"^## \[(.+?)\]", (_ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert sections[:2] == ["Unreleased", version]
