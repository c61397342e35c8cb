"""What the agent was to do: the user's own words where one message tells it, else asked of a judge once per trace."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from pandaeval_collector.base.score import Why
from pandaeval_collector.judge.desk import Judge, NoVerdictError
from pandaeval_collector.judge.neutral import elided, one_line
from pandaeval_collector.judge.redact import redact
from pandaeval_collector.judge.rubric import Rubric, Verdict
from pandaeval_otel.model import Trace

_LONGEST = 800
"""Characters of a task. A longer message holds more than the task: a document, a log, an example."""
_FEWEST_WORDS = 4
"""A shorter message ("yes, do that") speaks of what stands elsewhere."""
_SELF_CONTAINED = 60
"""So many words name what they speak of; fewer are told with what they answer, where something was said before."""
_REFERENT = 600
"""Characters of what they answer."""


class Task(Verdict):
    """``task``: empty when the record does not tell."""

    task: Annotated[str, Field(max_length=_LONGEST)] = Field(
        description="What the user asked for, in one or two sentences, with every condition that was named: numbers, "
        "dates, places, limits, the form of the answer. All requests; where a later one takes an earlier one back, the "
        "later one. Without captured words of the user, what the steps were plainly for; empty if nothing tells."
    )


TASK = Rubric(
    name="task",
    version="4",
    text="What did the user want? Take it from the record; nothing is to be judged.",
    verdict=Task,
)
"""What is wanted of the field stands with the field: small models copy a question that names the field into it."""


async def task_of(trace: Trace, judge: Judge) -> str:
    """The task, without secrets. The judge is asked only where no single message of the user tells it.

    Raises :class:`NoVerdictError`, also when the record does not tell what was to be done.
    """
    told = _in_one_message(trace, judge.last_said)
    if told is not None:
        return told
    found = await judge.ask(TASK)
    if not found.task.strip():
        raise NoVerdictError(Why.NO_CONTENT, "the record does not tell what the agent was to do")
    return found.task


def _in_one_message(trace: Trace, last_said: str) -> str | None:
    if len(trace.turns) != 1:
        return None
    said = (trace.turns[0].user or "").strip()
    if not said or len(said) > _LONGEST:
        return None
    words = len(said.split())
    if last_said and words < _SELF_CONTAINED:
        return f"{redact(said)} (in answer to the agent: {elided(one_line(redact(last_said)), _REFERENT)})"
    return redact(said) if words >= _FEWEST_WORDS else None
