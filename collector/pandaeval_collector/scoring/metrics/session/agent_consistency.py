"""Was the agent consistent throughout this session?

From the confidence score of each trace, the metric computes a risk. The session score is 1 minus the root mean square
of these risks. The risk is (1 + weighted risks of repetition, tool choice and topic) × weighted lack of confidence. It
does not judge whether the agent was right. If no judge rates confidence, the metric does not apply.

Source: PandaProbe, session metrics, *Agent Consistency*.
"""

from __future__ import annotations

from typing import Any

from pandaeval_collector.analysis.stats.session import (
    agent_consistency,
    agent_reliability,
    consistency_band,
    session_profile,
)
from pandaeval_collector.base.score import Assumed, Finding, Score, Unscored, Why
from pandaeval_collector.scoring.metric import SessionContext, SessionMetric, SessionView
from pandaeval_collector.scoring.metrics.session._signals import (
    KINDS,
    coverage,
    coverage_reason,
    session_signals,
    was_drawn,
)


def _evaluate(session: SessionView, context: SessionContext) -> Finding | None:
    if "confidence" not in context.enabled:
        return None
    if not session.traces:
        return Assumed("No traces or signals to evaluate.")
    if not was_drawn(session):
        return None  # this session is not judged
    signals = session_signals(session, context)
    found = agent_consistency(signals, context.weights)
    covered = coverage(session, context)
    ids = [session.traces[position].trace_id for position in found.positions]
    metadata: dict[str, Any] = {
        "total_traces_in_session": found.total,
        "traces_evaluated": found.evaluated,
        "raw_instability": found.raw_instability,
        "signal_weights": dict(found.weights),
        "per_trace_signals": {id_: dict(parts) for id_, parts in zip(ids, found.components, strict=True)},
        "aggregation": {"method": "weighted_rms", "rms_value": found.raw_instability},
    }
    if covered.thin:
        metadata["partial_score"] = found.score if found.evaluated else None
        reason = coverage_reason(session, covered)
        return Unscored(Why.INSUFFICIENT_EVIDENCE, reason, metadata, coverage=covered.share)
    if not found.evaluated:
        if covered.assumed and not covered.expected:
            return Assumed("No evaluable traces.", metadata)
        return Unscored(Why.INSUFFICIENT_EVIDENCE, "no trace of this session has a confidence score", metadata)
    metadata["band"] = consistency_band(found.score)
    reliability = agent_reliability(signals, context.weights)
    metadata["session_profile"] = session_profile(reliability.score, found.score)
    worst = max(range(found.evaluated), key=lambda index: found.weighted_uncertainty[index])
    place = f"trace {found.positions[worst] + 1} of {found.total} ({ids[worst]})"
    uncertain = f"{found.weighted_uncertainty[worst]:.2f}"
    reason = (
        f"most uncertain: {place}, uncertainty {uncertain}; instability of the session: {found.raw_instability:.2f}"
    )
    return Score(found.score, reason, metadata, coverage=covered.share)


METRIC = SessionMetric(
    name="agent_consistency",
    kind="math",
    version="3",
    threshold=0.5,
    question="Was the agent consistent throughout this session?",
    needs="a session ID, and results of the metric confidence, which needs a judge",
    evaluate=_evaluate,
    unscored=(Why.INSUFFICIENT_EVIDENCE,),
    signals=KINDS,
)
