"""Shares, and mean differences of paired values in 0..1, with 95 % intervals."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pandaeval_collector.analysis.stats.quantiles import means, normal_quantile, t_quantile, wilson


@dataclass(frozen=True, slots=True)
class PairedEstimate:
    value: float
    low: float
    high: float


def difference(pairs: Sequence[tuple[float, float]]) -> PairedEstimate | None:
    """Return the mean of second minus first, by Student's t. ``None`` below three pairs."""
    apart = [second - first for first, second in pairs]
    if len(apart) < 3:
        return None
    mean = statistics.fmean(apart)
    half = t_quantile(len(apart) - 1, least=2.0) * statistics.stdev(apart) / math.sqrt(len(apart))
    return PairedEstimate(mean, max(-1.0, mean - half), min(1.0, mean + half))


def share(hits: int, n: int) -> PairedEstimate:
    """Return ``hits`` of ``n``, at least 1, as a share with Wilson's interval."""
    return PairedEstimate(hits / n, *wilson(hits / n, n, normal_quantile()))


@dataclass(frozen=True, slots=True)
class PairedDifference:
    """The ``mean`` difference with a 95 % interval, ``None`` below two clusters."""

    n: int
    clusters: int
    mean: float
    low: float | None
    high: float | None


def paired_difference(differences: Sequence[float], clusters: Sequence[int], seed: int = 0) -> PairedDifference | None:
    """Compute the mean difference and its interval by the bootstrap over clusters.

    ``None`` without pairs. Deterministic.
    """
    if not differences:
        return None
    values = np.asarray(differences, dtype=np.float64)
    _, index = np.unique(np.asarray(clusters), return_inverse=True)
    sums = np.bincount(index, weights=values).astype(np.float64)
    sizes = np.bincount(index).astype(np.float64)
    mean = float(sums.sum() / sizes.sum())
    if len(sums) < 2:
        return PairedDifference(len(values), len(sums), mean, None, None)
    low, high = np.percentile(means(sums, sizes, seed), [2.5, 97.5])
    return PairedDifference(len(values), len(sums), mean, float(low), float(high))
