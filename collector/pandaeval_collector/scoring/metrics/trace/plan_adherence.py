"""Did the agent follow its plan?

A judge finds the first plan in the agent's thoughts, messages and planning calls, and compares it with the run. Later
changes (``metadata.revisions``) count only if a result caused them. It does not judge whether the plan was good
(``plan_quality``) or whether the task was completed. Without a plan, the score is assumed.

Scale: 0..1, 1 means that the agent did every planned step in order, and no other steps.
Source: PandaProbe, trace metrics, *Plan Adherence*.
"""

from pandaeval_collector.scoring.metrics.trace._plan import of_plan

LEVELS = {"exactly": 1.0, "nearly": 0.75, "partly": 0.5, "hardly": 0.25, "not at all": 0.0}
"""Score of each level."""


METRIC = of_plan(
    name="plan_adherence",
    about=__doc__,
    version="8",
    question="Did the agent follow its plan?",
    text="""
How closely did the agent follow its plan as first declared? Plan and revisions are given below as "plan" and
"revisions". If they are missing, use the plan that you took from the record.

- Was each step done? Calls and results show it; the agent's claim does not. A step without a call (think, inform the
  user) is shown by the agent's words. Content that was not captured is unknown, not skipped.
- Was the order kept? Independent steps may change places.
- Was something important done that is not in the plan?

A revision that a result caused is part of the plan from then on. A revision without a cause is a deviation, and so is
an undeclared change. A detour after a failed call is a small deviation if the agent returned to its plan. A bad plan
can be followed exactly.

Example: the plan is to search, compare and book. The agent did so: "exactly". It booked immediately: "hardly".

Guide:
exactly     every step of the plan, in order, and nothing more
nearly      nearly all steps in order, small deviations
partly      steps were skipped or out of order
hardly      few steps of the plan are visible
not at all  the run has nothing in common with the plan
""",
    shape="Adherence",
    reason="The steps that were done, skipped, moved or added.",
    levels=LEVELS,
    asked_with=("task", "plan", "revisions"),
)
