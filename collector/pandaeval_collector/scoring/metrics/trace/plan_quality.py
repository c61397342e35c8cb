"""Was the agent's plan good for its task?

A judge finds the first plan in the agent's thoughts, messages and planning calls. The judge rates the plan by the
facts that were known at that time. It does not judge whether the plan was followed (``plan_adherence``). Without a
plan, the score is assumed.

Scale: 0..1, 1 means that the plan was complete and coherent, without a needless step.
Source: PandaProbe, trace metrics, *Plan Quality*.
"""

from pandaeval_collector.scoring.metrics.trace._plan import of_plan

LEVELS = {"excellent": 1.0, "good": 0.75, "usable": 0.5, "weak": 0.25, "none": 0.0}
"""Score of each level."""


METRIC = of_plan(
    name="plan_quality",
    about=__doc__,
    version="8",
    question="Was the agent's plan good for its task?",
    text="""
How good was the agent's plan for its task? The plan is given below as "plan". If it is missing, use the plan that you
took from the record. Judge it by the agent's knowledge and tools when it made the plan. Ignore later calls, results and
the answer.

- Completeness: does it cover every part and every condition of the task?
- Coherence: does each step get what it needs from earlier steps?
- Economy: could steps be left out, joined or done in parallel?
- Detail: is each step clear enough to do, without needless words?
- Fit: does it aim at the user's request, and not at something similar?

A short plan for a simple task is a good plan. A tool that was not captured may have existed.

Example: the task is to book the cheapest flight on Friday. "Search Friday's flights, compare prices, book the cheapest"
is "excellent". "Book a flight, then look for cheaper ones" is "weak".

Guide:
excellent  complete, coherent, no needless step
good       small flaws, or one step that could be better
usable     important gaps
weak       it would fail at several points
none       no plan for this task
""",
    shape="Quality",
    reason="The strengths of the plan, and the gaps.",
    levels=LEVELS,
)
