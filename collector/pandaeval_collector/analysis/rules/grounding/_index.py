"""All values of all sources, by kind, with the time of the first source that has each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pandaeval_collector.analysis.rules.grounding._numbers import readings
from pandaeval_collector.analysis.rules.grounding._scan import scan
from pandaeval_collector.analysis.rules.grounding._sources import USER, Source
from pandaeval_collector.analysis.rules.grounding._value import DATE, DURATION, IDENTIFIER, PERCENTAGE, TIME, Value

Times = dict[float, int]


class Index:
    """``numbers``: of all kinds, of identifiers too; ``plain``: those to calculate with; ``said``: the user's.
    ``keys``: identifiers and numbers without case and separators. ``dates_of``: days without years, by who has them."""

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
