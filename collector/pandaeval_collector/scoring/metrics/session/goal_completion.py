"""Did the user reach the goal by the end of the conversation?

A judge answers yes or no, in the same call as ``correctness``. If the spans do not contain enough facts, there is no
score. A goal that was only discussed, partly reached or refused is not completed. The goal comes from
``pandaeval.goal``, or from the user's words if this attribute is missing. It does not judge whether the agent was
right. If a session has more than 24 traces, the judge sees only the first trace and the newest 23.

Scale: 0 or 1. A gate checks the share of conversations with the score 1.
Source: Agentest, evaluation metrics, *Goal Completion*.
"""

from __future__ import annotations

from pandaeval_collector.base.score import Score, Unscored
from pandaeval_collector.judge.conversation import Conversation
from pandaeval_collector.scoring.metrics.session._correctness import Whole, of_conversation
from pandaeval_collector.scoring.metrics.trace._facts import undetermined


def _score(found: Whole, conversation: Conversation, suspects: object) -> Score | Unscored:
    if found.goal_completed is None:
        return undetermined(found.reason)
    goal = conversation.goal or "; ".join(each.thing for each in found.things)
    return Score(float(found.goal_completed), found.reason, {"goal": goal, "turns": len(conversation.trace.turns)})


METRIC = of_conversation(
    "goal_completion",
    "7",
    "Did the user reach the goal by the end of the conversation?",
    __doc__,
    _score,
)
