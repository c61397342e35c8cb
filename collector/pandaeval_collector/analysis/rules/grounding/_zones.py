"""Whether a time is another one in another time zone, by the differences that the sources and the sentence tell."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from pandaeval_collector.analysis.rules.grounding._patterns import minutes
from pandaeval_collector.analysis.rules.grounding._scan import scan
from pandaeval_collector.analysis.rules.grounding._sources import CALL, RESULT, Source
from pandaeval_collector.analysis.rules.grounding._value import TIME

_DAY = 1440
_HOURS = {
    "UTC": (0,),
    "GMT": (0,),
    "WET": (0,),
    "BST": (1,),
    "CET": (1,),
    "CEST": (2,),
    "EET": (2,),
    "MSK": (3,),
    "IST": (5.5,),
    "SGT": (8,),
    "HKT": (8,),
    "JST": (9,),
    "KST": (9,),
    "AEST": (10,),
    "AEDT": (11,),
    "NZST": (12,),
    "NZDT": (13,),
    "EST": (-5,),
    "EDT": (-4,),
    "ET": (-5, -4),
    "CST": (-6,),
    "CDT": (-5,),
    "CT": (-6, -5),
    "MST": (-7,),
    "MDT": (-6,),
    "PST": (-8,),
    "PDT": (-7,),
    "PT": (-8, -7),
    "HST": (-10,),
}
_NAMED = re.compile(rf"\b({'|'.join(_HOURS)})\b(?!\s?[+-]\d)")
_FROM_UTC = re.compile(
    r"\b(?:UTC|GMT)\s?([+-])(\d{1,2})(?::?(\d\d))?|\d:\d\d(?::\d\d(?:\.\d+)?)?([+-])(\d\d):?(\d\d)\b"
)
_AT_UTC = re.compile(r"\d:\d\d(?::\d\d(?:\.\d+)?)?Z\b")
_APART = re.compile(r"[+-](\d{1,2})(\.5)?(?:\.0)?\s?h(?:ours?|rs?)?\b")
_PLACE = re.compile(r"\b[A-Z][A-Za-z]+/[A-Z][A-Za-z_]+\b|\bUTC\b")
_SPAN = re.compile(r"\b(\d{1,2}(?::\d\d)?)\s?-\s?\d{1,2}(?::\d\d)?\s?([ap]\.?m)\b", re.IGNORECASE)
_LONGEST = 20_000
_MOST_TIMES = 200


@dataclass(slots=True)
class Zones:
    """What the sources say of time zones, each with the time from which they do. ``offsets``: zones and their minutes
    from UTC; ``apart``: minutes between two zones."""

    offsets: list[tuple[int, tuple[str, int]]] = field(default_factory=list)
    apart: list[tuple[int, int]] = field(default_factory=list)


def zones(sources: Sequence[Source]) -> Zones:
    """Reads from the sources the zones that they name, the differences that they state, and those between a call's time
    and its result's, where the call names zones."""
    found = Zones()
    asked: Source | None = None
    for source in sources:
        text = source.text[:_LONGEST]
        found.offsets += [(source.at, each) for each in _offsets(text)]
        found.apart += [(source.at, int(m[1]) * 60 + (30 if m[2] else 0)) for m in _APART.finditer(text)]
        if source.who == CALL:
            asked = source if _PLACE.search(text) else None
        elif source.who == RESULT and asked is not None:
            found.apart += [
                (source.at, int(there - here) % _DAY) for here in _times(asked.text) for there in _times(text)
            ]
            asked = None
    return found


def converted(readings: Iterable[float], sentence: str, known: Iterable[float], told: Zones, at: int) -> bool:
    """Returns whether a time is the distance of two zones away from a known one or one of the same sentence."""
    offsets = {each for since, each in told.offsets if since <= at} | set(_offsets(sentence))
    apart = {(one - other) % _DAY for zone, one in offsets for another, other in offsets if zone != another}
    apart |= {each for since, each in told.apart if since <= at}
    apart = {each for every in apart for each in (every, _DAY - every)} - {0, _DAY}
    if not apart:
        return False
    others = {*_beside(sentence), *list(known)[:_MOST_TIMES]}
    return any((reading - other) % _DAY in apart for reading in readings for other in others)


def _offsets(text: str) -> Iterator[tuple[str, int]]:
    for match in _FROM_UTC.finditer(text):
        sign, hours, rest = match[1] or match[4], match[2] or match[5], match[3] or match[6]
        minutes_off = int(hours) * 60 + int(rest or 0)
        if minutes_off <= 14 * 60:
            off = -minutes_off if sign == "-" else minutes_off
            yield str(off), off
    if _AT_UTC.search(text):
        yield "UTC", 0
    for name in {match[1] for match in _NAMED.finditer(text)}:
        yield from ((name, int(each * 60)) for each in _HOURS[name])


def _times(text: str) -> list[float]:
    return [value.readings[0] for value in scan(text) if value.kind == TIME and value.readings][:4]


def _beside(sentence: str) -> Iterator[float]:
    for value in scan(sentence):
        if value.kind == TIME:
            yield from value.readings
    for span in _SPAN.finditer(sentence):
        for half in (span[2], "am" if span[2][0] in "pP" else "pm"):
            yield from minutes(f"{span[1]} {half}")
