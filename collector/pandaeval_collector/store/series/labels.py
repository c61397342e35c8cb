"""The labels of the score series, and how many values and combinations of them there may be."""

from __future__ import annotations

from collections.abc import Iterable

from pandaeval_collector.base.instrument import MAX_SERIES, Attributes
from pandaeval_collector.store.tally import OTHER, folded
from pandaeval_otel.base.names import bounded

_REMEMBERED = 10_000
CAPS = {"agent": 200, "service": 100, "environment": 20, "model": 50, "label": 100}
"""How many distinct values a label may take; what comes later is ``__other__``, for good."""


class SeriesLabels:
    """Label values within their caps and series within theirs, the same ones after a restart. One thread.

    ``known``: label values that were admitted before, ``series``: names and attributes of the series that there are.
    """

    def __init__(
        self,
        known: Iterable[tuple[str, str]] = (),
        series: Iterable[tuple[str, Attributes]] = (),
        most: int = MAX_SERIES,
    ) -> None:
        self._known: dict[str, set[str]] = {kind: set() for kind in CAPS}
        for kind, value in known:
            self._known.setdefault(kind, set()).add(bounded(value))
        self._series, self._most = set(series), most
        self.folded = 0
        """Results that were counted under ``__other__`` since there are as many series as there may be."""
        self._new: list[tuple[str, str]] = []
        self._named: dict[tuple[str | None, ...], Attributes] = {}

    def admit(self, kind: str, value: str) -> str:
        """Returns the value, or ``__other__`` when its kind has as many values as it may."""
        if not value:
            return ""
        known = self._known[kind]
        if value in known or (value := bounded(value)) in known:
            return value
        if len(known) >= CAPS[kind]:
            return OTHER
        known.add(value)
        self._new.append((kind, value))
        return value

    def named(
        self, metric: str, level: str, agent: str, service: str, environment: str | None, *verdict: str | None
    ) -> Attributes:
        """Returns the attributes of a series; ``verdict``: outcome, why and passed, of one that counts results by them.
        They are remembered: what was admitted once stays so, and the same few are asked for all the time."""
        key = (metric, level, agent, service, environment, *verdict)
        found = self._named.get(key)
        if found is None:
            if len(self._named) >= _REMEMBERED:
                self._named.clear()
            found = self._named[key] = filled(
                ("gen_ai.evaluation.name", bounded(metric)),
                ("pandaeval.level", level),
                ("gen_ai.agent.name", self.admit("agent", agent)),
                ("pandaeval.service", self.admit("service", service)),
                ("deployment.environment.name", self.admit("environment", environment or "")),
                *zip(("pandaeval.outcome", "pandaeval.why", "pandaeval.passed"), verdict, strict=False),
            )
        return found

    @property
    def series(self) -> int:
        """The number of series."""
        return len(self._series)

    def within(self, name: str, attributes: Attributes) -> Attributes:
        """Returns the attributes of the series that a measurement is added to: its own if it exists or may be added,
        else those with ``__other__`` for all that senders choose. Sums over all series stay what they are."""
        key = (name, attributes)
        if key not in self._series:
            if len(self._series) >= self._most:
                key = (name, folded(attributes))
            self._series.add(key)
        return key[1]

    def take_new(self) -> list[tuple[str, str]]:
        """Values admitted since the last call, to be stored with the results that use them."""
        new, self._new = self._new, []
        return new


def filled(*attributes: tuple[str, str | None]) -> Attributes:
    """Makes attributes of pairs, and leaves out those without a value."""
    return tuple((key, value) for key, value in attributes if value)
