"""Did the agent do what it had planned?

A judge takes the plan from the agent's thoughts and planning calls, each step resting on a place in the trace, and
compares it with what happened. It does not judge whether the plan was a good one (``plan_quality``) nor whether the
task was accomplished. A run without a plan has nothing to deviate from: assumed.

Scale: 0..1, 1 is every step, in order, and nothing else.
Source: PandaProbe, trace metrics, *Plan Adherence*.
"""

from __future__ import annotations

from pydantic import Field

from pandaeval_collector.judge.rubric import Reason, Rubric
from pandaeval_collector.metric import Metric
from pandaeval_collector.metrics.trace._plan import Rating, before_asking, rated


class Adherence(Rating):
    """``score``: 0..1, 1 is exactly as planned."""

    reason: Reason = Field(description="Which steps were done, skipped, moved or added, in one to three sentences.")


RUBRIC: Rubric[Rating] = Rubric(
    name="plan_adherence",
    version="2",
    text="""
How closely did the agent follow its own plan, which is given below with the task? Go through the plan step by step:

- Was the step done? The calls and their results show it; that the agent says so does not.
- Was it done in the intended order? Steps that do not depend on each other may change places.
- Was a step left out?
- Was something of weight done that the plan does not hold?

A detour that a failed call made necessary is a small deviation, as long as the agent returned to its plan. Whether the
plan was good is asked elsewhere: a bad plan that was followed to the letter was followed.

Guide:
1.0   what happened is the plan, step by step
0.75  nearly all steps in order, small deviations
0.5   followed in part: steps were skipped or out of order
0.25  only traces of the plan can be seen
0.0   what happened has nothing to do with the plan
""",
    verdict=Adherence,
)


METRIC = Metric(
    level="trace",
    name="plan_adherence",
    kind="llm",
    version="2",
    threshold=0.5,
    question="Did the agent do what it had planned?",
    needs="thoughts or tool calls; a judge",
    evaluate=before_asking,
    ask=rated(RUBRIC),
)
