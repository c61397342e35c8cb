"""One spelling for digits, dashes, blanks and quotation marks of all scripts."""

from __future__ import annotations

import re
import unicodedata

_DIGITS = {code: str(unicodedata.decimal(chr(code))) for code in range(128, 0x1FBFA) if chr(code).isdecimal()}
_SIGNS = {
    **dict.fromkeys(map(ord, "‐‑‒–—−"), "-"),
    **dict.fromkeys(map(ord, "“”„‟«»"), '"'),
    **dict.fromkeys(map(ord, "’‘‛´"), "'"),
    ord("٫"): ".",
    ord("٬"): ",",
    ord("،"): ",",
}
_TABLE: dict[int, str] = {**_DIGITS, **_SIGNS}
_BETWEEN = re.compile(r"[\W_]+")


def fold(text: str) -> str:
    """The text with ASCII digits (full-width, Arabic-Indic, Devanagari … become 0-9), plain dashes, blanks and quotes.
    ASCII texts come back as they are."""
    if text.isascii():
        return text
    return unicodedata.normalize("NFKC", text.translate(_TABLE)).translate(_TABLE)


def squeezed(text: str) -> str:
    """Letters and digits alone, without case: one key for all spellings of an identifier or a name."""
    return _BETWEEN.sub("", text.casefold())
