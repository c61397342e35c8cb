"""Quantities that an answer states in another unit than the sources: the right digits, and 60 °C where it was 60 °F."""

from __future__ import annotations

import re
from collections.abc import Iterator

from pandaeval_collector.analysis.rules.grounding._known import Known
from pandaeval_collector.analysis.rules.grounding._sources import RESULT, USER
from pandaeval_collector.analysis.rules.grounding._value import NUMBER, Value

_FAMILIES = (
    {"°f": "°F", "fahrenheit": "°F", "°c": "°C", "celsius": "°C"},
    {"mph": "mph", "km/h": "km/h", "kmh": "km/h", "knots": "knots", "m/s": "m/s"},
    {"km": "km", "kilometers": "km", "kilometres": "km", "miles": "miles", "mi": "miles"},
    {"kg": "kg", "kilograms": "kg", "g": "g", "grams": "g", "lbs": "lbs", "pounds": "lbs"},
    {"kb": "KB", "mb": "MB", "gb": "GB", "tb": "TB"},
    {"minutes": "minutes", "mins": "minutes", "hours": "hours", "hrs": "hours", "days": "days", "weeks": "weeks"},
)
_FAMILY_OF = {word: family for family in _FAMILIES for word in family}
_UNIT = "|".join(sorted(map(re.escape, _FAMILY_OF), key=len, reverse=True))
_QUANTITY = re.compile(rf"(?<![\w.,])(\d+(?:[.,]\d+)?)\s?-?({_UNIT})(?![\w/])", re.IGNORECASE)
_ROUND = frozenset("10 12 15 20 24 30 36 45 48 50 60 72 90 100 120".split())  # noqa: SIM905 - said of anything
_MOST = 100
_CHARS = 200
"""So many characters are read in the time in which one number is calculated with."""


def in_another_unit(answer: str, known: Known, at: int) -> Iterator[tuple[Value, str]]:
    """The quantities of an answer that results or the user state in other units of the same kind, and in this one
    nowhere; with what they say. Small and round numbers stand for too many things to tell."""
    for match in list(_QUANTITY.finditer(answer))[:_MOST]:
        number, unit = match[1], match[2].casefold()
        if len(number) < 2 or number in _ROUND:
            continue
        family = _FAMILY_OF[unit]
        there = {family[each] for each in _units_of(number, known, at) if each in family}
        if there and family[unit] not in there:
            yield Value(NUMBER, match[0], match.start(), "", (float(number.replace(",", ".")),)), min(there)


def _units_of(number: str, known: Known, at: int) -> Iterator[str]:
    for source in known.sources:
        if source.who in (RESULT, USER) and source.at <= at and number in source.text:
            if not known.may_compare(len(source.text) // _CHARS):
                return
            for match in _QUANTITY.finditer(source.text):
                if match[1] == number:
                    yield match[2].casefold()
