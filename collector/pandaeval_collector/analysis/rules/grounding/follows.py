"""Whether a value stands in the evidence in any spelling, or follows from what stands there."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from functools import cached_property, lru_cache
from itertools import accumulate, chain, islice, pairwise

from pandaeval_collector.analysis.rules.grounding.claims import Claim
from pandaeval_collector.analysis.rules.grounding.evidence import Content, Group, Known, is_small
from pandaeval_collector.analysis.rules.grounding.values import (
    MEASURED,
    NUMBERS,
    ORDINAL,
    Value,
    fold,
    ordinal,
    values_of,
)

MOST_STEPS = 40_000
"""Numbers that the claims of one trace are compared with by arithmetic. Claims beyond stay open."""
_CLOSE, _CENT = 1e-6, 0.005
_OPERATOR = re.compile(r"[+×*/÷=]|(?<=\s)[x-](?=\s)")
_MOST_OWN, _MOST_PAIRED = 40, 12
"""Amounts of an answer of which those in a row, and any two, may be added."""
_TIMES = frozenset(map(float, range(2, 10)))
"""Counts that an answer need not write down: 2 × $174."""
_MOST_TIMES = 400
_LONGEST_SPAN = 31
"""Days between two that a user names, within which every day is meant."""
_WORD = re.compile(r"[^\W\d_]+")
_NUMBER_OF = {
    word: float(number)
    for words in (
        "two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen",
        "zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn fünfzehn",
        "deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze quinze",
        "dos tres cuatro cinco seis siete ocho nueve diez once doce trece catorce quince",
        "dois três quatro cinco seis sete oito nove dez onze doze treze quatorze quinze",
        "due tre quattro cinque sei sette otto nove dieci undici dodici tredici quattordici quindici",
        "два три четыре пять шесть семь восемь девять десять",
    )
    for number, word in enumerate(words.split(), 2)
}
"""How users spell out small numbers."""
_DAYS = re.compile(r"\b(\d{1,3}|[^\W\d_]{2,9})[ -](day|night|week)s?\b", re.IGNORECASE)
_LEFT = re.compile(
    r"\b(?:remain\w*|left|leav\w+|balance|difference|refund\w*|sav\w+|owe\w*|pay|additional|extra)\b", re.I
)
_WEEKDAYS = ("sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday")
"""Indexed by the days since the year 1, modulo 7."""
_ZONE = re.compile(r"\b(?:UTC|GMT|[ECMPAH][SD]?T|A[CEW][SD]T|[BIJK]ST|[CE]ES?T|NZ[SD]T|SGT|HKT|MSK)\b")
_HALF_HOUR, _DAY = 30.0, 1440.0
"""By how much time zones lie apart."""


class Follows:
    """Answers whether claims stand in the evidence or follow from it and from grounded ones of the same answer."""

    def __init__(self, had: Known, start_ns: int) -> None:
        self._had = had
        self._today = datetime.fromtimestamp(start_ns / 1e9, UTC).date()
        self._left = MOST_STEPS

    @property
    def exhausted(self) -> bool:
        """Whether the limit left out a comparison."""
        return self._left <= 0

    def stands(self, claim: Claim) -> bool:
        """Returns whether the evidence has the value, in any spelling, or rounded."""
        if self._had.verbatim(claim.value, claim.at):
            return True
        match claim.value.kind:
            case "amount":
                return self._rounded(claim.value, claim.at)
            case "date":
                return self._dated(claim)
            case "time" | "duration":
                return self._timed(claim)
        return self._had.has_key(claim.value, claim.at)

    def derived(self, claim: Claim, settled: Sequence[Claim]) -> bool:
        """Returns whether an amount follows by one step from numbers that belong together, from grounded ones of the
        same answer, ``settled``, or from a known amount by one of those or by a count that the user or the sentence
        names."""
        value = claim.value
        if value.kind != "amount":
            return False
        same = [each.value for each in settled if each.span_id == claim.span_id and each.value.kind == "amount"]
        beside = [each for each in values_of(claim.text) if 0 <= each.start - claim.begin < len(claim.sentence)]
        shown = [each for each in beside if each.kind in NUMBERS and each.start <= value.start]
        total, known = _chain(claim.text, shown), {each.start for each in same}
        if total is not None and all(each.start in known for each in shown[:-1] if each.kind == "amount"):
            return any(abs(abs(total) - float(key)) <= max(value.step / 2, _CENT) for key in value.keys)
        own = [each.number for each in sorted(same, key=lambda each: each.start)][:_MOST_OWN]
        nearest = [each.number for each in sorted(same, key=lambda each: abs(each.start - value.start))][:_MOST_PAIRED]
        named = {each.number for each in beside if not each.unit}
        of_answer: Group = (frozenset(nearest), frozenset(filter(is_small, named)))
        counts = {count for count in self._counts | named if count > 1 and is_small(count)}
        numbers = (number for number in value.keys if isinstance(number, float) and number)
        return any(self._calculated(number, claim, own, of_answer, counts) for number in numbers)

    def _calculated(
        self, number: float, claim: Claim, own: Sequence[float], of_answer: Group, counts: set[float]
    ) -> bool:
        """Returns whether one step leads to a number. ``own``: grounded amounts of the answer; ``of_answer``: those
        beside the claim; ``counts``: numbers by which amounts may be multiplied."""
        if any(_by_one_step(number, *group) for group in chain(self._groups(claim.at), [of_answer])):
            return True
        tolerance = max(_CENT, claim.value.step / 2) + _CLOSE
        if any(abs(total - number) <= tolerance for total in _column_sums(own)):
            return True
        wholes = [number / count for count in counts]
        if _LEFT.search(claim.sentence) is not None:
            wholes += [number + part for part in own]
        return self._had.near([(whole - _CENT, whole + _CENT) for whole in wholes], claim.at, claim.value.unit)

    def by_the_answer(self, claim: Claim) -> bool:
        """Returns whether one calculation with other numbers of the same answer leads to an amount, however little they
        belong together, or it is the total of lines above it, or an amount of the answer adds up with it to a total of
        the evidence."""
        wanted = claim.value.number
        beside = [each for each in values_of(claim.text) if each.kind in NUMBERS and each.unit != MEASURED]
        numbers = frozenset(islice((each.number for each in beside if each.number != wanted), _MOST_OWN))
        if numbers and _by_one_step(wanted, numbers, numbers | _TIMES):
            return True
        above = [each for each in beside if each.kind == "amount" and each.start < claim.value.start][-_MOST_OWN:]
        ends = {claim.text.count("\n", 0, each.start): each.number for each in above}  # the last of each line
        if any(abs(total - wanted) <= _CENT for total in _column_sums(list(ends.values()))):
            return True
        totals = [wanted + each.number for each in beside[:_MOST_OWN] if each.kind == "amount"]
        sums = (sum(worth) for worth, _ in self._groups(claim.at))
        return any(abs(known - total) <= _CENT for known in sums for total in totals)

    @cached_property
    def _counts(self) -> set[float]:
        """The numbers that users said, also in words."""
        said = {number for content in self._of_users for number in content.units}
        words = (word for content in self._of_users for word in _WORD.findall(content.raw.casefold()))
        return said | {_NUMBER_OF[word] for word in words if word in _NUMBER_OF}

    @cached_property
    def _of_users(self) -> list[Content]:
        return [source.content for source in self._had.sources if source.who == "user"]

    def _groups(self, at: int) -> Iterator[Group]:
        for content in self._had.by(at):
            self._left -= content.steps
            if self._left <= 0:
                return
            yield from content.groups

    def _rounded(self, value: Value, at: int) -> bool:
        """Returns whether a known amount rounds, or is cut, to this one, as it is or in cents."""
        ranges: list[tuple[float, float]] = []
        for number in value.keys:
            if isinstance(number, float):  # 1,065 may be 1.065, as it is
                half = value.step / 2 if number == value.keys[0] else abs(number) * _CLOSE
                ranges += [(number - half - _CLOSE, number + max(half + _CLOSE, 2 * half - _CLOSE))]
                ranges += [((number - half) * 100, (number + half) * 100)] if number != int(number) else []
        return self._had.near(ranges, at, value.unit)

    def _dated(self, claim: Claim) -> bool:
        """Returns whether a day is known, with or without its year, or by its number in a known month; or lies as many
        days as the user said from a known one, between two that the user named, about the run, or is the next day of
        its name (Sunday) after a known one."""
        wanted = {day for day in claim.value.keys if isinstance(day, float)}
        if any(not wanted.isdisjoint(content.days) for content in self._had.by(claim.at)):
            return True
        had = list(self._had.by(claim.at))
        days = set().union(*(content.days for content in had))
        if _is_known(wanted, days, had):
            return True
        today = self._today.toordinal()
        years = {self._today.year, *sorted(int(day) // 10000 for day in days if day >= 10000)[-1:]}
        anchors = [*_ordinals(days, years=()), today]
        steps = self._steps_in_days
        windows = [(today - 1, today + 7), *self._windows(years)]
        sentence = claim.sentence.casefold()
        for day in _ordinals(wanted, years):
            if any(first <= day <= last for first, last in windows):
                return True
            if any(abs(day - anchor) in steps for anchor in anchors):
                return True
            if _WEEKDAYS[day % 7] in sentence and any(0 < day - anchor < 7 for anchor in anchors):
                return True
        return False

    @cached_property
    def _steps_in_days(self) -> set[float]:
        """How many days later or earlier users named, and a day."""
        steps = {1.0}
        for content in self._of_users:
            for match in _DAYS.finditer(fold(content.raw[:20_000])):
                number = float(match[1]) if match[1].isdigit() else _NUMBER_OF.get(match[1].casefold(), 1.0)
                steps.add(number * (7 if match[2][0] in "wW" else 1))
        return steps

    def _windows(self, years: set[int]) -> Iterator[tuple[int, int]]:
        """Yields the first and last day that each user message names, if they lie close together."""
        for content in self._of_users:
            named = _ordinals(content.days, years)
            if named and max(named) - min(named) <= _LONGEST_SPAN:
                yield min(named), max(named)

    def _timed(self, claim: Claim) -> bool:
        """Returns whether a time is known, as 1100 too, lies a known duration from a known one, or may be that of
        another time zone, where a zone is named; whether a duration is known, or lies between two known times."""
        is_time = claim.value.kind == "time"
        wanted = {minutes for minutes in claim.value.keys if isinstance(minutes, float)}
        plain = _plain_times(wanted) if is_time else _plain_durations(wanted)
        times: set[float] = set()
        lengths: set[float] = set()
        for content in self._had.by(claim.at):
            of_kind = content.times if is_time else content.durations | content.times  # 9 h may be a time, too
            if not wanted.isdisjoint(of_kind) or _holds_plain(content, plain):
                return True
            times |= content.times
            lengths |= content.durations
        self._left -= len(times)
        if len(times) > _MOST_TIMES or self._left <= 0:
            return False
        if not is_time:
            return any((one - other) % _DAY in wanted for one in times for other in times)
        zoned = _ZONE.search(claim.sentence) is not None
        apart = {(one - other) % _DAY for one in wanted for other in times}
        return any(each in lengths or _DAY - each in lengths or (zoned and each % _HALF_HOUR == 0) for each in apart)


def _is_known(wanted: set[float], days: set[float], had: Sequence[Content]) -> bool:
    """Returns whether one of the days is known without its year, or by its number in a known month."""
    of_any_year, months = {day % 10000 for day in days}, {day % 10000 // 100 for day in days}
    for day in wanted:
        if day % 10000 in days or (day < 10000 and day in of_any_year):
            return True
        if day % 10000 // 100 in months and any(ORDINAL in content.units.get(day % 100, ()) for content in had):
            return True
    return False


def _plain_times(wanted: set[float]) -> set[float]:
    """Returns times as numbers: 1100 for 11 o'clock."""
    return {minutes // 60 * 100 + minutes % 60 for minutes in wanted if minutes >= 60}


def _plain_durations(wanted: set[float]) -> set[float]:
    """Returns durations as numbers of minutes, hours or days whose unit a key tells, or nobody."""
    return {minutes / size for minutes in wanted for size in (1.0, 60.0, _DAY)}


def _holds_plain(content: Content, plain: set[float]) -> bool:
    """Returns whether one of the numbers is there without a unit."""
    return any(content.units[number] & {"", MEASURED} for number in plain & content.units.keys())


def _chain(text: str, numbers: Sequence[Value]) -> float | None:
    """Returns what a chain of numbers makes, products before sums, that stands before the last one, behind "="."""
    terms = [each.number for each in numbers[:1]]
    for before, value in pairwise(numbers):
        match _OPERATOR.findall(text[before.end : value.start]):
            case ["="] if value is numbers[-1]:
                return sum(terms)
            case ["×" | "*" | "x"]:
                terms[-1] *= value.number
            case ["/" | "÷"]:
                terms[-1] /= value.number or 1.0
            case ["+"]:
                terms.append(value.number)
            case ["-"]:
                terms.append(-value.number)
            case _:
                terms = [value.number]
    return None


def _column_sums(numbers: Sequence[float]) -> Iterator[float]:
    """Yields the sums of two and more numbers in a row, also where each stands in a line with up to three others."""
    for step in range(1, 5):
        for first in range(len(numbers)):
            yield from islice(accumulate(numbers[first::step]), 1, None)


def _ordinals(days: Iterable[float], years: Iterable[int]) -> list[int]:
    """Returns the days since the year 1, of days without a year once for each of ``years``."""
    full = [full for day in days for full in ([day] if day >= 10000 else [year * 10000 + day for year in years])]
    return [day for day in map(ordinal, full) if day is not None]


@lru_cache(maxsize=8192)  # a session's traces ask again about the same values and results
def _by_one_step(number: float, amounts: frozenset[float], counts: frozenset[float]) -> bool:
    """Returns whether one calculation with numbers of a group leads to ``number``: amounts are added to amounts and
    multiplied by counts."""
    worth, tolerance = sorted(amounts), _CENT + _CLOSE
    if len(worth) < 2 and not counts:
        return False
    if abs(sum(worth) - number) <= tolerance:
        return True
    if any(_is_sum(worth, number, each, tolerance) for each in worth):
        return True
    return any(_is_product(worth, number, count, tolerance) for count in counts - {0.0, 1.0})


def _is_sum(worth: Sequence[float], number: float, part: float, tolerance: float) -> bool:
    """Returns whether ``number`` is the sum or difference of ``part`` and another, of few also of three."""
    rest = number - part
    if (rest != part and _has(worth, rest, tolerance)) or _has(worth, number + part, tolerance):
        return True
    return len(worth) <= 8 and any(_has(worth, rest - other, tolerance) for other in worth if other != part)


def _is_product(worth: Sequence[float], number: float, count: float, tolerance: float) -> bool:
    """Returns whether ``number`` is an amount times a count, over it, or that percentage of it or off it."""
    before = number / (1 - count / 100) if count < 100 else 0.0
    for wanted in (number / count, number * count, number * 100 / count, before):
        if wanted and _has(worth, wanted, tolerance / count if wanted < number else tolerance):
            return True
    return False


def _has(ordered: Sequence[float], number: float, tolerance: float) -> bool:
    place = bisect_left(ordered, number - tolerance)
    return number > 0 and place < len(ordered) and ordered[place] <= number + tolerance
