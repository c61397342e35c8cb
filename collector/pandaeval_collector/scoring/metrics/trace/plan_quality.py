"""Was the agent's plan a good one for its task?

A judge takes the plan, as it was first declared, from the agent's thoughts and planning calls, each step resting on a
place in the trace. It is rated by itself: with it the judge is shown what was there before the agent acted (task,
instructions, conversation before, tools), and neither calls nor results nor the answer. It does not judge whether
the plan was followed (``plan_adherence``). A run without a plan has nothing to rate: assumed.

Scale: 0..1, 1 is complete, coherent and without a needless step.
Source: PandaProbe, trace metrics, *Plan Quality*.
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


class Quality(Verdict):
    """``level``: the first of them is an excellent plan; ``None``: it cannot be told."""

    reason: Reason = Field(description="What is good about the plan and what is missing, in one to three sentences.")
    level: Literal["excellent", "good", "usable", "weak", "none"] | None = Field(description=BY_THE_GUIDE)


LEVELS = {"excellent": 1.0, "good": 0.75, "usable": 0.5, "weak": 0.25, "none": 0.0}
"""What each is worth."""

RUBRIC = Rubric(
    name="plan_quality",
    version="6",
    text="""
How good is the plan that is given below, for the task that is given with it? The record shows what was there when it
was made, and nothing of what came of it. Judge it by what the agent could know then and by the tools that it had:

- Completeness: does it deal with every part and every condition of the task?
- Coherence: does each step have what it needs from the steps before, in a sensible order?
- Economy: could steps be left out, joined or done at once?
- Detail: is each step clear enough to be done, without drowning in words?
- Fit: is it a plan for what the user wanted, and not for something close to it?

Luck makes no plan better or worse: do not guess how the run ended. A short plan for a simple task is a good plan. Tools
that were not captured are unknown: a step is not bad for a tool that is not listed then.

Example: for "book the cheapest flight on Friday", the plan "search flights, book one" compares no prices: "usable".

Guide:
excellent  excellent: complete, coherent, nothing too much
good       good: small flaws, or a step that could be better
usable     usable, with gaps that matter
weak       weak: it would fail at several places
none       not a plan for this task
""",
    verdict=Quality,
    sees="outset",
)


async def _ask(trace: Trace, judge: Judge) -> Finding | None:
    found = await declared_plan(trace, judge)
    if found is None:
        return NO_PLAN
    given, _ = found
    verdict = await judge.ask(RUBRIC, given)
    return (
        undetermined(verdict.reason) if verdict.level is None else Score(LEVELS[verdict.level], verdict.reason, given)
    )


METRIC = Metric(
    level="trace",
    name="plan_quality",
    kind="llm",
    version="6",
    threshold=0.5,
    question="Was the agent's plan a good one for its task?",
    needs="thoughts, words on the way or a planning tool; a judge",
    evaluate=before_asking,
    about=__doc__,
    ask=_ask,
    rubrics=(PLAN, TASK, RUBRIC),
    settings={"levels": LEVELS},
    unscored=(Why.NO_CONTENT, Why.INSUFFICIENT_EVIDENCE),
)
