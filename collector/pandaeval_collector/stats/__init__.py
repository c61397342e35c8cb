"""The formulas: pure functions of numbers and words. No trace, no model, no embedder, no I/O; safe on any thread."""

from pandaeval_collector.stats.bands import consistency_band, reliability_band, session_profile
from pandaeval_collector.stats.coherence import coherence
from pandaeval_collector.stats.loops import loop_detection
from pandaeval_collector.stats.session import agent_consistency, agent_reliability
from pandaeval_collector.stats.tokens import content_tokens

__all__ = [
    "agent_consistency",
    "agent_reliability",
    "coherence",
    "consistency_band",
    "content_tokens",
    "loop_detection",
    "reliability_band",
    "session_profile",
]
