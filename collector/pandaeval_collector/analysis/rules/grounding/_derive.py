"""Whether a value follows from known ones: another unit, rounding, one step of arithmetic, a calculation with dates."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime

from pandaeval_collector.analysis.rules.grounding._known import PLAINER, Known
from pandaeval_collector.analysis.rules.grounding._patterns import ordinal, readings
from pandaeval_collector.analysis.rules.grounding._sources import CALL, RESULT, Source
from pandaeval_collector.analysis.rules.grounding._together import SENTENCE, Group, is_small, of_text, words_of
from pandaeval_collector.analysis.rules.grounding._value import AMOUNT, NUMBER, PERCENTAGE, Value
from pandaeval_collector.analysis.rules.grounding._zones import converted
from pandaeval_collector.base.lazy_pattern import lazily

# Quantities that an answer states in another unit than the sources: the right digits, and 60 °C where it was 60 °F.
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
_QUANTITY = lazily(rf"(?<![\w.,])(\d+(?:[.,]\d+)?)\s?-?(?:(?:business|working|calendar) )?({_UNIT})(?![\w/])")
_OF_KEY = lazily(
    r"(?:^|[_ ])(kg|grams|lbs|km|miles|mb|gb|kb|tb|mph|kmh|celsius|fahrenheit|seconds|minutes|mins|hours|hrs|days|weeks"
    r"|months|years|ms)$"
)
"""The unit that a key names: duration_minutes, weight_kg."""
_ROUND = frozenset("10 12 15 20 24 30 36 45 48 50 60 72 90 100 120".split())  # noqa: SIM905 - said of anything
_SHARED, _SHARED_OF_A_DIGIT = 2, 3
"""How many words a source must share with the sentence about a round number, or about one of a single digit."""
_MOST = 100
_CHARS = 200
"""Characters that take as long to read as one number to calculate with."""
_MONEY = lazily(r"([$€£¥₹])\s?(\d[\d,]*(?:\.\d+)?)", 0)
_CURRENCY = {
    "$": lazily(r"\$|\b(?:[A-Z]{2}D|MXN|dollars?)\b", 0),
    "€": lazily(r"€|\b(?:EUR|euros?|Euros?)\b", 0),
    "£": lazily(r"£|\b(?:GBP|pounds?|Pounds?|sterling)\b", 0),
    "¥": lazily(r"¥|\b(?:JPY|CNY|RMB|yen|yuan)\b|[元円]", 0),
    "₹": lazily(r"₹|\b(?:INR|rupees?|Rs)\b", 0),
}


def in_another_unit(answer: str, known: Known, at: int) -> Iterator[tuple[Value, str]]:
    """Yields an answer's quantities that the sources state only in other units of the same kind, with such a unit.
    Small and round numbers count only if the same is said about them. Amounts in a currency that no source names, while
    they name another one, count too."""
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
    """Yields the units in which sources state a number, with the ``words`` about it if asked for."""
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


MOST_OPERANDS = 80
"""Among more numbers than this any sum can be found by chance."""
_MOST_SETTLED = 30
_MOST_LENGTHS = 20
_UNITS = (100.0, 1000.0, 1024.0, 60.0, 1440.0, 24.0, 12.0, 7.0)
_SMALL = 31.0
_DAY_MINUTES = 1440.0
_WEEKDAYS = ("sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday")
"""Indexed by the days since the year 1, modulo 7."""
_CLOSE = 1e-6


def from_numbers(value: Value, known: Known, at: int, sentence: str) -> bool:
    """Returns whether a number follows by unit, rounding, one calculation or share; ``sentence`` states it."""
    for number in value.readings:
        if _rounded(number, value.step, known, at):
            return True
        units = _UNITS[:1] if value.kind == AMOUNT else _UNITS
        if any(known.near(x, abs(x) * _CLOSE, at) for unit in units for x in (number * unit, number / unit)):
            return True
        if _calculated(number, value, known, at, sentence):
            return True
    return False


def _rounded(number: float, step: float, known: Known, at: int) -> bool:
    """Returns whether a known number rounds, or is cut, to this one; whole tens do not count as rounded."""
    return known.near(number, step * 0.5 + _CLOSE, at) or known.near(number + step * 0.5, step * 0.5 - _CLOSE, at)


def _calculated(number: float, value: Value, known: Known, at: int, sentence: str) -> bool:
    """Returns whether one step leads to the number from two that belong together: both of one object, list or sentence
    of a source, both known and in the sentence that states it, or one of them the user's."""
    tolerance = max(0.005 if value.kind == AMOUNT else 0.0, value.step / 2) + _CLOSE
    share = value.kind == PERCENTAGE
    if not known.may_compare((len(known.index.said) + len(known.index.plain)) // PLAINER):
        return False
    said = {each for each, since in known.index.said.items() if since <= at and each}
    there = {each for each, since in known.index.plain.items() if since <= at}
    pools = [(group, group) for group in known.groups(at) if len(group.all) <= MOST_OPERANDS]
    stated = [_only(part, number, known, at) for part in of_text(sentence)]
    pools = [(Group(*stated), Group(*stated)), (_by_size(said), _by_size(said | there)), *pools]
    reach = _amount_from if value.kind == AMOUNT else _from_pool
    return any(known.may_compare(len(one.all)) and reach(number, one, other, tolerance, share) for one, other in pools)


def _only(numbers: Iterable[float], number: float, known: Known, at: int) -> frozenset[float]:
    return frozenset(each for each in numbers if each != number and _is_operand(each, known, at))


def _by_size(numbers: Iterable[float]) -> Group:
    small = frozenset(filter(is_small, numbers))
    return Group(frozenset(numbers) - small, small)


def _from_pool(number: float, one: Group, other: Group, tolerance: float, share: bool) -> bool:
    cents = {round(each * 100) for each in other.all}
    return any(_by_one_step(number, each, cents, tolerance, share) for each in one.all if each)


def _amount_from(number: float, one: Group, other: Group, tolerance: float, share: bool) -> bool:
    """Returns whether an amount is a sum of amounts, or an amount times or divided by a count or rate."""
    worth = {round(each * 100) for each in other.worth}
    if any(_is_in(wanted, worth, tolerance) for each in one.worth if each for wanted in _sums(number, each)):
        return True
    factors = [*one.counts, *(each for each in one.worth if is_small(each) or each <= 1)]
    if any(_is_in(wanted, worth, tolerance) for each in factors if each for wanted in _products(number, each, share)):
        return True
    factored = {round(each * 100) for each in (*other.counts, *(each for each in other.worth if is_small(each)))}
    return any(
        _is_in(wanted, factored, tolerance) for each in one.worth if each for wanted in (number / each, each / number)
    )


def _is_operand(number: float, known: Known, at: int) -> bool:
    return (number == int(number) and 2 <= number <= _SMALL) or known.near(number, _CLOSE, at)


def _by_one_step(number: float, operand: float, cents: set[int], tolerance: float, share: bool) -> bool:
    """Returns whether ``number`` follows from ``operand`` and a known number by one calculation or percentage."""
    loose = share or tolerance > 0.01
    wanted = (*_sums(number, operand), *_products(number, operand, share))
    return any(_is_in(each, cents, tolerance if loose else 0.0) for each in wanted)


def _sums(number: float, operand: float) -> tuple[float, ...]:
    """Returns the numbers that would make ``number`` a sum or difference with the operand."""
    return number - operand, operand - number, number + operand


def _products(number: float, operand: float, share: bool) -> list[float]:
    """Returns the numbers that would make ``number`` a product, quotient or percentage with the operand."""
    wanted = [number / operand, number * operand, number * 100 / operand]
    if operand < 100:
        wanted += [number / (1 - operand / 100), number / (1 + operand / 100)]
    if share:
        wanted += [number / 100 * operand, operand * 100 / number if number else 0.0]
        wanted += [operand / (1 - number / 100) if number != 100 else 0.0, operand / (1 + number / 100)]
    return wanted


def _is_in(wanted: float, cents: set[int], tolerance: float) -> bool:
    if not 0.0 < wanted < 1e13:
        return False
    exact = wanted * 100
    nearest = round(exact)
    return nearest in cents and (0.01 < tolerance < 0.5 or abs(exact - nearest) < 0.01)


def from_own(value: Value, settled: Sequence[float], known: Known, at: int) -> bool:
    """Returns whether an amount follows from grounded ones of the same answer: as a sum of some in a row, or by one
    step from two of them or from one and a small count."""
    own = settled[:_MOST_SETTLED]
    if not known.may_compare(len(own) + len(known.index.plain) // PLAINER):
        return False
    few = {
        each for each, since in known.index.plain.items() if since <= at and 2 <= each <= _SMALL and each == int(each)
    }
    there = Group(frozenset(own), frozenset(few))
    tolerance = max(0.005, value.step / 2) + _CLOSE
    for number in value.readings:
        if _amount_from(number, there, there, tolerance, False):
            return True
        for first in range(len(own)):
            total = own[first]
            for each in own[first + 1 :]:
                total += each
                if abs(total - number) <= tolerance:
                    return True
    return False


def from_named(value: Value, own: Sequence[float], there: Iterable[float]) -> bool:
    """Returns whether an amount is a grounded one of the same answer, added to or taken from one of a result that the
    sentence names: what is left of a balance."""
    return any(
        abs(each + sign * other - number) <= 0.005 or abs(other - each - number) <= 0.005
        for number in value.readings
        for other in there
        for each in own[:_MOST_SETTLED]
        for sign in (1.0, -1.0)
    )


def from_dates(value: Value, known: Known, at: int, start_ns: int, sentence: str) -> bool:
    """Returns whether a day is known, with or without its year, lies a known number of days from a known one, within a
    span of days that a source names, at most two weeks after the run, or is the next day of its name (Sunday) after a
    day that a result names."""
    if not known.may_compare(len(known.index.dates)):
        return False
    there = [day for day, since in known.index.dates.items() if since <= at]
    if any(_same_day(day, each) for day in value.readings for each in there):
        return True
    today = datetime.fromtimestamp(start_ns / 1e9, UTC).date()
    years = dict.fromkeys([today.year, *(int(each) // 10000 for each in there if each >= 10000)])
    days = [day for day in value.readings if day >= 10000]
    days += [year * 10000 + day for day in value.readings if day < 10000 for year in years]
    for wanted in map(ordinal, days):
        if wanted is None:
            continue
        if -1 <= wanted - today.toordinal() <= 14:
            return True
        anchors = [each for each in map(ordinal, there) if each is not None] + [today.toordinal()]
        steps = {each for each, since in known.index.said.items() if since <= at and each < 400} | {1.0}
        if any(float(abs(wanted - anchor)) in steps for anchor in anchors):
            return True
        if _within_a_span(wanted, known, at) or _is_next_of_its_name(wanted, sentence, known, at):
            return True
    return False


def _same_day(one: float, other: float) -> bool:
    return one == other or (one % 10000 == other % 10000 and (one < 10000 or other < 10000))


def _within_a_span(wanted: int, known: Known, at: int) -> bool:
    days = [each for day, since in known.index.dates.items() if since <= at and (each := ordinal(day)) is not None]
    return len(days) == 2 and min(days) <= wanted <= max(days)


def _is_next_of_its_name(wanted: int, sentence: str, known: Known, at: int) -> bool:
    """Returns whether the sentence names the day's weekday, and the day is within a week after one of a result."""
    if _WEEKDAYS[wanted % 7] not in sentence.casefold():
        return False
    found = known.index.dates_of.get(RESULT, set())
    days = [ordinal(day) for day, since in known.index.dates.items() if since <= at and day % 10000 in found]
    return any(day is not None and 0 < wanted - day < 7 for day in days)


def from_times(value: Value, known: Known, at: int, sentence: str) -> bool:
    """Returns whether a time is known, lies a known duration away from a known one, or is one in another time zone."""
    there = [minute for minute, since in known.index.times.items() if since <= at]
    lengths = [length for length, since in known.index.durations.items() if since <= at][:_MOST_LENGTHS]
    lengths += [each for each, since in known.index.said.items() if since <= at and 0 < each <= 120][:_MOST_LENGTHS]
    for minute in value.readings:
        if minute in there:
            return True
        if not known.may_compare(len(there) * len(lengths) // PLAINER):
            return False
        for each in there:
            apart = abs(minute - each) % _DAY_MINUTES
            if any(apart in (length, _DAY_MINUTES - length) for length in lengths):
                return True
    return converted(value.readings, sentence, there, known.zones, at)


def from_durations(value: Value, known: Known, at: int) -> bool:
    """Returns whether a duration is known in minutes, hours or days, or lies between two known times."""
    [length] = value.readings
    if known.index.durations.get(length, at + 1) <= at:
        return True
    if any(known.near(each, _CLOSE, at) for each in (length, length / 60, length / _DAY_MINUTES, length * 60)):
        return True
    there = [minute for minute, since in known.index.times.items() if since <= at][:200]
    some = set(there)
    return any((each + length) % _DAY_MINUTES in some for each in there)
