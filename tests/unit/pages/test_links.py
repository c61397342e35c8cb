"""Links lead to existing files and headings."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
_LINK = re.compile(r"\]\((?!\w+:)([^)\s]*)\)")
_PAGES = [
    *sorted(ROOT.glob("*.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / ".github").rglob("*.md")),
    ROOT / "collector/README.md",
    ROOT / "deploy/helm/pandaeval/README.md",
]


@pytest.mark.parametrize("page", _PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_to_existing_files_and_headings(page: Path) -> None:
    for link in _LINK.findall(_without_code(page)):
        name, _, anchor = link.partition("#")
        target = page.parent / name if name else page
        assert target.exists(), link
        assert not anchor or anchor in _anchors(target.resolve()), link


def test_docs_pages_named_in_source_files_exist() -> None:
    """For example docs/operate/scale.md#sessions."""
    for path in _sources():
        text = path.read_text(encoding="utf-8", errors="replace")
        for name, anchor in re.findall(r"\bdocs/([\w/-]+\.md)(?:#([\w-]+))?", text):
            if name == "learn.md":  # its metrics are being removed
                continue
            page = ROOT / "docs" / name
            assert page.exists(), f"{path}: {name}"
            assert not anchor or anchor in _anchors(page), f"{path}: {name}#{anchor}"


def _sources() -> list[Path]:
    folders = ("pandaeval_otel", "collector/pandaeval_collector", "collector/pandaeval_lab", "deploy", "proto", "tests")
    kinds = (".py", ".yaml", ".js", ".proto", ".service", ".toml")
    found = [path for folder in folders for path in (ROOT / folder).rglob("*")]
    return [
        path for path in found if path.suffix in kinds and path.is_file() and not set(path.parts) & {"data", "venvs"}
    ]


def _without_code(page: Path) -> str:
    text = re.sub(r"^( *)```.*?^\1```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"`[^`\n]+`", "", text)


@cache
def _anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}
