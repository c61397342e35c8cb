"""Separation of good from bad units, with intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import nan, sqrt

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]
Z95 = 1.959963984540054


@dataclass(frozen=True, slots=True)
class ShareEstimate:
    """A value in 0..1 with 95 % interval; ``nan`` without units."""

    value: float
    low: float
    high: float
    n: int

    def __str__(self) -> str:
        if self.value != self.value:
            return "–"
        return f"{self.value:.2f} [{self.low:.2f}, {self.high:.2f}]"


NOTHING = ShareEstimate(nan, nan, nan, 0)


def auroc(good: Sequence[float], bad: Sequence[float]) -> ShareEstimate:
    """Return the AUROC with DeLong's interval; ties count half."""
    return auroc_within([(good, bad)])


def auroc_within(strata: Sequence[tuple[Sequence[float], Sequence[float]]]) -> ShareEstimate:
    """Return the AUROC over pairs of the same stratum."""
    parts = [(good, bad, len(good) * len(bad)) for good, bad in strata if good and bad]
    pairs = sum(weight for _, _, weight in parts)
    if not pairs:
        return NOTHING
    value = variance = 0.0
    for good, bad, weight in parts:
        higher, lower = np.asarray(good, dtype=np.float64), np.asarray(bad, dtype=np.float64)
        of_good, of_bad = _placed(higher, lower), _placed(lower, higher)
        value += float(of_good.mean()) * weight / pairs
        variance += (_spread(of_good) + _spread(of_bad)) * (weight / pairs) ** 2
    half = Z95 * sqrt(max(0.0, variance))
    n = sum(len(good) + len(bad) for good, bad, _ in parts)
    return ShareEstimate(value, max(0.0, value - half), min(1.0, value + half), n)


def thirds(lengths: Sequence[float]) -> list[int]:
    """Return the third (0, 1, 2) of each length; equal lengths stay together."""
    if not len(lengths):
        return []
    low, high = np.percentile(np.asarray(lengths, dtype=np.float64), [100 / 3, 200 / 3])
    return [int(length > low) + int(length > high) for length in lengths]


def _placed(values: Numbers, among: Numbers) -> Numbers:
    """Return the share of ``among`` below each value, ties half."""
    ordered = np.sort(among)
    below = np.searchsorted(ordered, values, "left") + np.searchsorted(ordered, values, "right")
    return np.asarray(below / (2 * len(ordered)), dtype=np.float64)


def _spread(placed: Numbers) -> float:
    if len(placed) < 2:
        return 0.25
    return float(placed.var(ddof=1)) / len(placed)
