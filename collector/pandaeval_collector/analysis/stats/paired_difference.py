"""The mean of paired differences with an interval: how sure is it that one way of scoring says something else?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pandaeval_collector.analysis.stats.quantiles import means


@dataclass(frozen=True, slots=True)
class PairedDifference:
    """``mean`` of the differences of ``n`` pairs in ``clusters``; ``low`` to ``high``: 95 % interval, ``None`` with
    fewer than two clusters."""

    n: int
    clusters: int
    mean: float
    low: float | None
    high: float | None


def paired_difference(differences: Sequence[float], clusters: Sequence[int], seed: int = 0) -> PairedDifference | None:
    """By the bootstrap over clusters, such as sessions, whose traces are alike; ``None`` without pairs. The same
    arguments give the same interval."""
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
