"""The formulas that scripts import: pure functions of numbers and words, safe on any thread.

No trace, no model, no embedder and no I/O is behind them. These names stay; :mod:`.analysis.stats` may move.
"""

from pandaeval_collector.analysis.stats import (
    PassEstimate,
    agent_consistency,
    agent_reliability,
    assessment,
    coherence,
    consistency_band,
    content_tokens,
    loop_detection,
    pass_at_k,
    pass_pow_k,
    plan_order,
    reliability_band,
    session_profile,
    step_efficiency,
    tool_routing_accuracy,
    tool_selection_f1,
)

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
