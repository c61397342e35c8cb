"""Pass rates by metric and agent, from judged scores, corrected by human labels."""

from __future__ import annotations

import asyncio
import sqlite3
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from operator import add
from typing import TypeVar

from pandaeval_collector.analysis.stats.corrected_rate import (
    LEAST_LABELS,
    CorrectedRate,
    Labelled,
    Scores,
    corrected_rate,
)
from pandaeval_collector.base.instrument import Attributes
from pandaeval_collector.base.result import wire_name
from pandaeval_collector.base.telemetry import Telemetry
from pandaeval_collector.store import StoreAccess, people

MOST_AGENTS = 50
"""Maximum agents per metric, most runs first. All other agents count as a single agent."""
OTHER = "__other__"
_OPEN = "passed IS NULL AND threshold IS NOT NULL"
"""The condition on an undecided verdict."""
_UNLABELLED = f"""
    SELECT metric, agent, sum(weight), sum(total), sum(passed), sum(weight * weight), sum(runs), sum(open) FROM
      (SELECT metric, agent, count(*) AS runs, sum(1.0 / probability) AS weight, sum(score / probability) AS total,
              sum(iif({_OPEN}, 0, coalesce(passed, score >= 0.5)) / probability) AS passed,
              sum(iif({_OPEN}, 1, 0) / probability) AS open
       FROM {people.STANDING} WHERE probability > 0
       GROUP BY metric, agent, CASE session WHEN '' THEN unit ELSE session END)
    GROUP BY metric, agent ORDER BY count(*) DESC, metric, agent
"""  # noqa: S608
_BY_JUDGE = f"""
    SELECT metric, agent, model || ' ' || version, sum(1.0 / probability), sum(score / probability)
    FROM {people.STANDING} WHERE probability > 0 GROUP BY metric, agent, model, version
"""  # noqa: S608
_PASSED = "CASE WHEN l.passed IS NULL THEN l.score >= coalesce(s.threshold, 0.5) - 1e-9 ELSE l.passed END"
_LABELLED = f"""
    SELECT s.metric, s.agent, s.model || ' ' || s.version, avg({_PASSED}), s.score, s.probability,
           max(coalesce(d.probability, l.probability)), CASE s.session WHEN '' THEN s.unit ELSE s.session END
    FROM {people.STANDING} s JOIN people_labels l USING (metric, unit)
         LEFT JOIN label_draws d USING (metric, unit)
    WHERE s.probability > 0 AND l.probability IS NOT {people.PICKED} GROUP BY s.metric, s.unit
"""  # noqa: S608
K = TypeVar("K")
Key = tuple[str, str]
"""Metric (``level.name``) and agent."""

_NAME = "pandaeval.pass_rate"


@dataclass(frozen=True, slots=True)
class AgentRate:
    """A pass rate.

    ``judge``: judge's pass share of decided runs. ``undecided``: share of unclear or disputed runs. ``rate``:
    ``None`` below 50 labelled drawn runs (``n``). ``by_hand``: labelled runs chosen by people.
    """

    metric: str
    agent: str
    n: int
    judge: float | None
    rate: CorrectedRate | None
    undecided: float = 0.0
    by_hand: int = 0

    @property
    def why(self) -> str:
        """Why there is no rate, or ``""``."""
        if self.rate is not None:
            return ""
        chosen = f"; {self.by_hand} that nobody drew serve calibrate alone" if self.by_hand else ""
        return f"takes {LEAST_LABELS} drawn labels{chosen}"


_Label = tuple[float, float, float, float | None, str]
"""People's verdict on a run, the judge's score, the probability of judging, the probability of labelling (if known),
and the session."""


def pass_rates(connection: sqlite3.Connection) -> list[AgentRate]:
    """Estimate the rates of all labelled metrics and agents. Blocks on SQLite."""
    of_metric: dict[str, set[str]] = defaultdict(set)

    def listed(metric: str, agent: str) -> str:
        known = of_metric[metric]
        if agent not in known and len(known) >= MOST_AGENTS:
            return OTHER
        known.add(agent)
        return agent

    rows = connection.execute(_UNLABELLED)
    populations = _summed(((metric, listed(metric, agent)), sums) for metric, agent, *sums in rows)
    # A labelled run's score counts by its distance from the mean that its own judge (model and version) gave, so that a
    # change of judge or question within the window does not move the rate.
    rows = connection.execute(_BY_JUDGE)
    judges = _summed(((metric, listed(metric, agent), judge), sums) for metric, agent, judge, *sums in rows)
    labels: dict[Key, list[_Label]] = defaultdict(list)
    for metric, agent, judge, passed, score, judged, chance, session in connection.execute(_LABELLED):
        agent = listed(metric, agent)
        (weight, total, *_), (judges_weight, judges_total) = populations[metric, agent], judges[metric, agent, judge]
        score += total / weight - judges_total / judges_weight
        labels[metric, agent].append((passed, score, judged, chance, session))
    return [_rate(key, labels[key], populations[key]) for key in sorted(labels)]


def _rate(key: Key, labels: list[_Label], population: list[float]) -> AgentRate:
    """Estimate a rate.

    A drawn run has the weight 1 / P(judged and labelled). Runs that people chose count only if every run is labelled.
    """
    weight, total, passed, squares, runs, undecided = population
    if len(labels) >= runs:
        kept, chances = labels, [judged for _, _, judged, _, _ in labels]
    else:
        kept = [label for label in labels if label[3] is not None]
        chances = [judged * (drawn or 1.0) for _, _, judged, drawn, _ in kept]
    rate = None
    if len(kept) >= LEAST_LABELS:
        people, judge, _, _, sessions = zip(*kept, strict=True)
        labelled = Labelled.of(people, judge, [1.0 / chance for chance in chances], sessions)
        rate = corrected_rate(labelled, Scores(total / weight, weight**2 / squares))
    passing = passed / (weight - undecided) if weight > undecided else None
    return AgentRate(*key, len(kept), passing, rate, undecided / weight, len(labels) - len(kept))


def _summed(rows: Iterable[tuple[K, list[float]]]) -> dict[K, list[float]]:
    found: dict[K, list[float]] = {}
    for key, values in rows:
        found[key] = [*map(add, found[key], values)] if key in found else values
    return found


class PassRates:
    """Computes a store's rates on a thread while labels exist. On one event loop."""

    def __init__(self, store: StoreAccess, telemetry: Telemetry) -> None:
        self._store = store
        self._shown: dict[tuple[str, Attributes], float] = {}
        telemetry.family(lambda: self._shown)

    async def update(self) -> None:
        def calculate() -> list[AgentRate]:
            with self._store.reads.snapshot():
                return pass_rates(self._store.reads.connection()) if self._store.people.has_labels() else []

        rates = await asyncio.to_thread(calculate)
        shown: dict[tuple[str, Attributes], float] = {}
        for each in rates:
            level, _, name = each.metric.partition(".")
            named = (
                ("gen_ai.evaluation.name", wire_name(level, name)),
                ("pandaeval.level", level),
                ("gen_ai.agent.name", each.agent),
            )
            attributes = tuple(pair for pair in named if pair[1])
            shown[f"{_NAME}.labels", attributes] = float(each.n)
            if each.rate is not None:
                values = {"": each.rate.value, ".low": each.rate.low, ".high": each.rate.high}
                shown |= {(f"{_NAME}{end}", attributes): value for end, value in values.items()}
        self._shown = shown
