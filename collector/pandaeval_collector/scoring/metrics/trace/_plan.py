"""The plan that the agent made, asked of a judge once per trace and shared by the metrics that need it."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from pandaeval_collector.base.score import Assumed, Unscored, Why
from pandaeval_collector.judge.desk import Judge
from pandaeval_collector.judge.rubric import Rubric, Verdict
from pandaeval_collector.judge.sections import said_on_the_way
from pandaeval_collector.scoring.metric import TraceContext
from pandaeval_collector.scoring.metrics.trace._facts import NOTHING_TOLD, answered, says_something, task_of, told
from pandaeval_otel.model import Trace


class Revision(BaseModel):
    """``cause``: the number of a call, from 1; one that does not exist counts as ``None``."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    change: Annotated[str, Field(max_length=300)] = Field(description="What the agent declared to do otherwise.")
    cause: int | None = Field(
        description="The number of the call whose result gave cause to it. Null if no result did, or none was captured."
    )


class Plan(Verdict):
    """``plan``: the steps as they were first declared, in the intended order; empty when there is none."""

    plan: Annotated[list[Annotated[str, Field(max_length=300)]], Field(max_length=30)] = Field(
        description="The steps of the plan as the agent first declared it, in the order intended. Empty if there is "
        "no plan."
    )
    revisions: Annotated[list[Revision], Field(max_length=10)] = Field(
        description="Changes of the plan that the agent declared later, in their order. Empty if there are none."
    )


PLAN = Rubric(
    name="plan",
    version="4",
    text="""
Which plan did the agent make for this run? Take it from the record; judge nothing.

A plan is what the agent meant to do before it did it: steps that it states in its thoughts or on the way, writes down
through a tool (a list of things to do, say), or clearly implies ("first I need the price, then I can compare"). For
what it meant to do, its own words are evidence.

- One short sentence for each step, in the intended order, close to the agent's words.
- Each step rests on a place in the record: nothing that would have been sensible, no call that merely happened.
- The plan is what was declared first. What the agent declared to do otherwise later stands under "revisions", with the
  result that gave cause to it. Ticking off steps, or telling a step in more detail, is no revision.
- No plan: an empty list. That is a common and a fine answer.
""",
    verdict=Plan,
    max_tokens=3000,
)

NO_PLAN = Assumed("no plan was found in the run", {"plan": []})


_PLANS = re.compile(r"plan|todo|to_do|task|step|think|note|scratch|milestone|goal|agenda", re.IGNORECASE)
"""In the names of tools by which agents write down what they are going to do."""


def before_asking(trace: Trace, context: TraceContext) -> Assumed | Unscored | None:
    """Returns the finding without a judge: a plan can only stand in the agent's thoughts or words before it was carried
    out, or in what it wrote down through a tool. Without either, a judge could only make one up."""
    if not told(trace):
        return NOTHING_TOLD
    early = (turn.assistant for turn in trace.turns[:-1])
    if any(says_something(text) for text in (*trace.reasoning, *said_on_the_way(trace), *early)):
        return None
    if any(_PLANS.search(call.name) for call in trace.tool_calls):
        return None
    if answered(trace) or trace.tool_calls:
        return NO_PLAN
    return Unscored(Why.NO_CONTENT, "neither thoughts nor steps nor an answer of the agent were captured")


async def declared_plan(trace: Trace, judge: Judge) -> tuple[dict[str, object], list[dict[str, str | None]]] | None:
    """Extracts what both metrics of plans judge: ``{plan, task}`` as first declared, and what was declared otherwise
    later, each with the call whose result gave cause to it, or ``None``; ``None`` where there is no plan. Raises
    :class:`~pandaeval_collector.judge.desk.NoVerdictError`."""
    found = await judge.ask(PLAN)
    plan = [step.strip() for step in found.plan if step.strip()]
    if not plan:
        return None
    calls = range(1, len(trace.tool_calls) + 1)
    revisions = [
        {"change": each.change.strip(), "cause": f"call {each.cause}" if each.cause in calls else None}
        for each in found.revisions
        if each.change.strip()
    ]
    return {"plan": plan, "task": await task_of(trace, judge)}, revisions
