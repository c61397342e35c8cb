"""Stable formulas for scripts: pure functions of numbers and words, thread-safe."""

from pandaeval_collector.analysis.stats.pass_k import PassEstimate, pass_at_k, pass_pow_k
from pandaeval_collector.analysis.stats.session import (
    agent_consistency,
    agent_reliability,
    assessment,
    consistency_band,
    reliability_band,
    session_profile,
)
from pandaeval_collector.analysis.stats.similarity import coherence, loop_detection
from pandaeval_collector.analysis.stats.tools import (
    plan_order,
    step_efficiency,
    tool_routing_accuracy,
    tool_selection_f1,
)
from pandaeval_collector.analysis.stats.topic import content_tokens

__all__ = [
    "PassEstimate",
    "agent_consistency",
    "agent_reliability",
    "assessment",
    "coherence",
    "consistency_band",
    "content_tokens",
    "loop_detection",
    "pass_at_k",
    "pass_pow_k",
    "plan_order",
    "reliability_band",
    "session_profile",
    "step_efficiency",
    "tool_routing_accuracy",
    "tool_selection_f1",
]
