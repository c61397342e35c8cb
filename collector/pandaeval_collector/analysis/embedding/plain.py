"""How inputs and answers become text for an embedder."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any


def plain(text: str) -> str:
    """The text; of a JSON object or array its leaf values, one per line (keys and braces are no topic)."""
    stripped = text.strip()
    if stripped[:1] in ("{", "["):
        try:
            return "\n".join(_leaves(json.loads(stripped)))
        except (ValueError, RecursionError):
            return stripped
    return stripped


def _leaves(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for item in value.values():
            yield from _leaves(item)
    elif isinstance(value, list):
        for item in value:
            yield from _leaves(item)
    elif value is not None and value != "":
        yield str(value)
