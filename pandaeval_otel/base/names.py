"""Shortens and escapes external names before they become labels, keys in memory or log text."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

MAX_NAME_CHARS = 128
_DIGEST_BYTES = 8


def bounded(name: str, most: int = MAX_NAME_CHARS) -> str:
    """Return the name in at most ``most`` printable characters. A longer name ends with a digest of the whole name,
    so long names stay distinct. Idempotent.
    """
    if len(name) <= most and name.isprintable():
        return name
    if len(name) <= most and len(shown := escaped(name)) <= most:
        return shown
    digest = hashlib.blake2b(name.encode(errors="surrogatepass"), digest_size=_DIGEST_BYTES).hexdigest()
    return f"{escaped(name[:most])[: most - len(digest) - 1]}~{digest}"


def all_bounded(names: Iterable[str]) -> list[str]:
    """Return each name as :func:`bounded` does."""
    return [bounded(name) for name in names]


def escaped(text: str) -> str:
    """Escape every unprintable character (``\\n``, ``\\x1b``, ``\\u202e``): control characters, line ends, direction
    marks and lone surrogates.
    """
    if text.isprintable():
        return text
    return "".join([char if char.isprintable() else char.encode("unicode_escape").decode() for char in text])
