"""The values that stand in the sources, each with the time from which the agent had it."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from itertools import islice

from pandaeval_collector.analysis.rules.grounding._patterns import PLAIN, readings
from pandaeval_collector.analysis.rules.grounding._scan import scan
from pandaeval_collector.analysis.rules.grounding._sources import RESULT, USER, Source
from pandaeval_collector.analysis.rules.grounding._together import (
    MOST_GROUPS,
    SENTENCE,
    Group,
    named,
    together,
    words_of,
)
from pandaeval_collector.analysis.rules.grounding._value import (
    AMOUNT,
    DATE,
    DURATION,
    IDENTIFIER,
    NUMBER,
    PERCENTAGE,
    TIME,
    Value,
    squeezed,
)
from pandaeval_collector.analysis.rules.grounding._zones import Zones, zones

# All values of all sources, by kind, with the time of the first source that has each.
Times = dict[float, int]


class Index:
    """The sources' values with their times. ``numbers``: of all kinds, identifiers too; ``plain``: those to calculate
    with; ``said``: the user's. ``keys``: identifiers and numbers without case and separators. ``dates_of``: days
    without years, by the kind of source."""

    def __init__(self, sources: Sequence[Source]) -> None:
        self.numbers: Times = {}
        self.plain: Times = {}
        self.said: Times = {}
        self.dates: Times = {}
        self.times: Times = {}
        self.durations: Times = {}
        self.keys: dict[str, int] = {}
        self.dates_of: dict[str, set[float]] = {}
        for source in sources:
            for value in scan(source.text):
                self._take(source, value)
            for length in source.counts:
                self.numbers.setdefault(float(length), source.at)

    def _take(self, source: Source, value: Value) -> None:
        at = source.at
        if value.kind == DATE:
            _note(self.dates, value.readings, at)
            self.dates_of.setdefault(source.who, set()).update([each % 10000 for each in value.readings])
        elif value.kind == TIME:
            _note(self.times, value.readings, at)
        elif value.kind == DURATION:
            _note(self.durations, value.readings, at)
            _note(self.plain, readings(value.text)[0], at)
            _note(self.numbers, readings(value.text)[0], at)
        elif value.kind == IDENTIFIER:
            self.keys.setdefault(value.key, at)
            _note(self.numbers, value.readings, at)
        else:
            self.keys.setdefault(value.key, at)
            _note(self.numbers, value.readings, at)
            _note(self.plain, value.readings, at)
            if value.kind == PERCENTAGE:
                _note(self.numbers, [each / 100 for each in value.readings], at)
            if source.who == USER:
                _note(self.said, value.readings, at)
            if " " in value.text and value.readings:  # two numbers side by side, or one with blanks between groups
                for part in value.text.split():
                    _note(self.numbers, readings(part)[0], at)


def _note(times: Times, values: Iterable[float], at: int) -> None:
    for value in values:
        times.setdefault(value, at)


# Values that stand in a source just as they were stated: most of them do, and to see that takes no reading.
_DIGITS = re.compile(PLAIN)


def verbatim(value: Value, sources: Sequence[Source], at: int) -> bool:
    """Returns whether a source has the value by the time ``at``, literally and not within a longer one."""
    wanted = value.text
    if value.kind in (AMOUNT, NUMBER, PERCENTAGE):
        digits = _DIGITS.search(wanted)
        if digits is None or (digits.end() < len(wanted) and wanted[digits.end()].isalnum()):
            return False
        wanted = digits[0]
    return any(source.at <= at and _stands(wanted, source.text) for source in sources)


def _stands(wanted: str, text: str) -> bool:
    place = text.find(wanted)
    while place >= 0:
        if _free(text, place - 1, -1) and _free(text, place + len(wanted), 1):
            return True
        place = text.find(wanted, place + 1)
    return False


def _free(text: str, place: int, step: int) -> bool:
    """Returns whether a value may end here: no letter, no digit, and no sign between two digits is next to it."""
    if not 0 <= place < len(text):
        return True
    sign = text[place]
    if (sign.isalnum() and sign < "\u2e80") or sign == "_":
        return False
    beyond = place + step
    return sign not in ".,:-/" or not 0 <= beyond < len(text) or not text[beyond].isalnum()


MOST_STEPS = 40_000
"""The limit of comparisons for one trace, in numbers compared with. Claims that are not compared stay open."""

PLAINER = 16
"""Comparisons of numbers that take as long as one calculation."""
_LONGEST = 50_000
"""Characters of a source that :meth:`Known.speaks_of` reads."""


class Known:
    """Answers questions about the sources' values, which it reads when first asked. ``at``: the time by which a value
    had to be known."""

    def __init__(self, sources: Sequence[Source]) -> None:
        self.sources = sources
        self._index: Index | None = None
        self._squeezed: list[str] | None = None
        self._lower: list[str] | None = None
        self._sorted: list[float] | None = None
        self._groups: list[tuple[int, Group]] | None = None
        self._named: list[tuple[int, float, frozenset[str]]] | None = None
        self._zones: Zones | None = None
        self._stated: list[tuple[int, str, frozenset[str]]] | None = None
        self._left = MOST_STEPS

    def may_compare(self, numbers: int) -> bool:
        """Counts a comparison with so many numbers; returns whether the limit still allows it."""
        self._left -= numbers
        return self._left > 0

    @property
    def exhausted(self) -> bool:
        """Whether the limit left out a comparison."""
        return self._left <= 0

    @property
    def index(self) -> Index:
        if self._index is None:
            self._index = Index(self.sources)
        return self._index

    @property
    def zones(self) -> Zones:
        if self._zones is None:
            self._zones = zones(self.sources)
        return self._zones

    def has_key(self, key: str, at: int) -> bool:
        """Returns whether a source has an identifier, an address or a name by the time ``at``, in any spelling."""
        since = self.index.keys.get(key)
        if since is not None and since <= at:
            return True
        if key.isdigit() and len(key) < 9:
            return False
        return any(source.at <= at and key in text for source, text in zip(self.sources, self._texts(), strict=True))

    def says(self, who: str, value: Value) -> bool:
        """Returns whether a source of the kind ``who`` holds an identifier or a day, at any time."""
        if value.kind == DATE:
            return not self.index.dates_of.get(who, set()).isdisjoint([each % 10000 for each in value.readings])
        texts = zip(self.sources, self._texts(), strict=True)
        return any(source.who == who and value.key in text for source, text in texts)

    def ends_with(self, digits: str, at: int) -> bool:
        """Returns whether an identifier ends with (or begins with) these digits: "the card ending in 4421"."""
        return self.may_compare(len(self.index.keys) // PLAINER) and any(
            since <= at and (key.endswith(digits) or key.startswith(digits)) for key, since in self.index.keys.items()
        )

    def near(self, number: float, tolerance: float, at: int) -> bool:
        """Returns whether a source has a number within ``tolerance`` of this one, by the time ``at``."""
        if self._sorted is None:
            self._sorted = sorted(self.index.numbers)
        place = bisect_left(self._sorted, number - tolerance)
        while place < len(self._sorted) and self._sorted[place] <= number + tolerance:
            if self.index.numbers[self._sorted[place]] <= at:
                return True
            place += 1
        return False

    def groups(self, at: int) -> list[Group]:
        """Returns the groups of numbers that belong together, of sources known by the time ``at``."""
        if self._groups is None:
            first: dict[Group, int] = {}
            for source in self.sources:
                for group in islice(together(source.raw), MOST_GROUPS):
                    first.setdefault(group, source.at)
                if len(first) > MOST_GROUPS:
                    break
            self._groups = [(since, group) for group, since in first.items()]
        return [group for since, group in self._groups if since <= at]

    def named(self, sentence: str, at: int) -> set[float]:
        """Returns the numbers of results whose names share a word with the sentence, such as a balance."""
        if self._named is None:
            self._named = [
                (source.at, number, words)
                for source in self.sources
                if source.who == RESULT
                for number, words in islice(named(source.raw), MOST_GROUPS)
            ]
        said = words_of(sentence)
        return {number for since, number, words in self._named if since <= at and not said.isdisjoint(words)}

    def speaks_of(self, value: Value, about: str, at: int) -> bool:
        """Returns whether a source states a value of this kind in a sentence with two words of ``about``."""
        if self._stated is None:
            self._stated = [
                (source.at, kind, _singular(words_of(each)))
                for source in self.sources
                for each in SENTENCE.split(source.text[:_LONGEST])
                if any(map(str.isdigit, each))
                for kind in {found.kind for found in scan(each)}
            ]
        said = _singular(words_of(about))
        least = min(2, len(said))
        return self.may_compare(len(self._stated) // PLAINER) and any(
            kind == value.kind and since <= at and len(said & words) >= least for since, kind, words in self._stated
        )

    def spelled(self, words: tuple[str, ...], at: int) -> bool:
        """Returns whether a source has one of these words by the time ``at``."""
        if self._lower is None:
            self._lower = [source.text.casefold() for source in self.sources]
        there = [text for source, text in zip(self.sources, self._lower, strict=True) if source.at <= at]
        return any(_word_in(word, text) for word in words for text in there)

    def _texts(self) -> list[str]:
        if self._squeezed is None:
            self._squeezed = [squeezed(source.text) for source in self.sources]
        return self._squeezed


def _singular(words: frozenset[str]) -> frozenset[str]:
    return frozenset(word.removesuffix("s") for word in words)


def _word_in(word: str, text: str) -> bool:
    found = text.find(word)
    while found >= 0:
        after = found + len(word)
        before_free = found == 0 or not text[found - 1].isalpha() or not word.isascii()
        if before_free and (after >= len(text) or not text[after].isalpha() or not word.isascii()):
            return True
        found = text.find(word, after)
    return False
