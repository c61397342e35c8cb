"""The values that stand in the sources, each with the time from which the agent had it."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable

from pandaeval_collector.signals.grounding._fold import squeezed
from pandaeval_collector.signals.grounding._numbers import readings
from pandaeval_collector.signals.grounding._scan import scan
from pandaeval_collector.signals.grounding._sources import CALL, RESULT, USER, Source
from pandaeval_collector.signals.grounding._value import DATE, DURATION, IDENTIFIER, PERCENTAGE, TIME, Value

_MOST_VALUES = 20_000
Times = dict[float, int]
"""Each reading, and the time of the first source that has it."""


class Known:
    """Built once per trace, from sources in order of time; every question names the time by which it had to be known.

    ``numbers``: of all kinds, parts of identifiers too; ``plain``: those to calculate with; ``said``: the user's.
    ``keys``: identifiers without case and separators. ``cut``: more values than are looked at."""

    def __init__(self, sources: Iterable[Source]) -> None:
        self.sources = list(sources)
        self.numbers: Times = {}
        self.plain: Times = {}
        self.said: Times = {}
        self.dates: Times = {}
        self.times: Times = {}
        self.durations: Times = {}
        self.keys: dict[str, int] = {}
        self.own: dict[str, int] = {}
        self.cut = False
        self._squeezed: list[tuple[int, str]] | None = None
        self._sorted: list[float] | None = None
        count = 0
        for source in self.sources:
            for value in scan(source.text):
                self._take(source, value)
                count += 1
            for length in source.counts:
                self.numbers.setdefault(float(length), source.at)
            if count > _MOST_VALUES:
                self.cut = True
                break

    def has_key(self, key: str, at: int) -> bool:
        """Whether an identifier, an address or a name stands there by then, in any spelling."""
        since = self.keys.get(key)
        if since is not None and since <= at:
            return True
        if key.isdigit() and len(key) < 9:
            return False
        return any(since <= at and key in text for since, text in self._texts())

    def ends_with(self, digits: str, at: int) -> bool:
        """Whether an identifier ends with (or begins with) these digits: "the card ending in 4421"."""
        return any(since <= at and (key.endswith(digits) or key.startswith(digits)) for key, since in self.keys.items())

    def near(self, number: float, tolerance: float, at: int) -> bool:
        """Whether a number stands there by then that is this one, give or take ``tolerance``."""
        if self._sorted is None:
            self._sorted = sorted(self.numbers)
        place = bisect_left(self._sorted, number - tolerance)
        while place < len(self._sorted) and self._sorted[place] <= number + tolerance:
            if self.numbers[self._sorted[place]] <= at:
                return True
            place += 1
        return False

    def spelled(self, words: tuple[str, ...], at: int) -> bool:
        """Whether one of these words stands there by then."""
        return any(
            source.at <= at and any(_word_in(word, source.text) for word in words) for source in self.sources
        )

    def _texts(self) -> list[tuple[int, str]]:
        if self._squeezed is None:
            self._squeezed = [(source.at, squeezed(source.text)) for source in self.sources if source.who != CALL]
            self._squeezed += [(source.at, squeezed(source.text)) for source in self.sources if source.who == CALL]
        return self._squeezed

    def _take(self, source: Source, value: Value) -> None:
        at = source.at
        if value.kind == DATE:
            _note(self.dates, value.readings, at)
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


def _word_in(word: str, text: str) -> bool:
    found = text.casefold().find(word)
    while found >= 0:
        after = found + len(word)
        before_free = found == 0 or not text[found - 1].isalpha() or not word.isascii()
        if before_free and (after >= len(text) or not text[after].isalpha() or not word.isascii()):
            return True
        found = text.casefold().find(word, after)
    return False


__all__ = ["RESULT", "Known"]
