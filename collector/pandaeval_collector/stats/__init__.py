"""The formulas: pure functions of numbers and words. No trace, no model, no embedder, no I/O; safe on any thread."""

from pandaeval_collector.stats.bands import consistency_band, reliability_band, session_profile
from pandaeval_collector.stats.coherence import coherence
from pandaeval_collector.stats.loops import loop_detection
from pandaeval_collector.stats.session import agent_consistency, agent_reliability
from pandaeval_collector.stats.tokens import content_tokens
from pandaeval_collector.stats.tools import plan_order, step_efficiency, tool_routing_accuracy, tool_selection_f1

__all__ = [
    "agent_consistency",
    "agent_reliability",
    "coherence",
    "consistency_band",
    "content_tokens",
    "loop_detection",
    "plan_order",
    "reliability_band",
    "session_profile",
    "step_efficiency",
    "tool_routing_accuracy",
    "tool_selection_f1",
]
