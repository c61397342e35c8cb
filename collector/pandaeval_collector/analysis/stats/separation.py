"""How well a score tells good units from bad ones, with intervals: closed forms, so that nothing is drawn at random."""

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
    """A value in 0..1 with its 95 % interval; ``nan`` where there is nothing to take it from. ``n``: its units."""

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
    """The share of pairs (good, bad) in which the good unit scores higher, ties counting half; DeLong's interval. Where
    all pairs are in order it has no width, which says nothing about how few there are."""
    value, variance = _delong(good, bad)
    return _around(value, variance, len(good) + len(bad))


def auroc_within(strata: Sequence[tuple[Sequence[float], Sequence[float]]]) -> ShareEstimate:
    """Computes the AUROC over pairs from one stratum each, so that what the strata differ in explains nothing."""
    parts = [(good, bad, len(good) * len(bad)) for good, bad in strata if good and bad]
    pairs = sum(weight for _, _, weight in parts)
    if not pairs:
        return NOTHING
    value = variance = 0.0
    for good, bad, weight in parts:
        own, spread = _delong(good, bad)
        value += own * weight / pairs
        variance += spread * (weight / pairs) ** 2
    return _around(value, variance, sum(len(good) + len(bad) for good, bad, _ in parts))


def share(hits: int, of: int) -> ShareEstimate:
    """A proportion with Wilson's interval."""
    if not of:
        return NOTHING
    p, square = hits / of, Z95 * Z95
    centre = (p + square / (2 * of)) / (1 + square / of)
    half = Z95 * sqrt(p * (1 - p) / of + square / (4 * of * of)) / (1 + square / of)
    return ShareEstimate(p, max(0.0, centre - half), min(1.0, centre + half), of)


def thirds(lengths: Sequence[float]) -> list[int]:
    """The third (0, 1 or 2) that each length belongs to; equal lengths stay together."""
    if not len(lengths):
        return []
    low, high = np.percentile(np.asarray(lengths, dtype=np.float64), [100 / 3, 200 / 3])
    return [int(length > low) + int(length > high) for length in lengths]


def _around(value: float, variance: float, n: int) -> ShareEstimate:
    if value != value:
        return NOTHING
    half = Z95 * sqrt(max(0.0, variance))
    return ShareEstimate(value, max(0.0, value - half), min(1.0, value + half), n)


def _delong(good: Sequence[float], bad: Sequence[float]) -> tuple[float, float]:
    """The AUROC and its variance; ``nan`` without a pair."""
    if not good or not bad:
        return nan, nan
    higher, lower = np.asarray(good, dtype=np.float64), np.asarray(bad, dtype=np.float64)
    of_good, of_bad = _placed(higher, lower), 1.0 - _placed(lower, higher)
    return float(of_good.mean()), _spread(of_good) + _spread(of_bad)


def _placed(values: Numbers, among: Numbers) -> Numbers:
    """For each value the share of ``among`` below it, ties counting half."""
    ordered = np.sort(among)
    below = np.searchsorted(ordered, values, "left") + np.searchsorted(ordered, values, "right")
    return np.asarray(below / (2 * len(ordered)), dtype=np.float64)


def _spread(placed: Numbers) -> float:
    return float(placed.var(ddof=1)) / len(placed) if len(placed) > 1 else 0.25
