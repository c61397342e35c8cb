"""Quantities that an answer states in another unit than the sources: the right digits, and 60 °C where it was 60 °F."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from pandaeval_collector.analysis.rules.grounding._known import Known
from pandaeval_collector.analysis.rules.grounding._numbers import readings
from pandaeval_collector.analysis.rules.grounding._sources import CALL, Source
from pandaeval_collector.analysis.rules.grounding._together import SENTENCE, words_of
from pandaeval_collector.analysis.rules.grounding._value import AMOUNT, NUMBER, Value
from pandaeval_collector.base.lazy_pattern import lazily

_FAMILIES = (
    {"°f": "°F", "fahrenheit": "°F", "°c": "°C", "celsius": "°C"},
    {"mph": "mph", "km/h": "km/h", "kmh": "km/h", "kph": "km/h", "knots": "knots", "m/s": "m/s"},
    {"km": "km", "kilometers": "km", "kilometres": "km", "miles": "miles", "mi": "miles", "m": "m", "meters": "m"},
    {"kg": "kg", "kilograms": "kg", "g": "g", "grams": "g", "lbs": "lbs", "pounds": "lbs"},
    {"kb": "KB", "mb": "MB", "gb": "GB", "tb": "TB"},
    {
        **dict.fromkeys(("ms", "milliseconds"), "ms"),
        **dict.fromkeys(("seconds", "secs", "second"), "seconds"),
        **dict.fromkeys(("minutes", "mins", "minute"), "minutes"),
        **{f"{word}{s}": f"{word}s" for word in ("hour", "hr", "day", "week", "month", "year") for s in ("", "s")},
        **dict.fromkeys(("hr", "hrs"), "hours"),
    },
)
_FAMILY_OF = {word: family for family in _FAMILIES for word in family}
_UNIT = "|".join(sorted(map(re.escape, _FAMILY_OF), key=len, reverse=True))
_QUANTITY = lazily(
    rf"(?<![\w.,])(\d+(?:[.,]\d+)?)\s?-?(?:(?:business|working|calendar) )?({_UNIT})(?![\w/])", re.IGNORECASE
)
_OF_KEY = lazily(
    r"(?:^|[_ ])(kg|grams|lbs|km|miles|mb|gb|kb|tb|mph|kmh|celsius|fahrenheit|seconds|minutes|mins|hours|hrs|days|weeks"
    r"|months|years|ms)$",
    re.IGNORECASE,
)
"""The unit that a key names: duration_minutes, weight_kg."""
_ROUND = frozenset("10 12 15 20 24 30 36 45 48 50 60 72 90 100 120".split())  # noqa: SIM905 - said of anything
_SHARED, _SHARED_OF_A_DIGIT = 2, 3
"""So many words about a round number, or one of a single digit, have to stand about it in the source as well."""
_MOST = 100
_CHARS = 200
"""So many characters are read in the time in which one number is calculated with."""
_MONEY = lazily(r"([$€£¥₹])\s?(\d[\d,]*(?:\.\d+)?)")
_CURRENCY = {
    "$": lazily(r"\$|\b(?:[A-Z]{2}D|MXN|dollars?)\b"),
    "€": lazily(r"€|\b(?:EUR|euros?|Euros?)\b"),
    "£": lazily(r"£|\b(?:GBP|pounds?|Pounds?|sterling)\b"),
    "¥": lazily(r"¥|\b(?:JPY|CNY|RMB|yen|yuan)\b|[元円]"),
    "₹": lazily(r"₹|\b(?:INR|rupees?|Rs)\b"),
}


def in_another_unit(answer: str, known: Known, at: int) -> Iterator[tuple[Value, str]]:
    """The quantities of an answer that the sources state in other units of the same kind, and in this one nowhere;
    with what they say. Small and round numbers stand for too many things to tell, unless the same is said about
    them. Amounts of a currency that no source names, where they name another one, are such, too."""
    yield from _of_other_units(answer, known, at)
    yield from _of_other_currencies(answer, known, at)


def _of_other_units(answer: str, known: Known, at: int) -> Iterator[tuple[Value, str]]:
    for match in list(_QUANTITY.finditer(answer))[:_MOST]:
        number, family = match[1], _FAMILY_OF[match[2].casefold()]
        unit = family[match[2].casefold()]
        shared = _SHARED_OF_A_DIGIT if len(number) < 2 else _SHARED if number in _ROUND else 0
        about = words_of(_sentence(answer, match.start(), match.end())) - _FAMILY_OF.keys() if shared else frozenset()
        there = [(family[each], words) for each, words in _units_of(number, known, at, bool(shared)) if each in family]
        if any(each == unit for each, _ in there):
            continue
        other = sorted({each for each, words in there if len(about & words) >= shared})
        if other:
            value = Value(NUMBER, match[0], match.start(), "", (float(number.replace(",", ".")),))
            yield value, other[0]


def _units_of(number: str, known: Known, at: int, words: bool) -> Iterator[tuple[str, frozenset[str]]]:
    """The units in which sources have a number, with the ``words`` about it, if they are asked for."""
    for source in _spoken(known, at):
        if number not in source.text:
            continue
        if not known.may_compare(len(source.text) // _CHARS):
            return
        for match in _QUANTITY.finditer(source.text):
            if match[1] == number:
                about = words_of(_sentence(source.text, match.start(), match.end())) if words else frozenset()
                yield match[2].casefold(), about
        before = ""
        for line in source.text.split("\n") if not words else ():
            if line == number and (named := _OF_KEY.search(before)) is not None:
                yield named[1].casefold(), frozenset()
            before = line


def _of_other_currencies(answer: str, known: Known, at: int) -> Iterator[tuple[Value, str]]:
    signs = {match[1] for match in _MONEY.finditer(answer)}
    if not signs:
        return
    spoken = _spoken(known, at)
    strange = {sign for sign in signs if not any(_CURRENCY[sign].search(source.text) for source in spoken)}
    if not strange:
        return
    other = sorted({match[1] for source in spoken for match in _MONEY.finditer(source.text)})
    for match in list(_MONEY.finditer(answer))[:_MOST] if other else ():
        numbers, step = readings(match[2])
        if match[1] in strange and any(known.near(each, 1e-6, at) for each in numbers):
            yield Value(AMOUNT, match[0], match.start(), "", numbers, step), other[0]


def _spoken(known: Known, at: int) -> Sequence[Source]:
    return [source for source in known.sources if source.who != CALL and source.at <= at]


def _sentence(text: str, start: int, stop: int) -> str:
    first = max(
        (each.end() for each in SENTENCE.finditer(text, max(0, start - 300), start)), default=max(0, start - 300)
    )
    last = SENTENCE.search(text, stop, stop + 300)
    return text[first : last.start() if last is not None else stop + 300]
