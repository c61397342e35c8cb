"""Did the agent ever fail badly in this session?

Per trace the greatest weighted risk (1 - signal) of confidence, repetition, tool choice and topic, and of our own
two: a run that did not end well (``response``), and a loop of tool calls; over the session 0.9 × the mean of the worst
15 % + 0.1 × the worst. It does not average good traces against a bad one. Yet the tail is relative: one catastrophe
among 14 to 20 traces still scores 0.60, so read ``max_risk`` and the flagged traces too.

Source: PandaProbe, session metrics, *Agent Reliability*.
"""

from __future__ import annotations

from typing import Any

from pandaeval_collector.metric import Metric, SessionContext, SessionView
from pandaeval_collector.metrics.session._signals import KINDS, coverage, signals_of
from pandaeval_collector.score import Assumed, Finding, Score, Unscored, Why
from pandaeval_collector.stats import agent_reliability
from pandaeval_collector.stats.bands import reliability_band
from pandaeval_collector.stats.session import Reliability


def _evaluate(session: SessionView, context: SessionContext) -> Finding | None:
    if not session.traces:
        return Assumed("No traces or signals to evaluate.")
    found = agent_reliability(
        [signals_of(trace, context) for trace in session.traces], context.weights, extra_signals=context.extra_signals
    )
    covered = coverage(session, context)
    metadata = _metadata(session, found)
    if covered.thin:
        metadata["partial_score"] = found.score if found.evaluated else None
        reason = f"too few traces have a score for {', '.join(covered.thin)}"
        return Unscored(Why.INSUFFICIENT_EVIDENCE, reason, metadata, coverage=covered.share)
    if not found.evaluated:
        if covered.assumed:
            return Assumed("No evaluable traces.", metadata)
        return Unscored(Why.NO_CONTENT, "no trace of this session has content to evaluate", metadata)
    metadata["band"] = reliability_band(found.score)
    return Score(found.score, _reason(session, found), metadata, coverage=covered.share)


def _metadata(session: SessionView, found: Reliability) -> dict[str, Any]:
    ids = [session.traces[position].trace_id for position in found.positions]
    return {
        "total_traces_in_session": found.total,
        "traces_evaluated": found.evaluated,
        "raw_risk": found.raw_risk,
        "signal_weights": dict(found.weights),
        "per_trace_signals": {id_: dict(parts) for id_, parts in zip(ids, found.components, strict=True)},
        "flagged_traces": [ids[index] for index in found.flagged],
        "aggregation": {
            "method": "max_compose_top_k",
            "top_k_percentile": 0.15,
            "ensemble_weight": 0.1,
            "mean_top_k_risk": found.mean_top_k_risk,
            "max_risk": found.max_risk,
        },
    }


def _reason(session: SessionView, found: Reliability) -> str:
    worst = max(range(found.evaluated), key=lambda index: found.per_trace_risk[index])
    parts = {name: risk for name, risk in found.components[worst].items() if name != "step_risk"}
    cause = max(parts, key=lambda name: parts[name]).removesuffix("_risk") if parts else "none"
    position = found.positions[worst]
    return (
        f"max risk {found.max_risk:.2f} ({cause}) in trace {position + 1} of {found.total} "
        f"({session.traces[position].trace_id}); {len(found.flagged)} of {found.evaluated} evaluated traces flagged"
    )


METRIC = Metric(
    level="session",
    name="agent_reliability",
    kind="math",
    version="1",
    threshold=0.5,
    question="Did the agent ever fail badly in this session?",
    needs="session id; any of coherence, loop_detection, confidence, tool_correctness",
    evaluate=_evaluate,
    unscored=(Why.NO_CONTENT, Why.INSUFFICIENT_EVIDENCE),
    signals=(*KINDS, "response", "grounding", "tool_loop"),
)
