"""What the agent was to do and what it did, asked of a judge once per trace and shared by the metrics that need it."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from pandaeval_collector.judge.desk import Judge, NoVerdictError
from pandaeval_collector.judge.rubric import Rubric, Verdict
from pandaeval_collector.score import Why


class TaskAndOutcome(Verdict):
    """``task``: empty when the record does not tell."""

    task: Annotated[str, Field(max_length=800)] = Field(
        description="What the user wanted, in one or two sentences. Empty if nothing in the record tells."
    )
    outcome: Annotated[str, Field(max_length=1600)] = Field(
        description="What the agent did and what came of it, as the evidence shows: facts alone."
    )


RUBRIC = Rubric(
    name="task_and_outcome",
    version="2",
    text="""
Two things are to be taken from the record, and nothing is to be judged.

task: what did the user want to be done? Keep every condition that was named: numbers, dates, places, limits, the
form of the answer. If there are several requests, name them all; if a later one takes an earlier one back, the
later one counts. If no words of the user were captured, say what the steps were plainly for; if not even that can
be told, leave it empty.

outcome: what did the agent do, and what is the case at the end? Tell the calls that mattered with what they gave
back, what failed, and what the answer says. What only the agent says, and no tool confirms, is to be told as "the
agent says that ...". Leave out every word that rates ("successfully", "correctly", "helpfully", "unfortunately"),
and everything that is not in the record.
""",
    verdict=TaskAndOutcome,
)


async def task_and_outcome(judge: Judge) -> TaskAndOutcome:
    """The extraction. Raises :class:`NoVerdictError`, also when the record does not tell what was to be done."""
    found = await judge.ask(RUBRIC)
    if not found.task.strip():
        raise NoVerdictError(Why.NO_CONTENT, "the record does not tell what the agent was to do")
    return found
