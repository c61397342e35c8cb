"""Shortens and escapes names that came from outside: they become labels, keys in memory and words in logs."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

MAX_NAME_CHARS = 128
_DIGEST_BYTES = 8


def bounded(name: str, most: int = MAX_NAME_CHARS) -> str:
    """Return the name in at most ``most`` characters, all of them printable. A longer one ends with a digest of the
    whole name, so that two long names stay distinct. Deterministic and idempotent."""
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
    """Return the text with every unprintable character as an escape (``\\n``, ``\\x1b``, ``\\u202e``): control
    characters, line ends, marks that change the direction, halves of surrogate pairs."""
    if text.isprintable():
        return text
    return "".join([char if char.isprintable() else char.encode("unicode_escape").decode() for char in text])
