"""A specific value that stands in a text."""

from __future__ import annotations

from dataclasses import dataclass

IDENTIFIER, AMOUNT, NUMBER, PERCENTAGE = "identifier", "amount", "number", "percentage"
DATE, TIME, DURATION = "date", "time", "duration"
EMAIL, URL, NAME = "email", "url", "name"

STRICT = frozenset({IDENTIFIER, AMOUNT, DATE, TIME})
"""Kinds of which a single value that is not grounded is one too many."""


@dataclass(slots=True)
class Value:
    """``text`` as it is written, at ``start`` of its (folded) text. ``key``: letters and digits alone, without case.
    ``readings``: what it may stand for: numbers; dates as ``y * 10000 + m * 100 + d``, year 0 where none is said;
    minutes of a day; minutes of a duration. ``step``: the unit of the last digit that is written, for rounding."""

    kind: str
    text: str
    start: int
    key: str = ""
    readings: tuple[float, ...] = ()
    step: float = 1.0
