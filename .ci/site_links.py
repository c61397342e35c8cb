"""Hook of the documentation site: shows links to files outside docs/ as text, because the site lacks the files."""

from __future__ import annotations

import posixpath
import re
from typing import Any

_LINK = re.compile(r"(?<!!)\[([^\]]+)\]\((?!\w+:)([^)#\s]+)(?:#[^)\s]*)?\)")


def on_page_markdown(markdown: str, page: Any, **_: object) -> str:
    """Replace each link that leaves docs/ by its text."""
    folder = posixpath.dirname(page.file.src_uri)

    def shown(link: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(folder, link[2]))
        return link[1] if target.startswith("../") else link[0]

    return _LINK.sub(shown, markdown)
