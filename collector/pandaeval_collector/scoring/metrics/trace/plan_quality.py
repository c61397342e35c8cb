"""Was the agent's plan a good one for its task?

A judge takes the plan, as it was first declared, from the agent's thoughts and planning calls, each step with the
call or turn that shows it, and rates it by what was known when it was made: it is told to leave calls, results and
answer aside. It does not judge whether the plan was followed (``plan_adherence``). A run without a plan has nothing to
rate: assumed.

Scale: 0..1, 1 is complete, coherent and without a needless step.
Source: PandaProbe, trace metrics, *Plan Quality*.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from pandaeval_collector.base.score import Score, Unscored
from pandaeval_collector.judge.rubric import Answer, Facts, Reason
from pandaeval_collector.scoring.metrics.trace._facts import TASK, of_trace, undetermined
from pandaeval_collector.scoring.metrics.trace._plan import NULL_WITHOUT_PLAN, PLAN, before_asking
from pandaeval_otel.model import Trace


class Quality(Answer):
    """``level``: the first of them is an excellent plan; ``None``: it cannot be told."""

    reason: Reason = Field(description="What is good about the plan and what is missing.")
    level: Literal["excellent", "good", "usable", "weak", "none"] | None = Field(description=NULL_WITHOUT_PLAN)


LEVELS = {"excellent": 1.0, "good": 0.75, "usable": 0.5, "weak": 0.25, "none": 0.0}
"""What each is worth."""


def _score(found: Quality, trace: Trace, facts: Facts) -> Score | Unscored:
    if found.level is None:
        return undetermined(found.reason)
    return Score(LEVELS[found.level], found.reason, {key: facts[key] for key in ("plan", "shown_by", "task")})


METRIC = of_trace(
    "plan_quality",
    about=__doc__,
    version="7",
    question="Was the agent's plan a good one for its task?",
    needs="thoughts, words on the way or a planning tool; a judge",
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
    answer=Quality,
    score=_score,
    evaluate=before_asking,
    settings={"levels": LEVELS},
    extractions=(PLAN, TASK),
    given=lambda trace, facts: {key: facts[key] for key in ("task", "plan") if key in facts},
)
