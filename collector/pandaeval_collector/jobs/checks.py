"""Puts together, from the configuration, what looks at verdicts more than once: votes, retests, a second judge."""

from __future__ import annotations

import asyncio
import json
import logging
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pandaeval_collector.analysis.stats import paired
from pandaeval_collector.analysis.stats.paired import Pair, PairedEstimate
from pandaeval_collector.base.score import Finding, Score
from pandaeval_collector.base.telemetry import Telemetry
from pandaeval_collector.jobs.anew import Again, Votes, anew, asked, pay, said
from pandaeval_collector.jobs.outcome import warn_of_second
from pandaeval_collector.jobs.setup import JudgeConfig
from pandaeval_collector.judge.call import CallFailedError, OverBudgetError
from pandaeval_collector.judge.desk import Desk, Judge
from pandaeval_collector.judge.pack import Pack
from pandaeval_collector.judge.selection import included
from pandaeval_collector.scoring.evaluator import Question
from pandaeval_collector.store import Store

# Keeps what two verdicts on the same run said, a judge's own second one or another judge's, and shows how far they
# agree. Kept in the store, shown as gauges.
#
# Never a score of anybody's agent: nothing here enters results' values, sessions or series of scores.
_log = logging.getLogger(__name__)

_KEY = "judge.compared"
_KEEP = 200
"""Comparisons kept for the figures of each check, metric and model: old ones must not hide a change."""
ENOUGH = 20
"""With fewer comparisons, no statement is made on whether a judge discriminates."""
_LEAST_SPREAD, _LEAST_DISCRIMINATION = 0.02, 0.2
"""A judge whose verdicts on different runs are closer than this, or differ by chance for the most part, does not
discriminate."""
ALIKE = "does not discriminate"

Series = tuple[str, str, str]
"""Check (``retest`` or ``second``), metric, model."""


@dataclass(frozen=True, slots=True)
class VerdictAgreement:
    """The figures of the newest ``n`` comparisons. ``agreement``: 1 minus the mean distance; ``flips``: pairs on two
    sides of the threshold; ``noise``: standard deviation of verdicts on one run, ``spread``: of first verdicts on
    different runs, ``discrimination``: the share of variance between runs (both NaN for a single comparison)."""

    n: int
    agreement: float
    flips: int
    noise: float
    spread: float
    discrimination: float
    kappa: PairedEstimate | None
    difference: PairedEstimate | None

    @property
    def alike(self) -> bool:
        """Whether the judge says much the same of all runs, so that its agreement with itself proves nothing. Runs may
        indeed all be good: only runs that are known to be bad can tell."""
        if self.n < ENOUGH:
            return False
        return self.spread < _LEAST_SPREAD or self.discrimination < _LEAST_DISCRIMINATION

    def to_dict(self) -> dict[str, Any]:
        """Returns the figures for the metadata of a result."""
        shown: dict[str, Any] = {"value": self.agreement, "n": self.n, "flips": self.flips, "noise": self.noise}
        if self.n > 1:
            shown["spread"] = self.spread
        for name, each in (("kappa", self.kappa), ("difference", self.difference)):
            if each is not None:
                shown[name] = {"value": each.value, "ci_low": each.low, "ci_high": each.high}
        return {**shown, "label": ALIKE} if self.alike else shown


class Agreement:
    """Keeps all comparisons of one store and their figures. On one event loop."""

    def __init__(self, store: Store, telemetry: Telemetry) -> None:
        self._store, self._telemetry = store, telemetry
        self._pairs: dict[Series, list[Pair]] = {}
        self._thresholds: dict[Series, float] = {}
        self._figures: dict[Series, VerdictAgreement] = {}
        self._named: set[Series] = set()
        for name, held in json.loads(store.reads.get(_KEY) or "{}").items():
            check, metric, model = name.split("\t")
            self._take((check, metric, model), [(one, other) for one, other in held["pairs"]], held["threshold"])

    async def add(self, check: str, metric: str, model: str, pair: Pair, threshold: float) -> None:
        """Stores one comparison: first and second verdict, and the threshold; it is in the store when this returns."""
        series = check, metric, model
        self._take(series, [*self._pairs.get(series, ()), pair][-_KEEP:], threshold)
        self._name(series)
        body = {
            "\t".join(each): {"threshold": self._thresholds[each], "pairs": pairs}
            for each, pairs in self._pairs.items()
        }
        await asyncio.wrap_future(self._store.put(_KEY, json.dumps(body)))

    def of(self, check: str, metric: str, model: str) -> VerdictAgreement | None:
        """Returns the figures of a check, metric and model; ``None`` before the first comparison."""
        return self._figures.get((check, metric, model))

    def _take(self, series: Series, pairs: list[Pair], threshold: float) -> None:
        is_new = series not in self._pairs
        self._pairs[series], self._thresholds[series] = pairs, threshold
        self._figures[series] = VerdictAgreement(
            len(pairs),
            paired.agreement(pairs),
            paired.flips(pairs, threshold),
            paired.noise(pairs),
            paired.spread([first for first, _ in pairs]),
            paired.discrimination(pairs),
            paired.kappa(pairs, threshold),
            paired.difference(pairs),
        )
        if is_new:
            self._show(series)

    def _name(self, series: Series) -> None:
        """Logs, once per series, that a judge says the same of all runs."""
        figures = self._figures[series]
        if figures.alike and series not in self._named:
            self._named.add(series)
            _log.warning(
                "the judge %s %s by %s: its verdicts on %d runs spread by %.3f, those on one and the same by %.3f; "
                "its agreement with itself says nothing (see: pandaeval judge check)",
                series[2],
                ALIKE,
                series[1],
                figures.n,
                figures.spread,
                figures.noise,
            )

    def _show(self, series: Series) -> None:
        check, metric, model = series
        about = {"check": check, "metric": metric, "model": model}

        def gauge(name: str, read: Callable[[VerdictAgreement], float], **more: str) -> None:
            self._telemetry.gauge(f"pandaeval.judge.{name}", lambda: read(self._figures[series]), **about, **more)

        gauge("agreement", lambda found: found.agreement)
        gauge("flips", lambda found: found.flips / found.n)
        gauge("spread", lambda found: found.noise, of="repeats")
        gauge("spread", lambda found: found.spread, of="runs")
        gauge("discrimination", lambda found: found.discrimination)
        for bound, end in _BOUNDS.items():
            gauge("kappa", lambda found, end=end: getattr(found.kappa, end, math.nan), bound=bound)  # type: ignore[misc]
            gauge(
                "difference",
                lambda found, end=end: getattr(found.difference, end, math.nan),  # type: ignore[misc]
                bound=bound,
            )


_BOUNDS = {"estimate": "value", "low": "low", "high": "high"}


# Puts a share of the questions that have a verdict once more, to the same judge or to another, and notes beside the
# verdict what came of it.
#
# The same judge (``judge.retest``) sees the same words behind other fences, without the first verdict in memory: what
# differs is chance. Another one (``judge.second``), best of another make, is less likely to share a whim. What was
# extracted from the run before (its task, its plan) stands for both. No score changes; each costs one call, within the
# judge's limits and budget.
class AskedAgain:
    """Asks for a second verdict, and changes no score. ``share``: of the results, 0..1, by a hash of their id;
    ``model``: another judge, whose verdicts the desk remembers; without one, the same judge is asked. On one event
    loop."""

    def __init__(
        self, desk: Desk, agreement: Agreement, telemetry: Telemetry, share: float, model: str | None = None
    ) -> None:
        self._desk, self._agreement, self._telemetry, self._share = desk, agreement, telemetry, share
        self._model = model
        self._name = "retest" if model is None else "second"
        self._counter = "pandaeval.judge.retests" if model is None else "pandaeval.judge.seconds"

    async def beside(self, question: Question, subject: Any, pack: Pack, first: Judge, finding: Finding) -> Finding:
        """Asks again if the result is in the share; returns the finding with the second verdict (``retest``,
        ``second``) and the agreement so far (``judge_agreement``, ``second_agreement``) in its metadata. The score
        stays that of the first verdict; the costs are those of both."""
        by, key = question.model, question.metric.key
        if not isinstance(finding, Score) or by == self._model or (self._model is None and not first.spent.calls):
            return finding
        both = by if self._model is None else f"{by} / {self._model}"
        about: dict[str, Any] = {}
        if included(f"{self._name} {question.id}", self._share):
            other = anew(self._desk, pack, self._model or by, self._name, question.guidance)
            second = await self._asked(question, subject, first, other)
            if second is not None:
                pair, threshold = (said(finding), said(second)), question.passes_from
                await self._agreement.add(self._name, key, both, pair, threshold)
                about[self._name] = {
                    **({} if self._model is None else {"model": self._model}),
                    "score": pair[1],
                    "difference": abs(pair[1] - pair[0]),
                    "flipped": (pair[0] >= threshold) != (pair[1] >= threshold),
                }
        figures = self._agreement.of(self._name, key, both)
        if figures is not None:
            about["judge_agreement" if self._model is None else "second_agreement"] = figures.to_dict()
        return replace(finding, metadata={**finding.metadata, **about}) if about else finding

    async def _asked(self, question: Question, subject: Any, first: Judge, other: Judge) -> Score | None:
        """Returns the score of ``other``, if any. A call that failed says nothing about a judge."""
        found, outcome = None, "no_verdict"
        try:
            found = await asked(question.metric, subject, Again(first, other, question.metric.asks))
        except (CallFailedError, OverBudgetError):
            outcome = "not_asked"
        finally:
            pay(first.spent, other.spent)
        self._telemetry.add(self._counter, "compared" if isinstance(found, Score) else outcome)
        return found if isinstance(found, Score) else None


@dataclass(frozen=True, slots=True)
class Checks:
    """How verdicts are reached: ``verdicts`` gives each one; those of ``beside`` check it, one after the other."""

    verdicts: Votes
    beside: Sequence[AskedAgain] = ()


def open_checks(judge: JudgeConfig, store: Store, desk: Desk, telemetry: Telemetry) -> Checks:
    """Makes the votes and second verdicts that the configuration asks for. On one event loop."""
    agreement = Agreement(store, telemetry)
    beside = [AskedAgain(desk, agreement, telemetry, judge.retest)]
    if judge.second is not None:
        for model in [model for model in judge.setup.models if model != judge.second] or [judge.second]:
            warn_of_second(model, judge.second)
        beside.append(AskedAgain(desk, agreement, telemetry, judge.second_share, judge.second))
    return Checks(Votes(desk, judge.votes), beside)
