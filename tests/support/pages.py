"""Files shown on documentation pages."""

from __future__ import annotations

import re
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"
_SHOWN = re.compile(r"^`([\w./-]+)`[^\n]*\n(?:[^\n`]+\n)*\n```\w+\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def files_of(page: str, folder: Path) -> dict[str, Path]:
    """Write each file that a paragraph names before its code block."""
    found: dict[str, Path] = {}
    for name, text in _SHOWN.findall((DOCS / page).read_text(encoding="utf-8")):
        found[name] = folder / name
        found[name].write_text(text, encoding="utf-8")
    return found
