"""Sends some copies of a drill, and their originals, to a judge.

A failed call gives no verdict: the copy counts only if another metric fails it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice, zip_longest
from typing import Any

from pandaeval_collector.base.result import Result
from pandaeval_collector.base.score import Why
from pandaeval_collector.judge.call import JudgeConfig
from pandaeval_collector.judge.selection import Selection
from pandaeval_collector.pipeline.line.understanding import ScoredTrace
from pandaeval_collector.scoring.evaluator import Evaluator
from pandaeval_collector.scoring.registry import registry
from pandaeval_lab.drill.drill import Drill, FaultyCopy
from pandaeval_lab.drill.tally import Tally
from pandaeval_lab.replay.judge import ReplayJudge, capped
from pandaeval_lab.replay.replay import replay
from pandaeval_lab.replay.trace_files import TraceFiles

_FAILED = {*map(str, (Why.JUDGE_FAILED, Why.INVALID_VERDICT, Why.TIMEOUT, Why.METRIC_ERROR))}
_FAILED |= {*map(str, (Why.OVER_BUDGET, Why.INJECTION_SUSPECTED, Why.SHUTDOWN))}
_NOT_JUDGED = "not judged: a call failed, or the budget ended"


def judge_alone(scorer: Evaluator) -> Evaluator:
    settings = scorer.settings
    known = registry(settings.modules).values()
    asked = {each.key for each in known if each.kind == "llm" and each.level in ("trace", "turn")}
    enabled = asked if settings.enabled is None else asked & {*settings.enabled}
    assert settings.judge is not None, "somebody is to be asked"
    return Evaluator(
        scorer.embedder, replace(settings, enabled=enabled, judge=replace(settings.judge, selection=Selection()))
    )


class JudgedDrill:
    """Judges copies of a drill for at most ``budget`` US dollars."""

    def __init__(
        self, drill: Drill, scorer: Evaluator, judge: JudgeConfig, environ: Mapping[str, str], budget: float
    ) -> None:
        self._drill, self._scorer, self._left = drill, judge_alone(scorer), budget
        self._judge, self._environ = judge, environ

    def figures(self, copies: Sequence[FaultyCopy], on_done: Callable[[int, int], None]) -> dict[str, Any]:
        faults = {copy.fault: self._drill.faults[copy.fault] for copy in copies}
        tally, before = Tally(faults, len(copies), len(copies)), self._left
        for done, (copy, was, now) in enumerate(self._drill.scored_again(copies, self._score), 1):
            count(tally, copy, was, now)
            on_done(done, len(copies))
        cost = round(before - self._left, 6)
        return {"models": [*self._judge.models], "cost_usd": cost, **tally.to_dict()}

    def _score(self, files: TraceFiles, where: Callable[[ScoredTrace], bool] | None) -> Iterator[Result]:
        config = capped(self._judge, self._left)
        with ReplayJudge(files.store, self._scorer, config, self._environ) as judge:
            yield from replay(files, self._scorer, judge, where=where)
            self._left -= judge.cost_usd


def count(tally: Tally, copy: FaultyCopy, before: Sequence[Result], after: Sequence[Result]) -> None:
    """Count results for a copy and its original. A metric that fails the original detects no fault."""
    tally.untouched(before)
    failing = {result.metric for result in before if result.success is False}
    was, now = ([result for result in results if result.metric not in failing] for results in (before, after))
    fault = tally.faults[copy.fault]
    if _is_judged(was, now):
        fault.add(was, now, copy.planted)
    else:
        fault.refused[_NOT_JUDGED] += 1


def _is_judged(before: Sequence[Result], after: Sequence[Result]) -> bool:
    if any(result.success is False for result in after):
        return True
    if any(result.why in _FAILED for result in (*before, *after)):
        return False
    return any(result.outcome == "scored" for result in after)


def chosen_copies(kept: Mapping[str, Sequence[FaultyCopy]], most: int) -> Iterator[FaultyCopy]:
    """Return up to ``most`` copies, faults taking turns."""
    rows = zip_longest(*kept.values())
    return islice((copy for row in rows for copy in row if copy is not None), most)
