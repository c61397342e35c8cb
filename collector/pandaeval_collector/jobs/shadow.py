"""A judge in the shadow of the live one: it judges a share of live traffic as if it were the judge, and what it says
goes into a run and series of its own.

A model is tried like that on today's traces before it takes over: its verdicts have the ids that they would have then.
Costs the calls of its questions, within the limits and the budget of the live judge.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace

import orjson

from pandaeval_collector.base.result import Result
from pandaeval_collector.base.score import Unscored
from pandaeval_collector.base.telemetry import Telemetry
from pandaeval_collector.jobs.anew import asked
from pandaeval_collector.judge.call import CallFailedError, OverBudgetError
from pandaeval_collector.judge.desk import Desk, Judge
from pandaeval_collector.judge.pack import Pack
from pandaeval_collector.judge.selection import Selection, included
from pandaeval_collector.pipeline.line.line import SHADOW
from pandaeval_collector.scoring.evaluator import Evaluator, EvaluatorSettings
from pandaeval_collector.store import Store
from pandaeval_otel.model import Trace


@dataclass(frozen=True, slots=True)
class Shadow:
    """Judges a share of the live traffic beside the live judge. ``evaluator``: with the shadow's model as its judge
    (:func:`as_judge`); ``share``: of the sessions, and of traces without one, 0..1; ``run``: the number of its run in
    the store. On one event loop."""

    desk: Desk
    evaluator: Evaluator
    telemetry: Telemetry
    share: float
    run: int

    async def result(self, metric: str, trace: Trace, pack: Pack) -> Result | None:
        """Returns the shadow's result of a metric (its key) for a trace that the live judge has judged; ``None`` for a
        trace outside the share, or where the shadow could not be asked."""
        if not included(f"shadow {trace.session_id or trace.trace_id}", self.share):
            return None
        _, questions = self.evaluator.judged(trace)
        question = next((each for each in questions if each.metric.key == metric), None)
        if question is None:
            return None
        together = self.evaluator.together(questions, question)
        judge = Judge(self.desk, pack, question.model, metric, together=together, guidance=question.guidance)
        try:
            finding = await asked(question.metric, trace, judge)
        except (CallFailedError, OverBudgetError):
            self.telemetry.add("pandaeval.judge.shadow", "not_asked")
            return None
        if finding is None:
            return None
        self.telemetry.add("pandaeval.judge.shadow", "no_verdict" if isinstance(finding, Unscored) else "answered")
        return self.evaluator.answered(question, finding, judge.spent)


def as_judge(settings: EvaluatorSettings, model: str) -> EvaluatorSettings:
    """Returns the settings with ``model`` as the judge of all metrics: one verdict each, of all traces."""
    assert settings.judge is not None
    judge = replace(settings.judge, model=model, models={}, votes=1, selection=Selection())
    return replace(settings, judge=judge)


async def open_shadow(
    store: Store, desk: Desk, live: Evaluator, telemetry: Telemetry, model: str | None, share: float
) -> Shadow | None:
    """Opens the shadow with its run, which lasts while the configuration names this model; ends that of another model.
    Returns ``None`` without a model."""
    if model is None or live.settings.judge is None:
        await asyncio.wrap_future(store.runs.stand(None, b""))
        return None
    evaluator = Evaluator(live.embedder, as_judge(live.settings, model))
    spec = {"metrics": evaluator.asked, "wanted": {}, "model": model, "sample": share, "weights": {}}
    spec |= {"emit": False, "name": SHADOW, "decided": None}  # as a stored RunSpec
    run = await asyncio.wrap_future(store.runs.stand(f"{SHADOW}\n{model}", orjson.dumps(spec)))
    assert run is not None
    return Shadow(desk, evaluator, telemetry, share, run)
