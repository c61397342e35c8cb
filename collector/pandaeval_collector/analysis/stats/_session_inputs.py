"""What both session scores check before they compute: signal weights and signal values."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import SupportsFloat

DEFAULT_WEIGHTS: Mapping[str, float] = {
    "confidence": 1.0,
    "loop_detection": 1.0,
    "tool_correctness": 0.8,
    "coherence": 1.0,
}
EXTRA_SIGNALS = ("error", "response", "grounding", "tool_loop")
_LARGEST_WEIGHT = 1e100  # far beyond any use; above it the squares of the consistency score would overflow


def merged_weights(overrides: Mapping[str, float] | None) -> dict[str, float]:
    """The default weights with ``overrides`` laid over them; what is not named keeps its default.

    Raises ``ValueError``, naming the key, for an unknown key and for a weight that is negative, not finite or not a
    number; and when every weight is zero.
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
        raise ValueError(f"signal weights are all zero: {', '.join(weights)}")
    return weights


def present_signals(trace: Mapping[str, float | None]) -> dict[str, float]:
    """The signals of one trace that are there, as floats in 0..1. ``None`` means the same as a missing key.

    Raises ``ValueError``, naming the key, for an unknown signal and for a value that is no finite number in 0..1.
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
    """Moves ``value`` into 0..1."""
    return min(1.0, max(0.0, value))


def mean(values: list[float]) -> float:
    """The exactly rounded mean of a non-empty list, the same in any order."""
    return math.fsum(values) / len(values)


def _number(value: object) -> float:
    if type(value) is float:  # as nearly all are; to ask for a protocol takes microseconds
        return value
    return float(value) if isinstance(value, SupportsFloat) else math.nan
