"""Sends some copies of a drill, and their originals, to a judge.

A failed call gives no verdict: the copy counts only if another metric fails it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice, zip_longest
from typing import Any

from pandaeval_collector.base.result import Result
from pandaeval_collector.base.score import Why
from pandaeval_collector.judge.call import JudgeConfig
from pandaeval_collector.judge.selection import Selection
from pandaeval_collector.scoring.evaluator import PASSING, Evaluator
from pandaeval_collector.scoring.registry import registry
from pandaeval_lab.drill.drill import Drill, FaultyCopy, OnDone, Where
from pandaeval_lab.drill.tally import Tally
from pandaeval_lab.replay.judge import ReplayJudge, capped
from pandaeval_lab.replay.replay import replay
from pandaeval_lab.replay.trace_files import TraceFiles

_FAILED = PASSING | {Why.INJECTION_SUSPECTED, Why.SHUTDOWN}
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


def judged_copies(
    drill: Drill,
    copies: Sequence[FaultyCopy],
    scorer: Evaluator,
    judge: JudgeConfig,
    environ: Mapping[str, str],
    budget: float,
    on_done: OnDone,
) -> dict[str, Any]:
    """Judge copies of a drill for at most ``budget`` US dollars, and return the counts."""
    alone, cost = judge_alone(scorer), 0.0

    def score(files: TraceFiles, where: Where | None) -> Iterator[Result]:
        nonlocal cost
        with ReplayJudge(files.store, alone, capped(judge, budget - cost), environ) as asked:
            yield from replay(files, alone, asked, where=where)
            cost += asked.cost_usd

    tally = Tally({copy.fault: drill.faults[copy.fault] for copy in copies}, len(copies), len(copies))
    for done, (copy, was, now) in enumerate(drill.scored_again(copies, score), 1):
        count(tally, copy, was, now)
        on_done(done, len(copies))
    return {"models": [*judge.models], "cost_usd": round(cost, 6), **tally.to_dict()}


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
