"""Shortens and escapes external names for labels, keys and logs."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

MAX_NAME_CHARS = 128
_DIGEST_BYTES = 8


def bounded(name: str, most: int = MAX_NAME_CHARS) -> str:
    """Return the name in at most ``most`` printable characters. Longer names end with a digest. Idempotent."""
    if len(name) <= most and name.isprintable():
        return name
    if len(name) <= most and len(shown := escaped(name)) <= most:
        return shown
    digest = hashlib.blake2b(name.encode(errors="surrogatepass"), digest_size=_DIGEST_BYTES).hexdigest()
    return f"{escaped(name[:most])[: most - len(digest) - 1]}~{digest}"


def all_bounded(names: Iterable[str]) -> list[str]:
    return [bounded(name) for name in names]


def escaped(text: str) -> str:
    """Escape control characters, line ends, direction marks and lone surrogates."""
    if text.isprintable():
        return text
    return "".join([char if char.isprintable() else char.encode("unicode_escape").decode() for char in text])
