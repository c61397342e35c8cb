"""Did the agent ever fail badly in this session?

The metric finds the highest risk of each trace, and scores the session by its worst traces. The risks come from
confidence, repetition, tool choice, topic, ``response``, ``grounding`` and ``tool_loop``. The judge setting
``judge.correctness: trace`` adds ``correctness``. The score is 1 - (0.9 × the mean risk of the worst 15 % + 0.1 × the
worst risk). It does not let good traces balance a bad trace.

If any of these metrics fails in a trace, the session fails, unless a later trace recovers the failed call. If only
``grounding`` fails, or only suspects lower the score, the label is ``suspect``, which neither passes nor fails.

Without a judge, or if ``judge.detail`` is not ``all``, ``metadata.basis`` is ``inline``. Then the label is
``problem_found``, ``suspect`` or ``no_problem_found``. If no metric fails, there is no score in three cases: only
``response`` was checked, fewer than half of the applicable checks ran, or repetition or topic was scored in fewer than
half of the traces that need it. ``no_problem_found`` does not mean that the task succeeded.

If ``judge.detail`` is ``all``, there is no score if confidence, repetition, tool choice or topic was scored in fewer
than half of the traces that need it, even if a metric fails.

Source: PandaProbe, session metrics, *Agent Reliability*.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pandaeval_collector.analysis.stats.session import Reliability, agent_reliability, reliability_band
from pandaeval_collector.base.result import SUSPECT, TOLERANCE
from pandaeval_collector.base.score import Assumed, Finding, Score, Unscored, Why
from pandaeval_collector.scoring.metric import SessionContext, SessionMetric, SessionView
from pandaeval_collector.scoring.metrics.session._signals import (
    ENOUGH,
    KINDS,
    coverage,
    coverage_reason,
    failures,
    is_judged,
    scored_share,
    session_signals,
    signal_counts,
)

GROUNDING = "grounding"
READS = (*KINDS, "response", GROUNDING, "tool_loop", "correctness")
OFTEN_WRONG = frozenset({GROUNDING})
"""Kinds of failures that are true in fewer than four of five flags."""


def _evaluate(session: SessionView, context: SessionContext) -> Finding | None:
    if not session.traces:
        return Assumed("No traces or signals to evaluate.")
    signals = session_signals(session, context)
    counted = failures(session, READS)
    if {*counted} == {GROUNDING}:
        signals = [{kind: value for kind, value in trace.items() if kind != GROUNDING} for trace in signals]
    found = agent_reliability(signals, context.weights)
    covered, basis = coverage(session, context), signal_counts(session, context)
    metadata = _metadata(session, found, basis)
    judged = context.judged and is_judged(session)
    if not judged:
        metadata["basis"] = "inline"
    fails = not OFTEN_WRONG.issuperset(counted)
    if covered.thin and (judged or not fails):
        unscored = metadata | {"partial_score": _partial(found)}
        return Unscored(Why.INSUFFICIENT_EVIDENCE, coverage_reason(session, covered), unscored, coverage=covered.share)
    if not found.evaluated and not basis:
        if covered.assumed:
            return Assumed("No evaluable traces.", metadata)
        return Unscored(Why.NO_CONTENT, "no trace of this session has content to evaluate", metadata)
    reason = _reason(session, signals, found, basis)
    risky = bool(found.flagged) or found.score < context.threshold - TOLERANCE
    if judged:
        metadata["band"] = reliability_band(found.score)
        label = SUSPECT if (counted or risky) and not fails else None
        return Score(found.score, reason, metadata, label=label, failed=fails, coverage=covered.share)
    if fails:
        reason = f"{_checks(counted, basis)}; {reason}"
        return Score(found.score, reason, metadata, label="problem_found", failed=True, coverage=covered.share)
    if risky and not counted:
        reason = f"{_checks(counted, basis, 'only suspicions were found')}; {reason}"
        return Score(found.score, reason, metadata, label=SUSPECT, coverage=covered.share)
    return _no_problem(session, context, found, metadata, counted, reason, covered.share)


def _partial(found: Reliability) -> float | None:
    return found.score if found.evaluated else None


def _metadata(session: SessionView, found: Reliability, basis: Mapping[str, int]) -> dict[str, Any]:
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
        "rests_on": basis,
    }


def _no_problem(
    session: SessionView,
    context: SessionContext,
    found: Reliability,
    metadata: dict[str, Any],
    counted: Mapping[str, int],
    reason: str,
    share: float,
) -> Finding:
    basis, label = metadata["rests_on"], "no_problem_found"
    checks = _checks(counted, basis)
    if {*counted} == {GROUNDING}:
        label = SUSPECT
        checks = _checks(counted, basis, "only an unsupported value was found")
        named = (at for at, trace in enumerate(session.traces) if GROUNDING in trace.signals)
        at = next(at for at in named if session.traces[at].signals[GROUNDING].said)
        checks = f"{checks}; {_place(session, at)}: {session.traces[at].signals[GROUNDING].said}"
    unscored = metadata | {"partial_score": found.score}
    if {*basis} <= {"response"}:
        reason = "hardly checked: only the endings of the runs were checked; task success: not judged"
        return Unscored(Why.INSUFFICIENT_EVIDENCE, reason, unscored, coverage=share)
    if (seen := scored_share(session, context)) < ENOUGH:
        reason = f"{checks}; only {seen:.0%} of the applicable checks could run"
        return Unscored(Why.INSUFFICIENT_EVIDENCE, reason, unscored, coverage=seen)
    if found.max_risk and label != SUSPECT:
        checks = f"{checks}; {reason}"
    return Score(found.score, checks, metadata, label=label, coverage=share)


def _checks(counted: Mapping[str, int], basis: Mapping[str, int], what: str = "") -> str:
    found = ", ".join(f"{name} in {_traces(count)}" for name, count in counted.items())
    total = sum(counted.values())
    if not what:
        what = f"{total} finding{'' if total == 1 else 's'}" if found else "no findings"
    return f"{what} by rules ({found or ', '.join(basis)}); task success: not judged"


def _reason(
    session: SessionView, signals: Sequence[Mapping[str, float]], found: Reliability, basis: Mapping[str, int]
) -> str:
    if not found.max_risk:
        return f"no sign of a problem in {_traces(found.total)} ({', '.join(basis)})"
    worst = max(range(found.evaluated), key=lambda index: found.per_trace_risk[index])
    at = found.positions[worst]
    cause = max(signals[at], key=lambda name: found.weights.get(name, 1.0) * (1.0 - signals[at][name]))
    trace = session.traces[at]
    signal = trace.signals.get(cause)
    finding = signal.said if signal is not None else ""
    if trace.crashed and cause == "response":
        finding = finding or "the run ended with an error"
    if finding:
        return f"worst: {_place(session, at)}, {cause}, risk {found.max_risk:.2f}: {finding}"
    return f"highest risk {found.max_risk:.2f}: {cause} in {_place(session, at)}, which is no failure"


def _place(session: SessionView, at: int) -> str:
    return f"trace {at + 1} of {len(session.traces)} ({session.traces[at].trace_id})"


def _traces(count: int) -> str:
    return f"{count} trace{'' if count == 1 else 's'}"


METRIC = SessionMetric(
    name="agent_reliability",
    kind="math",
    version="9",
    threshold=0.5,
    question="Did the agent ever fail badly in this session?",
    needs="a session ID, and results of trace metrics, such as grounding, tool_loop or correctness",
    evaluate=_evaluate,
    unscored=(Why.NO_CONTENT, Why.INSUFFICIENT_EVIDENCE),
    signals=READS,
)
