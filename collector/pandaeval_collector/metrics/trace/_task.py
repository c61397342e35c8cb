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
        description="What the user asked for, in one or two sentences, with every condition that was named: numbers, "
        "dates, places, limits, the form of the answer. All requests; where a later one takes an earlier one back, the "
        "later one. Without captured words of the user, what the steps were plainly for; empty if nothing tells."
    )
    outcome: Annotated[str, Field(max_length=1600)] = Field(
        description="What is the case at the end, in a few sentences: the calls that mattered with what they gave "
        "back, what failed, and what the answer says. What no tool confirms is told as 'the agent says that ...'. No "
        "word that rates ('successfully', 'correctly', 'unfortunately'), and nothing that is not in the record."
    )


TASK_AND_OUTCOME = Rubric(
    name="task_and_outcome",
    version="3",
    text="What did the user want, and what came of it? Take both from the record; nothing is to be judged.",
    verdict=TaskAndOutcome,
)
"""What is wanted of each field stands with the field: small models copy a question that names the field into it."""


async def task_and_outcome(judge: Judge) -> TaskAndOutcome:
    """The extraction. Raises :class:`NoVerdictError`, also when the record does not tell what was to be done."""
    found = await judge.ask(TASK_AND_OUTCOME)
    if not found.task.strip():
        raise NoVerdictError(Why.NO_CONTENT, "the record does not tell what the agent was to do")
    return found
