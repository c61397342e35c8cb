"""Session scores: risk of the worst moments, and steadiness.

Follows PandaProbe's published session metrics (agent_reliability, agent_consistency). A *signal* is a score in 0..1, 1
best; its risk is 1 - signal. A missing key is a missing signal.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import SupportsFloat

# Signal weights and signal values, which both session scores check before they compute.
DEFAULT_WEIGHTS: Mapping[str, float] = {
    "confidence": 1.0,
    "loop_detection": 1.0,
    "tool_correctness": 0.8,
    "coherence": 1.0,
}
EXTRA_SIGNALS = ("response", "grounding", "tool_loop", "correctness")
_LARGEST_WEIGHT = 1e100  # far beyond any use; above it the squares of the consistency score would overflow
# Words for session scores: a band for each score, and a word for both scores, or for pass@k and pass^k.
#
# The bands are those of PandaProbe's session metrics, half-open: 0.9 and above, [0.7, 0.9), [0.5, 0.7), [0.3, 0.5),
# below 0.3. A score within 1e-9 of a limit counts as having reached it, as it does for thresholds.
_TOLERANCE = 1e-9
_LIMITS = (0.9, 0.7, 0.5, 0.3)
_RELIABILITY = ("highly_reliable", "generally_reliable", "moderate_risk", "elevated_risk", "high_risk")
_CONSISTENCY = ("highly_consistent", "generally_consistent", "moderate_instability", "high_instability", "unstable")
PROFILE_CUT = 0.7
"""The source calls a session reliable or consistent from this score on. With the threshold 0.5, a session with the band
"some traces show concerning behaviour" would be "safe"."""
TOP_SHARE_PERCENT = 15
MAX_RISK_SHARE = 0.1
FLAG_ABOVE = 0.5
_RISK_KEYS = {name: f"{name}_risk" for name in (*DEFAULT_WEIGHTS, *EXTRA_SIGNALS)} | {
    "loop_detection": "loop_risk",
    "tool_correctness": "tool_risk",
}
Signals = Mapping[str, float | None]


def merged_weights(overrides: Mapping[str, float] | None) -> dict[str, float]:
    """Return the default weights, overridden by ``overrides``.

    Raises ``ValueError``, naming the key, for bad keys and weights, and if all are zero.
    """
    weights = dict(DEFAULT_WEIGHTS)
    for key, weight in (overrides or {}).items():
        if key not in DEFAULT_WEIGHTS:
            raise ValueError(f"unknown signal weight {key!r}; known: {', '.join(DEFAULT_WEIGHTS)}")
        number = _number(weight)
        if not 0.0 <= number <= _LARGEST_WEIGHT:
            raise ValueError(f"signal weight {key!r} must be a finite number >= 0, not {weight!r}")
        weights[key] = number
    if not any(weights.values()):
        raise ValueError(f"signal weights are all zero; raise at least one: {', '.join(weights)}")
    return weights


def present_signals(trace: Mapping[str, float | None]) -> dict[str, float]:
    """Return a trace's signals that are not ``None``.

    Raises ``ValueError``, naming the key, for unknown signals and values outside 0..1.
    """
    signals: dict[str, float] = {}
    for key, value in trace.items():
        if key not in DEFAULT_WEIGHTS and key not in EXTRA_SIGNALS:
            raise ValueError(f"unknown signal {key!r}; known: {', '.join((*DEFAULT_WEIGHTS, *EXTRA_SIGNALS))}")
        if value is None:
            continue
        number = _number(value)
        if not 0.0 <= number <= 1.0:
            raise ValueError(f"signal {key!r} must lie in 0..1, not {value!r}")
        signals[key] = number
    return signals


def clamp01(value: float) -> float:
    return min(1.0, max(0.0, value))


def mean(values: list[float]) -> float:
    """Return the exactly rounded mean of a non-empty list, the same in any order."""
    return math.fsum(values) / len(values)


def _number(value: object) -> float:
    if type(value) is float:  # the usual type; a check of the protocol takes microseconds
        return value
    return float(value) if isinstance(value, SupportsFloat) else math.nan


def reliability_band(score: float) -> str:
    """Return ``highly_reliable``, ``generally_reliable``, ``moderate_risk``, ``elevated_risk`` or ``high_risk``.

    Raises ``ValueError`` outside 0..1.
    """
    return _RELIABILITY[_band(score)]


def consistency_band(score: float) -> str:
    """Return ``highly_consistent``, ``generally_consistent``, ``moderate_instability``, ``high_instability`` or
    ``unstable``. Raises ``ValueError`` outside 0..1.
    """
    return _CONSISTENCY[_band(score)]


def session_profile(reliability: float, consistency: float) -> str:
    """Return the source's profile of two scores, high from 0.7 on: ``safe_and_smooth`` (both), ``uneven`` (reliable
    only), ``consistently_mediocre`` (consistent only) or ``unreliable_and_unstable``. Raises ``ValueError`` outside
    0..1.
    """
    reliable, consistent = (_checked(score) >= PROFILE_CUT - _TOLERANCE for score in (reliability, consistency))
    if reliable:
        return "safe_and_smooth" if consistent else "uneven"
    return "consistently_mediocre" if consistent else "unreliable_and_unstable"


def assessment(pass_at_k: float | None, pass_pow_k: float | None) -> str | None:
    """Return the agentic metric's assessment of pass@k and pass^k: ``reliable`` (above 0.95 and 0.7), ``inconsistent``
    (above 0.95 and below 0.5), ``needs_improvement`` (pass@k below 0.7) or ``None``.
    """
    if pass_at_k is None or pass_pow_k is None:
        return None
    if _checked(pass_at_k) < 0.7 - _TOLERANCE:
        return "needs_improvement"
    if pass_at_k <= 0.95 + _TOLERANCE:
        return None
    if _checked(pass_pow_k) > 0.7 + _TOLERANCE:
        return "reliable"
    return "inconsistent" if pass_pow_k < 0.5 - _TOLERANCE else None


def _band(score: float) -> int:
    return sum(_checked(score) < limit - _TOLERANCE for limit in _LIMITS)


def _checked(score: float) -> float:
    if not 0.0 <= score <= 1.0:
        raise ValueError(f"a score lies in 0..1, not {score!r}")
    return score


@dataclass(frozen=True, slots=True)
class Reliability:
    """``score`` in 0..1; 1.0 with ``evaluated`` 0 if no trace had a signal.

    ``total``: given traces. ``evaluated``: traces with a signal, at ``positions`` (0-based). Per evaluated trace:
    ``per_trace_risk`` (may exceed 1) and ``components`` (unweighted risks, and ``step_risk``). ``flagged``: indexes
    into the evaluated traces with a risk above 0.5.
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
    """``score`` in 0..1; 1.0 with ``evaluated`` 0 if no trace had a confidence.

    ``total``, ``evaluated``, ``positions``: as in :class:`Reliability`. ``raw_instability``: root mean square of
    ``weighted_uncertainty``. Per evaluated trace: ``weighted_uncertainty``, ``situational_penalty``, ``components``.
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


def agent_reliability(traces: Iterable[Signals], weights: Mapping[str, float] | None = None) -> Reliability:
    """Score how safe the worst moments of a session were.

    A trace's risk is its largest weight x (1 - signal). Raw risk = 0.9 x mean of the riskiest 15 % (at least one trace)
    + 0.1 x the riskiest. Score = 1 - raw risk, clamped to 0..1.

    ``traces``: a mapping per trace with any of ``confidence``, ``loop_detection``, ``tool_correctness``, ``coherence``.
    ``response``, ``grounding``, ``tool_loop`` and ``correctness`` have weight 1 and count only with a risk above 0.
    ``weights``: overrides by key. Raises ``ValueError`` for a bad weight or signal.
    """
    merged = merged_weights(weights)
    given = [present_signals(trace) for trace in traces]
    positions: list[int] = []
    risks: list[float] = []
    components: list[Mapping[str, float]] = []
    for position, signals in enumerate(given):
        parts = _risks(signals, merged, EXTRA_SIGNALS)
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
    """Score how steadily a session ran.

    Only traces with a confidence count. Penalty = sum of weight x (1 - signal) over loop, tool and coherence signals.
    Uncertainty = (1 + penalty) x w_confidence x (1 - confidence). Score = 1 - root mean square, clamped to 0..1.
    Parameters and errors as in :func:`agent_reliability`.
    """
    merged = merged_weights(weights)
    given = [present_signals(trace) for trace in traces]
    positions = [position for position, signals in enumerate(given) if "confidence" in signals]
    if not positions:
        return Consistency(1.0, 0, len(given), merged)
    components = []
    for position in positions:
        risks = _risks(given[position], merged, ())
        penalty = math.fsum(merged[name] * risk for name, risk in risks.items() if name != "confidence")
        uncertainty = (1.0 + penalty) * (merged["confidence"] * risks["confidence"])
        named = {_RISK_KEYS[name]: risk for name, risk in risks.items()}
        components.append(named | {"situational_penalty": penalty, "weighted_uncertainty": uncertainty})
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
