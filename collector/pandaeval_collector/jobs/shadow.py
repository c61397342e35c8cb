"""A judge in the shadow of the live one: it judges a share of live traffic as if it were the judge, and what it says
goes into a run and series of its own.

A model is tried like that on today's traces before it takes over: its verdicts have the ids that they would have then.
Costs the calls of its questions, within the limits and the budget of the live judge.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace

import orjson

from pandaeval_collector.base.result import Result
from pandaeval_collector.base.score import Unscored
from pandaeval_collector.base.telemetry import Telemetry
from pandaeval_collector.jobs.anew import asked
from pandaeval_collector.jobs.setup import Desks
from pandaeval_collector.judge.call import CallFailedError, OverBudgetError
from pandaeval_collector.judge.desk import Judge, Memory
from pandaeval_collector.judge.pack import Pack
from pandaeval_collector.judge.selection import Selection, included
from pandaeval_collector.pipeline.line.decision import Decision
from pandaeval_collector.scoring.evaluator import Evaluator, EvaluatorSettings
from pandaeval_collector.store import Store, WriteSet
from pandaeval_collector.store.run_rows import RunBatch, RunResult
from pandaeval_otel.model import Trace

NAME = "judge.shadow"


AddToSeries = Callable[[Sequence[Result], WriteSet], None]


class Shadow:
    """Judges a share of the live traffic beside the live judge. ``evaluator``: with the shadow's model as its judge
    (:func:`as_judge`); ``count``: adds results to the shadow's series only; ``share``: of the sessions, and of traces
    without one, 0..1; ``run``: the number of its run in the store. On one event loop."""

    def __init__(
        self,
        store: Store,
        desks: Desks,
        memory: Memory,
        evaluator: Evaluator,
        count: AddToSeries,
        telemetry: Telemetry,
        share: float,
        run: int,
    ) -> None:
        self._store, self._desks, self._memory, self._evaluator = store, desks, memory, evaluator
        self._count, self._telemetry, self._share, self._run = count, telemetry, share, run

    async def result(self, metric: str, trace: Trace, pack: Pack) -> Result | None:
        """Returns the shadow's result of a metric (its key) for a trace that the live judge has judged; ``None`` for a
        trace outside the share, or where the shadow could not be asked."""
        if not included(f"shadow {trace.session_id or trace.trace_id}", self._share):
            return None
        _, questions = self._evaluator.judged(trace)
        question = next((each for each in questions if each.metric.key == metric), None)
        if question is None:
            return None
        desk, guidance = self._desks.desk(self._memory), question.guidance
        judge = Judge(desk, pack, question.model, self._desks.secrets, metric, guidance=guidance)
        try:
            finding = await asked(question.metric, trace, judge)
        except (CallFailedError, OverBudgetError):
            self._telemetry.add("pandaeval.judge.shadow", "not_asked")
            return None
        if finding is None:
            return None
        self._telemetry.add("pandaeval.judge.shadow", "no_verdict" if isinstance(finding, Unscored) else "answered")
        return self._evaluator.answered(question, finding, judge.spent)

    def filed(self, result: Result) -> Decision:
        """Files a result in the shadow's run and series; does nothing for an outdated result, whose trace has grown
        since. On the line's thread."""
        decision, unit = Decision(), result.unit
        trace_id = bytes.fromhex(unit.trace_id)
        held, placed = self._store.reads.held(trace_id), self._store.runs.placed(trace_id)
        if held is None or placed is None or held[0] != unit.evidence:
            return decision
        metric, (no, _) = f"{unit.level}.{result.metric}", placed
        if self._store.runs.body(self._run, metric, no) is None:
            self._count([result], decision.changes)
        result.run_id = NAME
        by = f"{result.evaluator.version} {result.evaluator.model or ''}"
        row = RunResult(no, metric, result.outcome, result.score, result.success, result.cost_usd, by, result.to_json())
        batch = RunBatch(self._run, [(no, "")], [row], 1, result.tokens, result.cost_usd, beside=[placed])
        decision.changes.runs.append(batch)
        return decision


def as_judge(settings: EvaluatorSettings, model: str) -> EvaluatorSettings:
    """Returns the settings with ``model`` as the judge of all metrics: one verdict each, of all traces."""
    assert settings.judge is not None
    judge = replace(settings.judge, model=model, models={}, votes=1, selection=Selection())
    return replace(settings, judge=judge)


async def open_shadow(
    store: Store,
    desks: Desks,
    memory: Memory,
    live: Evaluator,
    count: AddToSeries,
    telemetry: Telemetry,
    model: str | None,
    share: float,
) -> Shadow | None:
    """Opens the shadow with its run, which lasts while the configuration names this model; ends that of another model.
    Returns ``None`` without a model."""
    if model is None or live.settings.judge is None:
        await asyncio.wrap_future(store.runs.stand(None, b""))
        return None
    evaluator = Evaluator(live.embedder, as_judge(live.settings, model))
    spec = {"metrics": evaluator.asked, "wanted": {}, "model": model, "sample": share, "weights": {}}
    spec |= {"emit": False, "name": NAME, "decided": None}  # as a stored RunSpec
    run = await asyncio.wrap_future(store.runs.stand(f"{NAME}\n{model}", orjson.dumps(spec)))
    assert run is not None
    return Shadow(store, desks, memory, evaluator, count, telemetry, share, run)
