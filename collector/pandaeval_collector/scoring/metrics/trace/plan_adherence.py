"""Did the agent do what it had planned?

A judge takes the plan, as it was first declared, from the agent's thoughts and planning calls, each step resting on a
place in the trace, and compares it with what happened. Changes that were declared later (``metadata.revisions``) are
part of it if a result gave cause to them; others are deviations. It does not judge whether the plan was a good one
(``plan_quality``) nor whether the task was accomplished. A run without a plan has nothing to deviate from: assumed.

Scale: 0..1, 1 is every step, in order, and nothing else.
Source: PandaProbe, trace metrics, *Plan Adherence*.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from pandaeval_collector.base.score import Finding, Score, Why
from pandaeval_collector.judge.desk import Judge
from pandaeval_collector.judge.rubric import Reason, Rubric, Verdict
from pandaeval_collector.scoring.metric import Metric
from pandaeval_collector.scoring.metrics.trace._facts import BY_THE_GUIDE, TASK, undetermined
from pandaeval_collector.scoring.metrics.trace._plan import NO_PLAN, PLAN, before_asking, declared_plan
from pandaeval_otel.model import Trace


class Adherence(Verdict):
    """``level``: the first of them is exactly as planned; ``None``: it cannot be told."""

    reason: Reason = Field(description="Which steps were done, skipped, moved or added, in one to three sentences.")
    level: Literal["exactly", "nearly", "partly", "hardly", "not at all"] | None = Field(description=BY_THE_GUIDE)


LEVELS = {"exactly": 1.0, "nearly": 0.75, "partly": 0.5, "hardly": 0.25, "not at all": 0.0}
"""What each is worth."""

RUBRIC = Rubric(
    name="plan_adherence",
    version="6",
    text="""
How closely did the agent follow its own plan, which is given below with the task, as it was first declared? Step by
step:

- Was it done? The calls and their results show it; that the agent says so does not. A step that needs no call (to
  think, to tell the user) is seen in what the agent says. What was not captured is unknown, not skipped.
- Was it done in the intended order? Steps that do not depend on each other may change places.
- Was one left out, or something of weight done that the plan does not hold?

"revisions" are changes that the agent declared later, each with the call whose result gave cause to it. A change with a
cause in a result is part of the plan from there on. A change without one is a deviation, and so is one that was never
declared. A detour that a failed call made necessary is a small deviation if the agent returned to its plan. Whether the
plan was good is asked elsewhere: a bad plan that was followed to the letter was followed.

Example: planned were search, compare and book; it searched and booked at once, so a step was skipped: "partly".

Guide:
exactly     what happened is the plan, step by step
nearly      nearly all steps in order, small deviations
partly      followed in part: steps were skipped or out of order
hardly      only traces of the plan can be seen
not at all  what happened has nothing to do with the plan
""",
    verdict=Adherence,
)


async def _ask(trace: Trace, judge: Judge) -> Finding | None:
    found = await declared_plan(trace, judge)
    if found is None:
        return NO_PLAN
    given, revisions = found
    told = {**given, "revisions": revisions or "none"}
    verdict = await judge.ask(RUBRIC, told)
    if verdict.level is None:
        return undetermined(verdict.reason)
    return Score(LEVELS[verdict.level], verdict.reason, told if revisions else given)


METRIC = Metric(
    level="trace",
    name="plan_adherence",
    kind="llm",
    version="6",
    threshold=0.5,
    question="Did the agent do what it had planned?",
    needs="thoughts, words on the way or a planning tool; a judge",
    evaluate=before_asking,
    about=__doc__,
    ask=_ask,
    rubrics=(PLAN, TASK, RUBRIC),
    settings={"levels": LEVELS},
    unscored=(Why.NO_CONTENT, Why.INSUFFICIENT_EVIDENCE),
)
