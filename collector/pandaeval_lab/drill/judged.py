"""Puts some of a drill's copies, and their originals, to a judge: what its verdicts are worth on these runs.

A call that fails is a verdict on nothing: the copy then counts as not judged by that metric.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice, zip_longest
from typing import Literal

from pandaeval_collector.base.result import Result
from pandaeval_collector.base.score import Why
from pandaeval_collector.cli._output import many
from pandaeval_collector.jobs.setup import JudgeConfig
from pandaeval_collector.judge.selection import Selection
from pandaeval_collector.pipeline.line.understanding import ScoredTrace
from pandaeval_collector.scoring.evaluator import Evaluator
from pandaeval_collector.scoring.registry import registry
from pandaeval_collector.show.view.texts import dollars
from pandaeval_lab.drill.drill import Drill, Judgeable
from pandaeval_lab.labels.judge_report import Figure, JudgeReport, share_figure
from pandaeval_lab.replay.judge import ReplayJudge, capped
from pandaeval_lab.replay.replay import replay
from pandaeval_lab.replay.trace_files import TraceFiles

_FAILED = {*map(str, (Why.JUDGE_FAILED, Why.INVALID_VERDICT, Why.TIMEOUT, Why.METRIC_ERROR))}
_FAILED |= {*map(str, (Why.OVER_BUDGET, Why.INJECTION_SUSPECTED, Why.SHUTDOWN))}
State = Literal["passes", "fails", "not judged"]
_NOTICED = {
    "by the judge": [(True, True), (True, False)],
    "without a model": [(True, True), (False, True)],
    "by the judge alone": [(True, False)],
    "without a model alone": [(False, True)],
    "by neither": [(False, False)],
}
"""Pairs of whether the judge, and a metric without a model, noticed a fault."""


def judge_alone(scorer: Evaluator) -> Evaluator:
    """Makes an evaluator that asks a judge about every trace and its turns, and scores nothing else."""
    settings = scorer.settings
    known = registry(settings.modules).values()
    asked = {each.key for each in known if each.kind == "llm" and each.level in ("trace", "turn")}
    enabled = asked if settings.enabled is None else asked & {*settings.enabled}
    assert settings.judge is not None, "somebody is to be asked"
    return Evaluator(
        scorer.embedder, replace(settings, enabled=enabled, judge=replace(settings.judge, selection=Selection()))
    )


class JudgedDrill:
    """Puts copies of one drill to a judge, for at most ``budget`` US dollars."""

    def __init__(
        self, drill: Drill, scorer: Evaluator, judge: JudgeConfig, environ: Mapping[str, str], budget: float
    ) -> None:
        self._drill, self._scorer, self._left = drill, judge_alone(scorer), budget
        self._judge, self._environ = judge, environ

    def counts(self, copies: Sequence[Judgeable], on_done: Callable[[int, int], None]) -> JudgedCounts:
        """Asks the judge about the copies and their originals, and counts its verdicts."""
        counts, before = JudgedCounts(self._judge.setup.models), self._left
        for done, (copy, was, now) in enumerate(self._drill.scored_again(copies, self._score), 1):
            counts.add(was, now, bool(copy.noticed))
            on_done(done, len(copies))
        counts.usd = before - self._left
        return counts

    def _score(self, files: TraceFiles, where: Callable[[ScoredTrace], bool] | None) -> Iterator[Result]:
        config = capped(self._judge, self._left)
        with ReplayJudge(files.store, self._scorer, config, self._environ) as judge:
            yield from replay(files, self._scorer, judge, where=where)
            self._left -= judge.cost_usd


@dataclass(slots=True)
class MetricCounts:
    """What one judged metric says of copies and their originals. ``n``: pairs of which it judged both and passes the
    original; ``noticed``: of these, copies that it fails; ``lower``: of all pairs that it judged, copies that it gives
    a lower score; ``alarms``: originals that it fails, of ``originals``."""

    n: int = 0
    noticed: int = 0
    pairs: int = 0
    lower: int = 0
    originals: int = 0
    alarms: int = 0
    not_judged: int = 0

    def add(self, before: Sequence[Result], after: Sequence[Result]) -> None:
        was, now = state(before), state(after)
        self.originals += was in ("passes", "fails")
        self.alarms += was == "fails"
        self.not_judged += was is not None and "not judged" in (was, now)
        if was in ("passes", "fails") and now in ("passes", "fails"):
            self.pairs += 1
            self.lower += _worst(after) < _worst(before)
            self.n += was == "passes"
            self.noticed += was == "passes" and now == "fails"

    def figures(self, metric: str) -> Iterator[Figure]:
        yield share_figure(f"{metric}: noticed", self.noticed, self.n, "faulty runs")
        yield share_figure(f"{metric}: scored lower", self.lower, self.pairs, "faulty runs")
        yield share_figure(f"{metric}: original fails", self.alarms, self.originals, "originals")


@dataclass(slots=True)
class JudgedCounts:
    """A judge's verdicts on a drill's copies. ``beside``: how many copies the judge noticed or not, and the metrics
    without a model; copies of which neither is known are in ``not_judged``."""

    models: Sequence[str]
    metrics: dict[str, MetricCounts] = field(default_factory=dict)
    beside: Counter[tuple[bool, bool]] = field(default_factory=Counter)
    not_judged: int = 0
    usd: float = 0.0

    def add(self, before: Iterable[Result], after: Iterable[Result], inline: bool) -> None:
        """Counts one copy with its original. ``inline``: whether a metric without a model fails it."""
        was, now = _by_metric(before), _by_metric(after)
        told: dict[str, tuple[State | None, State | None]] = {}
        for metric in sorted({*was, *now}):
            one, other = was.get(metric, []), now.get(metric, [])
            self.metrics.setdefault(metric, MetricCounts()).add(one, other)
            told[metric] = state(one), state(other)
        pairs = [pair for pair in told.values() if pair[0] in ("passes", "not judged")]
        noticed = ("passes", "fails") in pairs
        # A failed call leaves open whether a metric that passes the original fails the copy.
        if not noticed and (not pairs or any("not judged" in pair for pair in pairs)):
            self.not_judged += 1
            return
        self.beside[noticed, inline] += 1

    def report(self) -> JudgeReport:
        """Returns the report on the judge."""
        total = self.beside.total()
        about = {
            "models": [*self.models],
            "cost_usd": round(self.usd, 6),
            "copies": total + self.not_judged,
            "not_judged": {"any metric": self.not_judged}
            | {name: counts.not_judged for name, counts in sorted(self.metrics.items())},
        }
        figures = [figure for name, counts in sorted(self.metrics.items()) for figure in counts.figures(name)]
        for name, pairs in _NOTICED.items():
            hits = sum(self.beside[pair] for pair in pairs)
            figures.append(share_figure(f"noticed {name}", hits, total, "faulty runs"))
        cost = f", {dollars(self.usd)}" if self.usd else ""
        title = f"{', '.join(self.models)} as a judge, {many(total + self.not_judged, 'faulty run')}{cost}"
        notes = [f"{many(self.not_judged, 'faulty run')} not judged: a call failed, or the budget ended"]
        return JudgeReport(title, about, figures, notes if self.not_judged else ())


def state(results: Sequence[Result]) -> State | None:
    """Returns what a metric says of a run by all its results, one per turn if it looks at turns; ``None`` if it does
    not apply."""
    if any(result.success is False for result in results):
        return "fails"
    if any(result.outcome == "unscored" and result.why in _FAILED for result in results):
        return "not judged"
    return "passes" if any(result.outcome == "scored" for result in results) else None


def _worst(results: Sequence[Result]) -> float:
    return min(result.score for result in results if result.score is not None)


def _by_metric(results: Iterable[Result]) -> dict[str, list[Result]]:
    found: dict[str, list[Result]] = {}
    for result in results:
        if result.evaluator.kind == "llm":
            found.setdefault(f"{result.unit.level}.{result.metric}", []).append(result)
    return found


def chosen_copies(kept: Mapping[str, Sequence[Judgeable]], most: int) -> Iterator[Judgeable]:
    """Returns up to ``most`` copies: the first of each fault, then the second of each, and so on."""
    rows = zip_longest(*kept.values())
    return islice((copy for row in rows for copy in row if copy is not None), most)
