"""Did the user get what the user was after, by the end of the conversation?

A judge is shown the whole conversation, with tool calls and results, once it is over: was the goal fully completed? It
is strictly yes or no: a goal that was talked about, or reached in part, is not completed. The goal is the one that the
application states (``pandaeval.goal``), else what the user wants by his own words. It does not judge how it was done,
nor how the agent spoke. Of a conversation of more than 24 traces, the first and the newest are shown.

Scale: 0 or 1; the gate is the share of conversations.
Source: Agentest, evaluation metrics, *Goal Completion*.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from pandaeval_collector.base.score import Finding, Score, Why
from pandaeval_collector.judge.desk import Judge
from pandaeval_collector.judge.rubric import Reason, Rubric, Verdict
from pandaeval_collector.judge.turns import Conversation, stated
from pandaeval_collector.scoring.metric import Metric, SessionContext, SessionView
from pandaeval_collector.scoring.metrics.trace._facts import NOTHING_TOLD, told, undetermined


class Goal(Verdict):
    """``completed``: ``None`` where the record does not suffice to tell."""

    goal: Annotated[str, Field(max_length=600)] = Field(
        description="The goal in one sentence: the one that is given below, else what the user wanted in the end."
    )
    reason: Reason = Field(description="What shows that the goal was completed, or what is missing, in short.")
    completed: bool | None = Field(
        description="True only if all of the goal was completed. Null if the record does not suffice to tell."
    )


RUBRIC = Rubric(
    name="goal_completion",
    version="2",
    text="""
Was the user's goal fully completed by the end of this conversation? The record holds all of it: the user's messages and
the answers by turn, and the calls of tools in their order.

- Strictly yes or no. A goal that was discussed, prepared or reached in part is not completed: to be told which hours
  are free is no booking.
- What a tool had to do is done if its result bears that out. What the agent says of it is a claim.
- A later wish replaces an earlier one; what the user gave up is no longer the goal. A goal that the instructions forbid
  is not completed, however right the refusal.
- Ways, tone and length are of no account.

Example: the user wants an appointment and chooses ten o'clock of the free hours that the agent names; nothing was
booked when the conversation ends: not completed.
""",
    verdict=Goal,
)


def _before_asking(session: SessionView, context: SessionContext) -> Finding | None:
    return None if session.traces else NOTHING_TOLD


async def _ask(conversation: Conversation, judge: Judge) -> Finding | None:
    if not told(conversation.trace):
        return NOTHING_TOLD
    found = await judge.ask(RUBRIC, stated(conversation))
    if found.completed is None:
        return undetermined(found.reason)
    metadata = {"goal": conversation.goal or found.goal, "turns": len(conversation.trace.turns)}
    if conversation.missing:
        metadata["traces_not_shown"] = conversation.missing
    raw = 1.0 if found.completed else 0.0
    return Score(raw, found.reason, metadata)


METRIC = Metric(
    level="session",
    name="goal_completion",
    kind="llm",
    version="2",
    threshold=0.5,
    question="Did the user get what the user was after, by the end of the conversation?",
    needs="session id; what was said; a judge",
    evaluate=_before_asking,
    ask=_ask,
    rubrics=(RUBRIC,),
    unscored=(Why.NO_CONTENT, Why.INSUFFICIENT_EVIDENCE),
)
