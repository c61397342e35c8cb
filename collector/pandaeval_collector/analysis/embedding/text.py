"""Extracts the text to embed, and embeds texts of any length."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pandaeval_collector.analysis.embedding import Embedder, unit_rows

LIMIT = 5000
MOST_EMBEDDED = 100_000
"""Characters of a text that are embedded, from its beginning: more adds little, and hostile text costs time."""
_SPACE, _LAST_SPACE = re.compile(r"\s"), re.compile(r"\s\S*+\Z")


# How inputs and answers become text for an embedder.
def plain(text: str) -> str:
    """Return the text; of a JSON object or array, its leaf values, one per line."""
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


@dataclass(frozen=True, slots=True)
class TextVectors:
    """``rows[text]``: shape ``(dim,)``, length 1 or zeros. ``chunked``: texts embedded in parts."""

    rows: dict[str, NDArray[np.float32]]
    chunked: frozenset[str]


def chunks(text: str, limit: int = LIMIT) -> list[str]:
    """Split a text, preferably at white space, into parts of at most ``limit`` characters.

    Raises :class:`ValueError` below 1.
    """
    if limit < 1:
        raise ValueError(f"limit must be at least 1, got {limit}")
    parts = []
    while len(text) > limit:
        # The first white space after an equal part, else the last white space before it, else none.
        wanted = ceil(len(text) / ceil(len(text) / limit))
        found = _SPACE.search(text, wanted, limit + 1) or _LAST_SPACE.search(text, 1, wanted)
        cut = found.start() if found is not None else limit
        part, text = text[:cut].rstrip(), text[cut:].lstrip()
        if part:
            parts.append(part)
    return [*parts, text] if text or not parts else parts


def embed_texts(embedder: Embedder, texts: Iterable[str], limit: int = LIMIT) -> TextVectors:
    """Embed the first :data:`MOST_EMBEDDED` characters of each different text, in a single call.

    Texts over ``limit`` get the mean of their chunks.
    """
    parts = {text: chunks(text[:MOST_EMBEDDED], limit) for text in dict.fromkeys(texts)}
    unique = list(dict.fromkeys(part for each in parts.values() for part in each))
    vectors = embedder.embed(unique)
    place = {part: index for index, part in enumerate(unique)}
    rows = {}
    for text, each in parts.items():
        own = vectors[[place[part] for part in each]]
        rows[text] = (
            own[0] if len(each) == 1 else unit_rows(np.add.reduce(own, axis=0, dtype=np.float64, keepdims=True))[0]
        )
    return TextVectors(rows, frozenset(text for text, each in parts.items() if len(each) > 1))
