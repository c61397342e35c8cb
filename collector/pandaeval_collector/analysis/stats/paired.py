"""Two verdicts on each of several things, such as a judge's first and second: how far they agree, how many of them lie
on two sides of a threshold, and how much of what they say is chance. Verdicts lie in 0..1; intervals are of 95 %."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pandaeval_collector.analysis.stats.quantiles import means, normal_quantile, t_quantile, wilson

Pair = tuple[float, float]


@dataclass(frozen=True, slots=True)
class PairedEstimate:
    """A figure and the ends of its interval."""

    value: float
    low: float
    high: float


def agreement(pairs: Sequence[Pair]) -> float:
    """Returns 1 minus the mean distance of the two verdicts; 1 for a judge that repeats itself. At least one pair."""
    return 1.0 - statistics.fmean(abs(second - first) for first, second in pairs)


def flips(pairs: Sequence[Pair], threshold: float) -> int:
    """Counts the pairs that pass the threshold once and miss it once."""
    return sum((first >= threshold) != (second >= threshold) for first, second in pairs)


def noise(pairs: Sequence[Pair]) -> float:
    """Returns the standard deviation of verdicts on the same thing, pooled over all. At least one pair."""
    return math.sqrt(statistics.fmean((second - first) ** 2 for first, second in pairs) / 2.0)


def spread(values: Sequence[float]) -> float:
    """Returns the standard deviation of verdicts on different things; NaN for fewer than two."""
    return statistics.stdev(values) if len(values) > 1 else math.nan


def discrimination(pairs: Sequence[Pair]) -> float:
    """Returns the share of the variance of verdicts that is due to the things judged and not to chance, 0..1: 0 for a
    judge that says the same of everything, and for one that throws dice. NaN for fewer than two pairs."""
    if len(pairs) < 2:
        return math.nan
    both = [value for pair in pairs for value in pair]
    total = statistics.variance(both)
    return 0.0 if total == 0.0 else max(0.0, 1.0 - noise(pairs) ** 2 / total)


def kappa(pairs: Sequence[Pair], threshold: float) -> PairedEstimate | None:
    """Returns Cohen's kappa of passing the threshold: 1 is full agreement, 0 what chance would give. ``None`` where
    both always say the same one thing, which chance explains. The interval is Wilson's of the observed agreement, with
    the measured agreement by chance."""
    n = len(pairs)
    if not n:
        return None
    first = sum(one >= threshold for one, _ in pairs) / n
    second = sum(other >= threshold for _, other in pairs) / n
    chance = first * second + (1.0 - first) * (1.0 - second)
    if chance >= 1.0:
        return None
    same = share(n - flips(pairs, threshold), n)
    value, low, high = ((each - chance) / (1.0 - chance) for each in (same.value, same.low, same.high))
    return PairedEstimate(value, max(-1.0, low), high)


def difference(pairs: Sequence[Pair]) -> PairedEstimate | None:
    """Returns the mean of second minus first, by Student's t: above 0 where the second judge is the milder one.
    ``None`` for fewer than three pairs."""
    apart = [second - first for first, second in pairs]
    if len(apart) < 3:
        return None
    mean = statistics.fmean(apart)
    half = t_quantile(len(apart) - 1, least=2.0) * statistics.stdev(apart) / math.sqrt(len(apart))
    return PairedEstimate(mean, max(-1.0, mean - half), min(1.0, mean + half))


def share(hits: int, n: int) -> PairedEstimate:
    """Returns ``hits`` of ``n``, at least 1, as a share with Wilson's interval."""
    return PairedEstimate(hits / n, *wilson(hits / n, n, normal_quantile()))


@dataclass(frozen=True, slots=True)
class PairedDifference:
    """The ``mean`` difference of ``n`` pairs in ``clusters``; ``low`` to ``high``: 95 % interval, ``None`` with fewer
    than two clusters."""

    n: int
    clusters: int
    mean: float
    low: float | None
    high: float | None


def paired_difference(differences: Sequence[float], clusters: Sequence[int], seed: int = 0) -> PairedDifference | None:
    """Computes the mean difference and its interval by the bootstrap over clusters, such as sessions, whose traces are
    alike; ``None`` without pairs. The same arguments give the same interval."""
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
