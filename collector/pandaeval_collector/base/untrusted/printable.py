"""Makes external text safe to display: cut, with terminal control, bidirectional and invisible characters escaped."""

from __future__ import annotations

import json
import re
from typing import Any

HIDING = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\u3164\ufeff"
    "\uffa0\ufff9-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
"""Characters, for a pattern's class, without a shape of their own, which separate, reorder or tag others."""
INVISIBLE = f"\u200c\u200d{HIDING}"
"""The characters of :data:`HIDING`, and characters that join letters or pictures."""
UNSEEN = re.compile(f"[{INVISIBLE}\u2800\ufe00-\ufe0f]")
"""Those, and signs that look like a blank or choose the form of the sign before them."""
_UNSAFE = re.compile(f"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff{INVISIBLE}]")
""":data:`INVISIBLE`, control characters (C0 but tabs and line feeds, DEL, C1), line separators and lone surrogates."""
UNSAFE_CLASS = f"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff{HIDING}]"
"""Control characters, characters that reorder or hide text (bidi marks, zero-width ones, tags), and lone surrogates,
which no file can hold. Line ends and tabs stay."""
_UNREADABLE = re.compile(UNSAFE_CLASS)
_USER = re.compile(r"^(\w+://|(?=[^/?#@]*:))(?:[^/?#]*|[^/?#:@\[]*:(?!\d+[/?#]|//).*)@")
"""User and password of an address. A password without escapes can contain any character."""
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What XML 1.0 has no way to write."""


def printable(text: str) -> str:
    """Return ``text`` with unsafe characters escaped (``\\x1b``, ``\\u202e``), except line feeds and tabs."""
    return _UNSAFE.sub(_escaped, text)


def one_printable_line(text: str) -> str:
    """Escape ``text`` like :func:`printable`, with line feeds and tabs, onto one line."""
    return printable(text).replace("\n", "\\n").replace("\t", "\\t")


def shown_address(url: str) -> str:
    """Return an address, perhaps an invalid one, without user, password and query, on one printable line."""
    return one_printable_line(_USER.sub(r"\1", url).partition("?")[0])


def printable_json(text: str) -> str:
    """Escape unsafe characters of JSON text as JSON (``\\u202e``); parsed values stay the same."""

    def escaped(found: re.Match[str]) -> str:
        units = found[0].encode("utf-16-be", "surrogatepass")
        return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))

    return _UNSAFE.sub(escaped, text)


def is_printable(text: str) -> bool:
    return _UNSAFE.search(text) is None


def _escaped(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape", "surrogatepass").decode("ascii")


def clean(text: str) -> str:
    """Escape ``text`` like :func:`printable`, but keep joiners of letters and pictures."""
    return text if text.isascii() and text.isprintable() else _UNREADABLE.sub(_escaped, text)


def for_xml(text: str) -> str:
    """Replace characters that XML cannot hold by U+FFFD."""
    return _NOT_XML.sub("\ufffd", text)


def excerpt(text: str | None, room: int) -> str | None:
    """Return the first ``room`` characters of a text, escaped, on one line."""
    if text is None:
        return None
    line = " ".join(text[: 2 * room].split())
    return clean(line if len(line) <= room and len(text) <= 2 * room else f"{line[: room - 1]}…")


def as_text(value: Any) -> str:
    """Format a value as JSON with sorted keys; texts unchanged. Raises ``RecursionError`` for deeply nested lists."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True, default=str)
