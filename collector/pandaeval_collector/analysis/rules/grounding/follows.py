"""Whether a value stands in the evidence in any spelling, or follows from what stands there."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, date, datetime
from itertools import combinations, pairwise
from urllib.parse import unquote

from pandaeval_collector.analysis.rules.grounding.before import USER
from pandaeval_collector.analysis.rules.grounding.claims import Claim
from pandaeval_collector.analysis.rules.grounding.evidence import NUMBER_OF, Group, Known, is_small
from pandaeval_collector.analysis.rules.grounding.values import (
    AMOUNT,
    IDENTIFIER,
    NUMBER,
    PERCENTAGE,
    TIME,
    Value,
    fold,
    scan,
    squeezed,
)

MOST_STEPS = 40_000
"""Numbers that the claims of one trace are compared with by arithmetic. Claims beyond stay open."""
_CLOSE = 1e-6
_URL_SIGNS = re.compile(r"[/?=&#,; ]")
_RANGE = re.compile(
    r"(?<![\w:.])(\d{1,2})(?::\d\d)? ?(?:h\b|[ap]m\b)? ?(?:-|to|until|till|bis|à|a|al) ?(\d{1,2})(?![\w:]|\.\d)"
)
_OPERATOR = re.compile(r"[+×*/÷=]|(?<=\s)[x-](?=\s)")
_LONGEST_GAP = 40
_MOST_OWN = 12
"""Amounts of an answer of which any two may be added."""
_LONGEST_SPAN = 31
"""Days between two that a user names, within which every day is meant."""
_DAYS = re.compile(r"\b(\d{1,3}|[^\W\d_]{2,9})[ -](day|night|week)s?\b", re.IGNORECASE)
_LEFT = re.compile(
    r"\b(?:remain\w*|left|leav\w+|balance|difference|refund\w*|sav\w+|owe\w*|pay|additional|extra)\b", re.I
)
_WEEKDAYS = ("sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday")
"""Indexed by the days since the year 1, modulo 7."""
_CONVERSIONS = {
    ("f", "c"): (5 / 9, -160 / 9),
    ("c", "f"): (1.8, 32.0),
    ("mile", "km"): (1.60934, 0.0),
    ("km", "mile"): (0.621371, 0.0),
    ("mph", "km/h"): (1.60934, 0.0),
    ("km/h", "mph"): (0.621371, 0.0),
    ("lb", "kg"): (0.453592, 0.0),
    ("kg", "lb"): (2.20462, 0.0),
    ("ft", "m"): (0.3048, 0.0),
    ("m", "ft"): (3.28084, 0.0),
}
"""From the unit of the evidence to the one of the claim: factor and offset."""
_FACTORS = (1000.0, 1024.0, 1e6, 1024.0**2, 1e9, 60.0, 24.0, 7.0, 12.0)
_SCALED = frozenset({"kb", "mb", "gb", "tb", "day", "week", "month", "year", "second", "g", "kg", "m", "km"})
_ZONES = {
    zone: float(hours)
    for words in (
        "0 UTC GMT", "1 BST CET", "2 CEST EET", "3 MSK", "5.5 IST", "8 SGT HKT", "9 JST KST", "10 AEST", "11 AEDT",
        "12 NZST", "13 NZDT", "-4 EDT", "-5 EST ET CDT", "-6 CST CT MDT", "-7 MST MT PDT", "-8 PST PT", "-10 HST",
    )
    for hours, *zones in [words.split()]
    for zone in zones
}  # fmt: skip
_ZONE = re.compile(rf"\b({'|'.join(_ZONES)})\b|\d:\d\d(?::\d\d(?:\.\d+)?)?(?:(Z)\b|([+-]\d\d):?(\d\d)\b)")
_DAY = 1440.0


class Follows:
    """Answers whether claims stand in the evidence or follow from it and from grounded ones of the same answer."""

    def __init__(self, had: Known, start_ns: int) -> None:
        self._had = had
        self._start_ns = start_ns
        self._left = MOST_STEPS
        self._counts: frozenset[float] | None = None
        self._apart: set[float] | None = None

    @property
    def exhausted(self) -> bool:
        """Whether the limit left out a comparison."""
        return self._left <= 0

    def stands(self, claim: Claim) -> bool:
        """Returns whether the evidence has the value, in any spelling, rounded or in another unit."""
        value, at = claim.value, claim.at
        if self._had.verbatim(value, at):
            return True
        match value.kind:
            case "identifier" | "address":
                return self._named(value, at)
            case "url":
                return self._named(value, at) or self._put_together(claim)
            case "date":
                return self._dated(claim)
            case "time":
                return self._timed(claim)
            case "duration":
                return self._lasts(value, at)
        return self._rounded(value, at) or (value.kind == NUMBER and self._by_the_way(claim))

    def derived(self, claim: Claim, settled: Sequence[Claim]) -> bool:
        """Returns whether a number follows by one step from numbers that belong together, or from grounded ones of the
        same answer, ``settled``."""
        value = claim.value
        if value.kind not in (AMOUNT, NUMBER, PERCENTAGE) or (value.kind == NUMBER and value.unit):
            return False
        near = sorted((each for each in settled if each.span_id == claim.span_id), key=lambda each: each.value.start)
        own = [each.value.number for each in near if each.value.kind != IDENTIFIER][:40]
        return any(
            any(_by_one_step(number, value, group) for group in self._groups(claim))
            or self._times_a_count(number, value, claim)
            or _from_own(number, value, own)
            or self._from_balance(number, claim, own)
            for number in value.keys
            if isinstance(number, float) and number
        )

    def _named(self, value: Value, at: int) -> bool:
        key = str(value.keys[0])
        if self._had.has_key(key, at) or any(isinstance(k, float) and self._had.near(k, 0.0, at) for k in value.keys):
            return True
        return key.isdigit() and any(key in content.tails for content in self._had.by(at))

    def _put_together(self, claim: Claim) -> bool:
        """Returns whether a URL has a known host and parts whose digits are known, in any format."""
        host, _, path = fold(unquote(claim.value.text)).partition("://")[2].partition("/")
        label = max(host.removeprefix("www.").split(".")[:-1], key=len, default=host)
        if not any(self._had.has_key(squeezed(each), claim.at) for each in (host, label)):
            return False
        parts = [part for part in _URL_SIGNS.split(path) if any(map(str.isdigit, part))]
        return all(
            self._had.has_key(squeezed(part), claim.at)
            or all(self.stands(Claim(each, claim.at, "", part, part)) for each in scan(part))
            for part in parts
        )

    def _rounded(self, value: Value, at: int) -> bool:
        """Returns whether a known number rounds, or is cut, to this one, or is it in another unit."""
        money = value.kind == AMOUNT
        for number in value.keys:
            if not isinstance(number, float):
                continue
            half = value.step / 2 if number == value.keys[0] else abs(number) * _CLOSE  # 1,065 may be 1.065, as it is
            if self._had.near(number, half + _CLOSE, at, value.unit, money):
                return True
            if self._had.near(number + half, max(half - _CLOSE, 0.0), at, value.unit, money):
                return True
            if money and self._had.near(number * 100, half * 100, at, value.unit, money) and number != int(number):
                return True  # in cents
            if value.unit in _SCALED and any(
                self._had.near(number * factor, half * factor + _CLOSE, at)
                or self._had.near(number / factor, half / factor + _CLOSE, at)
                for factor in _FACTORS
            ):
                return True
            for (unit, other), (factor, offset) in _CONVERSIONS.items():
                if other == value.unit:
                    source = (number - offset) / factor
                    if self._had.near(source, (max(half, 0.5) + _CLOSE) / factor, at, unit):
                        return True
        return False

    def _by_the_way(self, claim: Claim) -> bool:
        """Returns whether a number is the year of a known date or the next one, the digits at the end of an identifier,
        or an hour of a span of time (9 to 17)."""
        value, at = claim.value, claim.at
        number = value.number
        if 1900 <= number <= 2100 and any(
            0 <= number - day // 10000 <= 1 for content in self._had.by(at) for day in content.days
        ):
            return True
        if any(number in content.counts for content in self._had.by(at)):
            return True
        if value.text.isdigit() and len(value.text) >= 3 and self._named(Value(IDENTIFIER, "", 0, (value.text,)), at):
            return True
        if is_small(number) and number <= 24 and _RANGE.search(claim.text, max(0, value.start - 12), value.end + 12):
            return any(number * 60 % _DAY in content.times for content in self._had.by(at))
        return False

    def _dated(self, claim: Claim) -> bool:
        """Returns whether a day is known, with or without its year, lies as many days as the user said from a known
        one, between two known ones, at most a week after the run, or is the next day of its name (Sunday) after a day
        that a result names."""
        if any(day in content.days for content in self._had.by(claim.at) for day in claim.value.keys):
            return True
        had = list(self._had.by(claim.at))
        days = set().union(*(content.days for content in had)) if had else set()
        wanted = [day for day in claim.value.keys if isinstance(day, float)]
        if any(day in days or (day < 10000 and any(each % 10000 == day for each in days)) for day in wanted):
            return True
        if any(day % 10000 in days for day in wanted):
            return True
        months, ordinals = {day % 10000 // 100 for day in days}, set().union(*(content.ordinals for content in had))
        if any(day % 100 in ordinals and day % 10000 // 100 in months for day in wanted):
            return True
        today = datetime.fromtimestamp(self._start_ns / 1e9, UTC).date()
        years = {today.year, *sorted(int(each) // 10000 for each in days if each >= 10000)[-1:]}
        full = _with_years(wanted, years)
        anchors = [each for each in map(_ordinal, days) if each is not None]
        steps = self._days_apart()
        spans = [
            (min(said), max(said))
            for source in self._had.sources
            if source.who == USER
            and (said := [each for each in map(_ordinal, _with_years(source.content.days, years)) if each])
            if max(said) - min(said) <= _LONGEST_SPAN
        ]
        for day in map(_ordinal, full):
            if day is None:
                continue
            if -1 <= day - today.toordinal() <= 7 or any(first <= day <= last for first, last in spans):
                return True
            if any(abs(day - anchor) in steps for anchor in (*anchors, today.toordinal())):
                return True
            if _WEEKDAYS[day % 7] in claim.sentence.casefold() and any(0 < day - anchor < 7 for anchor in anchors):
                return True
        return False

    def _timed(self, claim: Claim) -> bool:
        """Returns whether a time is known, as 1100 too, lies a known duration away from a known one, or is one in
        another time zone."""
        value = claim.value
        wanted = [each for each in value.keys if isinstance(each, float)]
        if any(each in content.times for content in self._had.by(claim.at) for each in wanted):
            return True
        had = list(self._had.by(claim.at))
        if any(each // 60 * 100 + each % 60 in content.units for each in wanted if each >= 60 for content in had):
            return True
        times = set().union(*(content.times for content in had)) if had else set()
        lengths = set().union(*(content.durations for content in had)) if had else set()
        self._left -= len(times)
        if len(times) > 400 or self._left <= 0:
            return False
        apart = lengths | self._zones(claim.sentence)
        beside = {
            key for each in scan(claim.sentence) if each.kind == TIME and each.text != value.text for key in each.keys
        }
        zoned = self._zones(claim.sentence)
        return any(
            abs(each - other) % _DAY in apart or (_DAY - abs(each - other)) % _DAY in apart
            for each in wanted
            for other in times
        ) or any((each - float(other)) % _DAY in zoned for each in wanted for other in beside)

    def _zones(self, sentence: str) -> set[float]:
        """Returns the minutes between the time zones that the sentence and the evidence name."""
        if self._apart is None:
            self._apart = set()
            for source in self._had.sources:
                if len(source.content.text) <= 20_000 and source.content.times:
                    self._apart.update(_offsets(source.content.text))
        offsets = self._apart | set(_offsets(sentence))
        return {(one - other) % _DAY for one in offsets for other in offsets if one != other}

    def _lasts(self, value: Value, at: int) -> bool:
        """Returns whether a duration is known in minutes, hours or days, or lies between two known times; 9 h may be a
        time, too."""
        length = value.number
        if any(length in content.durations or length in content.times for content in self._had.by(at)):
            return True
        had = list(self._had.by(at))
        if any(
            self._had.near(each, _CLOSE, at, "minute") for each in (length, length / 60, length / _DAY, length * 60)
        ):
            return True
        times = set().union(*(content.times for content in had)) if had else set()
        self._left -= len(times)
        return len(times) <= 400 and any((each + length) % _DAY in times for each in times)

    def _groups(self, claim: Claim) -> Iterator[Group]:
        for content in self._had.by(claim.at):
            self._left -= 1 + sum(len(group.worth) for group in content.groups)
            if self._left <= 0:
                return
            yield from content.groups

    def _days_apart(self) -> set[float]:
        """Returns the numbers of days and weeks that users name, and one."""
        apart = {1.0}
        for source in self._had.sources:
            for match in _DAYS.finditer(source.content.text[:20_000]) if source.who == USER else ():
                number = float(match[1]) if match[1].isdigit() else NUMBER_OF.get(match[1].casefold(), 1.0)
                apart.add(number * (7 if match[2][0] in "wW" else 1))
        return apart

    def _said(self) -> frozenset[float]:
        """Returns the numbers that users said, also in words."""
        if self._counts is None:
            of_users = [source.content.units for source in self._had.sources if source.who == USER]
            self._counts = frozenset(number for units in of_users for number in units if 0 < number < 400)
        return self._counts

    def _times_a_count(self, number: float, value: Value, claim: Claim) -> bool:
        """Returns whether a known amount times a count that the user or the sentence names makes this one."""
        if value.kind != AMOUNT:
            return False
        counts = {each for each in self._said() if is_small(each)}
        counts |= {each.number for each in scan(claim.sentence) if each.kind == NUMBER and is_small(each.number)}
        return any(self._had.near(number / count, 0.005, claim.at, value.unit, True) for count in counts if count > 1)

    def _from_balance(self, number: float, claim: Claim, own: Sequence[float]) -> bool:
        """Returns whether an amount is what is left of a known one without a grounded one of the same answer."""
        if claim.value.kind != AMOUNT or not _LEFT.search(claim.sentence):
            return False
        return any(self._had.near(each + number, 0.005, claim.at, claim.value.unit, True) for each in own)


def _by_one_step(number: float, value: Value, group: Group) -> bool:
    """Returns whether one calculation with numbers of a group leads to ``number``: amounts are added to amounts and
    multiplied by counts."""
    tolerance = (0.005 if value.kind == AMOUNT or value.step >= 1 else value.step / 2) + _CLOSE
    worth = sorted(group.worth if value.kind == AMOUNT else group.worth | group.counts)
    if len(worth) < 2 and not group.counts:
        return False
    if abs(sum(worth) - number) <= tolerance:
        return True
    for each in worth:
        if (number - each != each and _has(worth, number - each, tolerance)) or _has(worth, number + each, tolerance):
            return True
        if value.kind == PERCENTAGE and any(
            _has(worth, wanted, max(tolerance * each / 100, _CLOSE))
            for wanted in (each * number / 100, each * (1 - number / 100), each * (1 + number / 100))
        ):
            return True
        if (
            value.kind == AMOUNT
            and len(worth) <= 8
            and any(_has(worth, number - each - other, tolerance) for other in worth if other != each)
        ):
            return True
    for count in group.counts:
        if count in (0.0, 1.0):
            continue
        wanted = (
            number / count,
            number * count,
            number * 100 / count,
            number / (1 - count / 100) if count < 100 else 0.0,
        )
        if any(_has(worth, each, tolerance / count if each < number else tolerance) for each in wanted if each):
            return True
    return False


def _has(ordered: Sequence[float], number: float, tolerance: float) -> bool:
    place = bisect_left(ordered, number - tolerance)
    return number > 0 and place < len(ordered) and ordered[place] <= number + tolerance


def _from_own(number: float, value: Value, own: Sequence[float]) -> bool:
    """Returns whether an amount is the sum of grounded ones of the same answer in a row, or the sum or
    difference of two."""
    if value.kind != AMOUNT:
        return False
    tolerance = max(0.005, value.step / 2) + _CLOSE
    for first in range(len(own)):
        total = own[first]
        for each in own[first + 1 :]:
            total += each
            if abs(total - number) <= tolerance:
                return True
    some = own[:_MOST_OWN]
    return any(
        abs(one + other - number) <= tolerance or abs(abs(one - other) - number) <= tolerance
        for one, other in combinations(some, 2)
    )


def shown(text: str, numbers: Sequence[Value]) -> Iterator[tuple[list[Value], Value, bool]]:
    """Yields the sums that an answer shows, step by step: the operands, the result and whether the step holds."""
    operands: list[tuple[str, Value]] = []
    for before, value in pairwise(numbers):
        gap = text[before.end : value.start]
        signs = _OPERATOR.findall(gap) if len(gap) <= _LONGEST_GAP and "\n" not in gap else []
        if len(signs) != 1:
            operands = []
            continue
        if not operands:
            operands = [("+", before)]
        if signs[0] == "=":
            if len(operands) > 1:
                total = _total([(sign, each.number) for sign, each in operands])
                tolerance = max(value.step / 2, 0.005) + abs(total) * 1e-9
                holds = any(abs(abs(total) - float(key)) <= tolerance for key in value.keys)
                yield [each for _, each in operands], value, holds
            operands = [("+", value)]
        else:
            operands.append((signs[0], value))


def _total(operands: Iterable[tuple[str, float]]) -> float:
    """Returns what a chain of numbers makes, products before sums."""
    terms: list[float] = []
    for sign, number in operands:
        if sign in "×*x" and terms:
            terms[-1] *= number
        elif sign in "/÷" and terms and number:
            terms[-1] /= number
        else:
            terms.append(-number if sign == "-" else number)
    return sum(terms)


def _with_years(days: Iterable[float], years: Iterable[int]) -> list[float]:
    """Returns the days, those without a year once for each of ``years``."""
    return [each for day in days for each in ([day] if day >= 10000 else [year * 10000 + day for year in years])]


def _ordinal(day: float) -> int | None:
    """Returns the days since the year 1; ``None`` without a year."""
    year, rest = divmod(int(day), 10000)
    try:
        return date(year, rest // 100, rest % 100).toordinal()
    except ValueError:
        return None


def _offsets(text: str) -> Iterator[float]:
    for match in _ZONE.finditer(text):
        if match[3]:
            yield int(match[3]) * 60.0 + int(match[4]) * (-1 if match[3][0] == "-" else 1)
        else:
            yield _ZONES[match[1] or "UTC"] * 60.0
