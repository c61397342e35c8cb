"""Session scores: how risky the worst moments of a session were, and how steady it was.

Pure functions over signals that were computed before: no model, no embedding, no I/O; safe on any thread.
Both follow the published session metrics of PandaProbe (agent_reliability, agent_consistency). A *signal* is a score in
0..1 with 1 best; its risk is 1 - signal. A missing key is a missing signal and is never read as 0 or 1.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from pandaeval_collector.analysis.stats._session_inputs import (
    EXTRA_SIGNALS,
    clamp01,
    mean,
    merged_weights,
    present_signals,
)

TOP_SHARE_PERCENT = 15
MAX_RISK_SHARE = 0.1
FLAG_ABOVE = 0.5

_RISK_KEYS = {
    "confidence": "confidence_risk",
    "loop_detection": "loop_risk",
    "tool_correctness": "tool_risk",
    "coherence": "coherence_risk",
    "error": "error_risk",
    "response": "response_risk",
    "tool_loop": "tool_loop_risk",
    "grounding": "grounding_risk",
}

Signals = Mapping[str, float | None]


@dataclass(frozen=True, slots=True)
class Reliability:
    """``score`` in 0..1; 1.0 with ``evaluated`` 0 when no trace had a signal.

    ``total`` traces were given and ``evaluated`` of them had a signal; ``positions`` says which (0-based). The fields
    below run over the evaluated traces, in their order: ``per_trace_risk`` (may exceed 1 when a weight does),
    ``components`` (the unweighted risks by name, and ``step_risk`` = the trace's risk) and ``flagged`` (0-based indexes
    *into the evaluated traces* of those with a risk above 0.5).
    """

    score: float
    evaluated: int
    total: int
    weights: Mapping[str, float]
    raw_risk: float = 0.0
    mean_top_k_risk: float = 0.0
    max_risk: float = 0.0
    k: int = 0
    per_trace_risk: tuple[float, ...] = ()
    components: tuple[Mapping[str, float], ...] = ()
    flagged: tuple[int, ...] = ()
    positions: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Consistency:
    """``score`` in 0..1; 1.0 with ``evaluated`` 0 when no trace had a confidence.

    ``raw_instability`` is the root mean square of ``weighted_uncertainty``. ``positions``, ``weighted_uncertainty``,
    ``situational_penalty`` and ``components`` run over the evaluated traces, as in :class:`Reliability`.
    """

    score: float
    evaluated: int
    total: int
    weights: Mapping[str, float]
    raw_instability: float = 0.0
    weighted_uncertainty: tuple[float, ...] = ()
    situational_penalty: tuple[float, ...] = ()
    components: tuple[Mapping[str, float], ...] = ()
    positions: tuple[int, ...] = ()


def agent_reliability(
    traces: Iterable[Signals],
    weights: Mapping[str, float] | None = None,
    *,
    extra_signals: Collection[str] = EXTRA_SIGNALS,
) -> Reliability:
    """How safe the worst moments of a session were.

    A trace's risk is the largest weight x (1 - signal) over its signals; the session's raw risk is
    0.9 x mean of the riskiest 15 % (at least one trace) + 0.1 x the riskiest. Score = 1 - raw risk, clamped to 0..1.

    ``traces``: one mapping per trace with any of ``confidence``, ``loop_detection``, ``tool_correctness``,
    ``coherence``, and of the extra signals ``response``, ``error`` and ``tool_loop``, which have weight 1 and take part
    only when their risk is above 0. ``extra_signals=()`` leaves those out. ``weights`` overrides defaults key by key; a
    signal of weight 0 still makes its trace count as evaluated. Raises ``ValueError`` for a bad weight, signal or name.
    """
    merged = merged_weights(weights)
    _check_extras(extra_signals)
    given = [present_signals(trace) for trace in traces]
    positions: list[int] = []
    risks: list[float] = []
    components: list[Mapping[str, float]] = []
    for position, signals in enumerate(given):
        parts = _risks(signals, merged, extra_signals)
        if not parts:
            continue
        risk = max(merged.get(name, 1.0) * part for name, part in parts.items())
        positions.append(position)
        risks.append(risk)
        components.append({_RISK_KEYS[name]: part for name, part in parts.items()} | {"step_risk": risk})
    if not risks:
        return Reliability(1.0, 0, len(given), merged)
    k = max(1, -(-TOP_SHARE_PERCENT * len(risks) // 100))
    worst = sorted(risks, reverse=True)[:k]
    top = mean(worst)
    raw = (1.0 - MAX_RISK_SHARE) * top + MAX_RISK_SHARE * worst[0]
    return Reliability(
        score=clamp01(1.0 - raw),
        evaluated=len(risks),
        total=len(given),
        weights=merged,
        raw_risk=raw,
        mean_top_k_risk=top,
        max_risk=worst[0],
        k=k,
        per_trace_risk=tuple(risks),
        components=tuple(components),
        flagged=tuple(index for index, risk in enumerate(risks) if risk > FLAG_ABOVE),
        positions=tuple(positions),
    )


def agent_consistency(traces: Iterable[Signals], weights: Mapping[str, float] | None = None) -> Consistency:
    """How steadily a session ran.

    Only traces with a confidence take part. Uncertainty of a trace = (1 + penalty) x w_confidence x (1 - confidence),
    where the penalty is the sum of weight x (1 - signal) over the loop, tool and coherence signals that are there;
    score = 1 - root mean square of the uncertainties, clamped to 0..1. Extra signals are not looked at.
    Parameters and errors as in :func:`agent_reliability`. Note: confidence 1.0 everywhere gives 1.0 whatever else
    happened, because the penalties only amplify doubt.
    """
    merged = merged_weights(weights)
    given = [present_signals(trace) for trace in traces]
    positions = [position for position, signals in enumerate(given) if "confidence" in signals]
    if not positions:
        return Consistency(1.0, 0, len(given), merged)
    components = [_uncertainty(given[position], merged) for position in positions]
    uncertainties = tuple(part["weighted_uncertainty"] for part in components)
    rms = math.sqrt(mean([value * value for value in uncertainties]))
    return Consistency(
        score=clamp01(1.0 - rms),
        evaluated=len(positions),
        total=len(given),
        weights=merged,
        raw_instability=rms,
        weighted_uncertainty=uncertainties,
        situational_penalty=tuple(part["situational_penalty"] for part in components),
        components=tuple(components),
        positions=tuple(positions),
    )


def _risks(signals: Mapping[str, float], weights: Mapping[str, float], extras: Collection[str]) -> dict[str, float]:
    risks = {name: 1.0 - signals[name] for name in weights if name in signals}
    return risks | {name: 1.0 - signals[name] for name in extras if signals.get(name, 1.0) < 1.0}


def _uncertainty(signals: Mapping[str, float], weights: Mapping[str, float]) -> dict[str, float]:
    risks = _risks(signals, weights, ())
    penalty = math.fsum(weights[name] * risk for name, risk in risks.items() if name != "confidence")
    uncertainty = (1.0 + penalty) * (weights["confidence"] * risks["confidence"])
    named = {_RISK_KEYS[name]: risk for name, risk in risks.items()}
    return named | {"situational_penalty": penalty, "weighted_uncertainty": uncertainty}


def _check_extras(extras: Collection[str]) -> None:
    for name in extras:
        if name not in EXTRA_SIGNALS:
            raise ValueError(f"unknown extra signal {name!r}; known: {', '.join(EXTRA_SIGNALS)}")
