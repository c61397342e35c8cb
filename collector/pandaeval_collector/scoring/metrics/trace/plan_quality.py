"""Was the agent's plan a good one for its task?

A judge finds the first plan in the agent's thoughts and planning calls, with evidence for each step, and rates the plan
by the facts that were known then. Calls, results and answer do not count. It does not judge whether the plan was
followed (``plan_adherence``). A run without a plan has nothing to rate: assumed.

Scale: 0..1, 1 is complete, coherent and without a needless step.
Source: PandaProbe, trace metrics, *Plan Quality*.
"""

from __future__ import annotations

from pandaeval_collector.scoring.metrics.trace._plan import of_plan

LEVELS = {"excellent": 1.0, "good": 0.75, "usable": 0.5, "weak": 0.25, "none": 0.0}
"""What each is worth."""


METRIC = of_plan(
    name="plan_quality",
    about=__doc__,
    version="7",
    question="Was the agent's plan a good one for its task?",
    text="""
How good was the agent's plan for its task? The plan is the one that stands below under "plan", else the one that you
took from the record. Judge it by what the agent knew when it made the plan and by the tools that it had: what calls,
results and answer show later makes no plan better or worse.

- Completeness: does it deal with every part and every condition of the task?
- Coherence: does each step have what it needs from the steps before?
- Economy: could steps be left out, joined or done at once?
- Detail: is each step clear enough to be done, without drowning in words?
- Fit: is it a plan for what the user wanted, and not for something close to it?

A short plan for a simple task is a good plan. A tool that was not captured may have existed.

Example: to book the cheapest flight on Friday, "search Friday's flights, compare prices, book the cheapest" is
"excellent"; "book a flight, then look for cheaper ones" is "weak".

Guide:
excellent  complete, coherent, nothing too much
good       small flaws, or a step that could be better
usable     gaps that matter
weak       it would fail at several places
none       not a plan for this task
""",
    shape="Quality",
    reason="What is good about the plan and what is missing.",
    levels=LEVELS,
)
