"""What a metric of level turn, or of a whole conversation, looks at: one turn with all that was there before it."""

from pandaeval_collector.judge.turns.conversation import Conversation, conversation
from pandaeval_collector.judge.turns.view import TurnView, turn_view

__all__ = ["Conversation", "TurnView", "conversation", "turn_view"]
