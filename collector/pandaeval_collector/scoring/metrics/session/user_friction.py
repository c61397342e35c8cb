"""How hard did the agent make it for the user?

A judge looks for friction in the user's messages: users repeat themselves, correct the agent, complain, request a
person or give up. The judge answers in the same call as for ``correctness``. It does not judge whether the agent was
right: a right refusal can annoy users.

Scale: 1 for no friction, 0.5 for some friction, 0 for much friction.
Source: ours.
"""

from __future__ import annotations

from collections.abc import Sequence

from pandaeval_collector.base.score import Score
from pandaeval_collector.judge.conversation import Conversation
from pandaeval_collector.scoring.metrics.session._correctness import Whole, of_conversation

SCORES = {"none": 1.0, "some": 0.5, "much": 0.0}


def _score(found: Whole, conversation: Conversation, suspects: object) -> Score:
    reason = "no user message shows friction"
    if turns := found.friction_turns:
        reason = f"{found.friction} friction in {_turns(turns)}"
    return Score(SCORES[found.friction], reason, {"friction": found.friction, "turns": found.friction_turns})


def _turns(numbers: Sequence[int]) -> str:
    *most, last = map(str, numbers)
    return f"turns {', '.join(most)} and {last}" if most else f"turn {last}"


METRIC = of_conversation("user_friction", "5", "How hard did the agent make it for the user?", __doc__, _score)
