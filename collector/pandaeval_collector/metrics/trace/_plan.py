"""The plan that the agent made, asked of a judge once per trace and shared by the metrics that need it."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from pandaeval_collector.judge.desk import Judge
from pandaeval_collector.judge.rubric import Rubric, Verdict
from pandaeval_collector.metrics.trace._facts import NOTHING_TOLD, answered, has_steps, told
from pandaeval_collector.score import Assumed, Unscored, Why
from pandaeval_otel.model import Trace


class Plan(Verdict):
    """``plan``: the steps in the intended order; empty when there is none."""

    plan: Annotated[list[Annotated[str, Field(max_length=300)]], Field(max_length=30)] = Field(
        description="The steps of the plan in the order that the agent intended. Empty if it made no plan."
    )


RUBRIC = Rubric(
    name="plan",
    version="2",
    text="""
Which plan did the agent make for this run? Take it from the record; nothing is to be judged.

A plan is what the agent meant to do before it did it: steps that it states in its thoughts, or writes down through a
tool (a list of things to do, say), or that its thoughts clearly imply ("first I need the price, then I can compare").
For the question what the agent meant to do, its thoughts are evidence.

- List the steps in the intended order, one short sentence each, close to the agent's own words.
- Each step must rest on a place in the record. Do not add what would have been sensible, and do not turn calls that
  merely happened into steps of a plan.
- If the agent changed its plan on the way, list the plan as it stood in the end, the steps done before included.
- If there is no plan, leave the list empty. That is a common and a fine answer.
""",
    verdict=Plan,
    max_tokens=2500,
)

NO_PLAN = Assumed("no plan was found in the run", {"plan": []})


def before_asking(trace: Trace) -> Assumed | Unscored | None:
    """What is known without a judge: a plan can only stand in thoughts or calls."""
    if not told(trace):
        return NOTHING_TOLD
    if has_steps(trace):
        return None
    if answered(trace):
        return NO_PLAN
    return Unscored(Why.NO_CONTENT, "neither thoughts nor steps nor an answer of the agent were captured")


async def plan_of(judge: Judge) -> list[str]:
    """The steps of the plan, blank ones left out; empty when there is no plan. Raises
    :class:`~pandaeval_collector.judge.desk.NoVerdictError`."""
    found = await judge.ask(RUBRIC)
    return [step.strip() for step in found.plan if step.strip()]
