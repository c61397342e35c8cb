"""Counts and rates of results by metric, agent or service."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from pandaeval_collector.analysis.stats.quantiles import wilson
from pandaeval_collector.base.result import DISPUTED, UNCLEAR
from pandaeval_collector.show.view.texts import number, percent, redacted_line

_NORMAL = 1.959964
"""The normal quantile of a 95 % interval."""
Row = Mapping[str, Any]


@dataclass(slots=True)
class OutcomeCounts:
    """Counts of results.

    ``scored``: also without a verdict. ``passed``, ``failed``: decided verdicts. ``unscored``: by reason. ``unclear``,
    ``disputed``: open verdicts.
    """

    scored: int = 0
    assumed: int = 0
    passed: int = 0
    failed: int = 0
    unscored: Counter[str] = field(default_factory=Counter)
    unclear: int = 0
    disputed: int = 0

    def add(
        self, outcome: str | None, success: bool | None, why: str | None, times: int = 1, label: str | None = None
    ) -> None:
        if outcome == "unscored":
            self.unscored[why or ""] += times
        elif outcome == "assumed":
            self.assumed += times
        else:
            self.scored += times
            self.passed += times * (success is True)
            self.failed += times * (success is False)
            self.unclear += times * (label == UNCLEAR)
            self.disputed += times * (label == DISPUTED)

    def add_verdict(self, verdict: str, times: int) -> None:
        outcome, _, why = verdict.partition(": ")
        success = {"passed": True, "failed": False}.get(verdict)
        self.add(outcome, success, why, times, verdict)

    @classmethod
    def of(cls, rate: Row) -> Self:
        """Return the counts of a row of ``/rates``."""
        return cls(**{name: rate[name] for name in cls.__slots__} | {"unscored": Counter(rate["unscored"])})

    def to_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}

    @property
    def judged(self) -> int:
        return self.passed + self.failed

    @property
    def counts_only_failures(self) -> bool:
        """Whether scores without a failure have no verdict, as for metrics that are evidence only of failures."""
        return self.failed > 0 == self.passed and self.scored > self.judged + self.open

    @property
    def share(self) -> float | None:
        """The passed share 0..1, or ``None``."""
        return self.passed / self.judged if self.judged and not self.counts_only_failures else None

    @property
    def open(self) -> int:
        return self.unclear + self.disputed

    @property
    def decided(self) -> str:
        """Return ``80 % of 70 decided, 20 unclear, 1 disputed``."""
        text = f"{self.judged:,} decided"
        if self.share is not None:
            text = percent(self.share).replace("%", " % of ") + text
        for count, label in ((self.unclear, UNCLEAR), (self.disputed, DISPUTED)):
            text += f", {count:,} {label}" if count else ""
        return text

    def handled(self, unit: str) -> str:
        """Return ``5 of 10 sessions were handled correctly: 50% (24% to 76%)``, with the 95 % interval, or ``""``."""
        if self.share is None:
            return f"{unit}s handled correctly: {self.decided}" if self.open else ""
        low, high = wilson(self.share, self.judged, _NORMAL)
        between = f" ({low:.0%} to {high:.0%})"
        units = f"{unit} was" if self.judged == 1 else f"{unit}s were"
        text = f"{self.passed:,} of {self.judged:,} {units} handled correctly: {percent(self.share)}{between}"
        if self.open:
            units = f"{unit} was" if self.passed == 1 else f"{unit}s were"
            decided = self.decided.replace(" decided", f" decided{between}")
            text = f"{self.passed:,} {units} handled correctly: {decided}"
        if self.missing:
            text += f"; {self.missing:,} not judged ({self.whys})"
        return text

    @property
    def missing(self) -> int:
        return self.unscored.total()

    @property
    def whys(self) -> str:
        """Return reasons without a score, as ``no_content 3, timeout 1``."""
        return ", ".join(f"{redacted_line(why, 40)} {times}" for why, times in self.unscored.most_common())

    @property
    def text(self) -> str:
        """Return ``0.750 passed of 4 (1 failed); unscored: no_content 2``, or :attr:`decided`."""
        text = "no verdicts"
        if self.counts_only_failures:
            text = f"{self.failed} of {self.scored} failed"
        elif self.judged:
            text = f"{number(self.share, '.3f')} passed of {self.judged} ({self.failed} failed)"
        if self.open:
            text = f"{self.decided} ({self.failed} failed)"
        if self.unscored:
            text += f"; unscored: {self.whys}"
        return text


VERDICTS = {"session.correctness": "session", "trace.correctness": "run"}
"""The metrics that show whether an agent did its job, with their units. The first metric with results is shown."""


def handled(tallies: Mapping[str, OutcomeCounts]) -> str:
    """Return :meth:`OutcomeCounts.handled` of sessions or runs, ``""`` without verdicts.

    ``tallies``: counts by metric.
    """
    shares = (tallies[metric].handled(unit) for metric, unit in VERDICTS.items() if metric in tallies)
    return next(filter(None, shares), "")


def handled_line(rates: Iterable[Row]) -> str:
    """Return :func:`handled` for all agents, or that no run is judged."""
    tallies = {f"{rate['level']}.{rate['metric']}": OutcomeCounts.of(rate) for rate in rates if rate["agent"] is None}
    return handled(tallies) or "no run was judged for correctness"


def rate_lines(rates: Iterable[Row]) -> list[str]:
    """Return a line per metric and agent, in the order of ``rates``."""
    of_agents = (rate for rate in rates if rate["agent"] is not None)
    return [
        f"{_metric(rate['level'], rate['metric'])} of {_agent(rate['agent'])}: {OutcomeCounts.of(rate).text}"
        for rate in of_agents
    ]


def _metric(level: str, name: str) -> str:
    return redacted_line(f"{level}.{name}", 80)


def _agent(name: str) -> str:
    return f'agent "{redacted_line(name, 80)}"' if name else "an agent without a name"
