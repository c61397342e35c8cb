"""Did the agent follow its plan?

A judge finds the first plan in the agent's thoughts and planning calls, with evidence for each step, and compares the
plan with the run. Changes that were declared later (``metadata.revisions``) are part of it if a result gave cause to
them; others are deviations. It does not judge whether the plan was good (``plan_quality``) or whether the task was
completed. A run without a plan has nothing to deviate from: assumed.

Scale: 0..1, 1 is every planned step, in order, without other steps.
Source: PandaProbe, trace metrics, *Plan Adherence*.
"""

from __future__ import annotations

from pandaeval_collector.scoring.metrics.trace._plan import of_plan

LEVELS = {"exactly": 1.0, "nearly": 0.75, "partly": 0.5, "hardly": 0.25, "not at all": 0.0}
"""What each is worth."""


METRIC = of_plan(
    name="plan_adherence",
    about=__doc__,
    version="7",
    question="Did the agent follow its plan?",
    text="""
How closely did the agent follow its plan as it was first declared? Plan and revisions are those that stand below under
"plan" and "revisions", else those that you took from the record.

- Was each step done? Calls and their results show it; that the agent says so does not. A step that needs no call (to
  think, to tell the user) is seen in what it says. What was not captured is unknown, not skipped.
- In the intended order? Steps that do not depend on each other may change places.
- Was something of weight done that the plan does not hold?

A revision to which a result gave cause is part of the plan from there on. One without a cause is a deviation, and so is
a change that was not declared. A detour that a failed call made necessary is a small deviation if the agent returned to
its plan. A bad plan that was followed to the letter was followed.

Example: it planned to search, compare and book. It did so: "exactly". It booked at once: "hardly".

Guide:
exactly     what happened is the plan, step by step
nearly      nearly all steps in order, small deviations
partly      steps were skipped or out of order
hardly      only traces of the plan can be seen
not at all  what happened has nothing to do with the plan
""",
    shape="Adherence",
    reason="Which steps were done, skipped, moved or added.",
    levels=LEVELS,
    asked_with=("task", "plan", "revisions"),
)
