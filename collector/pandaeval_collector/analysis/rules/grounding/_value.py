"""A specific value that stands in a text."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

# One spelling for digits, dashes, blanks and quotation marks of all scripts.
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
    """Returns the text with ASCII digits (full-width, Arabic-Indic, Devanagari … become 0-9), plain dashes, blanks and
    quotes. ASCII texts come back unchanged."""
    if text.isascii():
        return text
    return unicodedata.normalize("NFKC", text.translate(_TABLE)).translate(_TABLE)


def squeezed(text: str) -> str:
    """Returns only letters and digits, without case: one key for all spellings of an identifier or a name."""
    return _BETWEEN.sub("", text.casefold())


IDENTIFIER, AMOUNT, NUMBER, PERCENTAGE = "identifier", "amount", "number", "percentage"
DATE, TIME, DURATION = "date", "time", "duration"
EMAIL, URL, NAME = "email", "url", "name"

STRICT = frozenset({IDENTIFIER, AMOUNT, DATE, TIME})
"""Kinds of which a single ungrounded value makes an answer ungrounded."""


@dataclass(slots=True)
class Value:
    """A specific value: ``text`` as written, at ``start`` of its (folded) text. ``key``: letters and digits alone,
    without case. ``readings``: what it may mean: numbers; dates as ``y * 10000 + m * 100 + d``, year 0 if missing;
    minutes of a day; minutes of a duration. ``step``: the unit of its last digit, for rounding."""

    kind: str
    text: str
    start: int
    key: str = ""
    readings: tuple[float, ...] = ()
    step: float = 1.0
