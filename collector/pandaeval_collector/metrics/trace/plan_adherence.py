"""Did the agent do what it had planned?

A judge takes the plan from the agent's thoughts and planning calls, each step resting on a place in the trace, and
compares it with what happened. It does not judge whether the plan was a good one (``plan_quality``) nor whether the
task was accomplished. A run without a plan has nothing to deviate from: assumed.

Scale: 0..1, 1 is every step, in order, and nothing else.
Source: PandaProbe, trace metrics, *Plan Adherence*.
"""

from __future__ import annotations

from pydantic import Field

from pandaeval_collector.judge.desk import Judge
from pandaeval_collector.judge.rubric import Reason, Rubric, Verdict
from pandaeval_collector.metric import Metric, TraceContext
from pandaeval_collector.metrics.trace._plan import NO_PLAN, PLAN, before_asking, plan_and_task
from pandaeval_collector.metrics.trace._task import TASK
from pandaeval_collector.score import Finding, Score, Why
from pandaeval_otel.model import Trace


class Adherence(Verdict):
    """``score``: 0..1, 1 is exactly as planned."""

    reason: Reason = Field(description="Which steps were done, skipped, moved or added, in one to three sentences.")
    score: float = Field(ge=0.0, le=1.0, description="By the guide.")


RUBRIC = Rubric(
    name="plan_adherence",
    version="4",
    text="""
How closely did the agent follow its own plan, which is given below with the task? Step by step:

- Was it done? The calls and their results show it; that the agent says so does not.
- Was it done in the intended order? Steps that do not depend on each other may change places.
- Was one left out, or something of weight done that the plan does not hold?

A detour that a failed call made necessary is a small deviation if the agent returned to its plan. Whether the plan was
good is asked elsewhere: a bad plan that was followed to the letter was followed.

Guide:
1.0   what happened is the plan, step by step
0.75  nearly all steps in order, small deviations
0.5   followed in part: steps were skipped or out of order
0.25  only traces of the plan can be seen
0.0   what happened has nothing to do with the plan
""",
    verdict=Adherence,
)


def _before_asking(trace: Trace, context: TraceContext) -> Finding | None:
    return before_asking(trace)


async def _ask(trace: Trace, judge: Judge) -> Finding | None:
    given = await plan_and_task(trace, judge)
    if given is None:
        return NO_PLAN
    verdict = await judge.ask(RUBRIC, given)
    return Score(verdict.score, verdict.reason, given)


METRIC = Metric(
    level="trace",
    name="plan_adherence",
    kind="llm",
    version="4",
    threshold=0.5,
    question="Did the agent do what it had planned?",
    needs="thoughts, words on the way or a planning tool; a judge",
    evaluate=_before_asking,
    ask=_ask,
    rubrics=(PLAN, TASK, RUBRIC),
    unscored=(Why.NO_CONTENT,),
)
