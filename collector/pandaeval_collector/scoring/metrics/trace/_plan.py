"""The agent's plan, extracted by a judge once per trace and shared among metrics."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field

from pandaeval_collector.base.score import Assumed, Score, Unscored, Why
from pandaeval_collector.judge.rubric import Answer, Extraction, Facts
from pandaeval_collector.judge.run_facts import said_on_the_way
from pandaeval_collector.scoring.metric import JudgedTraceMetric, TraceContext
from pandaeval_collector.scoring.metrics.trace._facts import (
    ABOUT,
    NOTHING_CAPTURED,
    TASK,
    ConcludedError,
    Step,
    has_answer,
    has_any_content,
    has_meaningful_text,
    judged_trace_metric,
    level_answer,
    missing_step_error,
    step_counts,
)
from pandaeval_otel.model import Trace

NO_PLAN = Assumed("no plan was found in the run", {"plan": []})
_PLANS = re.compile(r"plan|todo|to_do|task|step|think|note|scratch|milestone|goal|agenda", re.IGNORECASE)
"""Parts of the names of planning tools."""


class PlanStep(Answer):
    step: Annotated[str, Field(max_length=300)]
    """One short sentence, close to the agent's words"""
    shown_by: Step
    """Where the agent declared it: "call 3" for its arguments and the words just before it, otherwise "turn 2" for
    words in that turn"""


class Revision(Answer):
    """A change of the plan. ``cause``: the 1-based number of a call; a nonexistent number counts as ``None``."""

    change: Annotated[str, Field(max_length=300)]
    """The declared change."""
    cause: int | None
    """The number of the call whose result caused it. Null if none did."""


class Plan(Answer):
    plan: Annotated[list[PlanStep], Field(max_length=30)]
    """The steps as first declared, in the intended order. Empty if there is no plan."""
    revisions: Annotated[list[Revision], Field(max_length=10)]
    """Changes declared later, in order."""


def _facts(found: Plan, trace: Trace) -> dict[str, Any]:
    plan = [each for each in found.plan if any(map(str.isalnum, each.step))]
    if not plan:
        raise ConcludedError(NO_PLAN)
    calls = range(1, len(trace.tool_calls) + 1)
    revisions = [
        {"change": each.change.strip(), "cause": f"call {each.cause}" if each.cause in calls else None}
        for each in found.revisions
        if each.change.strip()
    ]
    steps = {"plan": [each.step.strip() for each in plan], "shown_by": [each.shown_by for each in plan]}
    return {**steps, "revisions": revisions or "none"}


PLAN = Extraction(
    name="plan",
    version="6",
    level="trace",
    about=ABOUT,
    text="""
Which plan did the agent make for this run? Take it from the record. Do not judge anything.

A plan is the agent's intention before it acted: steps that it states in its thoughts or on the way, writes down through
a tool, or clearly implies. The agent's own words are evidence of its intention.

- Name the place in the record that shows each step. Add no step because it is sensible, or because a call happened.
- The plan is the first declaration. A later different declaration is a revision. Ticking off steps or describing a step
  in more detail is no revision.
- If there is no plan, return an empty list. That is common and no fault.

Example: before call 1 the agent states "first I need the price, then I can compare". Steps: get the price, compare.
Both are shown by call 1. If it calls search and book without a word, there is no plan.
""",
    answer=Plan,
    check=lambda found, given: missing_step_error((each.shown_by for each in found.plan), given),
    tokens=2450,
    facts=_facts,
    given=lambda trace, facts: step_counts(trace),
)


def before_asking(trace: Trace, context: TraceContext) -> Assumed | Unscored | None:
    """Return the finding without a judge if a run has no thoughts, no words before its answer and no planning calls."""
    if not has_any_content(trace):
        return NOTHING_CAPTURED
    early = (turn.assistant for turn in trace.turns[:-1])
    if any(has_meaningful_text(text) for text in (*trace.reasoning, *said_on_the_way(trace), *early)):
        return None
    if any(_PLANS.search(call.name) for call in trace.tool_calls):
        return None
    if has_answer(trace) or trace.tool_calls:
        return NO_PLAN
    return Unscored(Why.NO_CONTENT, "no thoughts, steps or answer of the agent were captured")


def of_plan(
    shape: str,
    reason: str,
    levels: Mapping[str, float],
    asked_with: tuple[str, ...] = ("task", "plan"),
    **more: Any,
) -> JudgedTraceMetric:
    """Make a metric that rates the plan by ``levels``.

    ``shape``: name of the answer; ``reason``: description of its first field; ``asked_with``: given facts.
    """

    def score(value: float, found: Any, trace: Trace, facts: Facts) -> Score:
        kept = {key: facts[key] for key in ("plan", "shown_by", *asked_with)}
        if kept.get("revisions") == "none":
            del kept["revisions"]
        return Score(value, found.reason, kept)

    return judged_trace_metric(
        needs="thoughts, intermediate messages or a planning tool; a judge",
        answer=level_answer(shape, reason, levels, "Null, too, if there is no plan."),
        levels=levels,
        score=score,
        evaluate=before_asking,
        extractions=(PLAN, TASK),
        given=lambda trace, facts: {key: facts[key] for key in asked_with if key in facts},
        **more,
    )
