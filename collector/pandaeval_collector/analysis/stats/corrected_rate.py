"""Estimates a human pass rate from many judge scores and a few labels.

Estimate: the labels' mean, plus ``power`` times the judge's mean over all runs minus over labelled runs. This is
prediction-powered inference (PPI++, Angelopoulos, Duchi and Zrnic 2023, arXiv 2311.01453), the regression estimator of
survey sampling (Cochran 1977, chapter 7).

Runs are weighted by inverse inclusion probability (Hájek) and clustered by session. Intervals are Wilson's with
effective sample size and Student's quantile. With few failures or successes, or if narrower, the labels-only interval
is used.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from pandaeval_collector.analysis.stats.quantiles import LEVEL, t_quantile, wilson

LEAST_LABELS = 50
"""Minimum labels for a rate. With fewer labels, the intervals contain the true rate too rarely."""
_LEAST_RARE = 8.0
"""Minimum labels of the rarer kind for using the judge's scores."""
_UNSEEN = 4.0
"""Number of extra labels in the fit, without relation to the judge's score. A few dozen labels without disagreement do
not prove that judge and people always agree."""

_NOTHING = 1e-12
"""A variance that is only rounding."""

Values = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Scores:
    """The judge's scores of all runs: weighted mean, and effective number of independent runs (Kish)."""

    mean: float
    n: float


@dataclass(frozen=True, slots=True)
class Labelled:
    """Labelled runs: human verdicts 0..1, judge scores, positive weights, and clusters (sessions) of dependent runs."""

    people: Values
    judge: Values
    weights: Values
    clusters: NDArray[np.int64]

    @classmethod
    def of(
        cls,
        people: Sequence[float],
        judge: Sequence[float],
        weights: Sequence[float] | None = None,
        clusters: Sequence[object] | None = None,
    ) -> Labelled:
        """Make arrays of the columns. Default: equal weights, a cluster per run."""
        size = len(people)
        numbers = {each: number for number, each in enumerate(dict.fromkeys(clusters or ()))}
        return cls(
            np.asarray(people, np.float64),
            np.asarray(judge, np.float64),
            np.ones(size) if weights is None else np.asarray(weights, np.float64),
            np.arange(size) if clusters is None else np.asarray([numbers[each] for each in clusters], np.int64),
        )


@dataclass(frozen=True, slots=True)
class CorrectedRate:
    """A pass rate with a 95 % interval.

    ``n``: labelled runs. ``power``: weight of the judge's scores, 0 if ``method`` is ``labels``.
    """

    value: float
    low: float
    high: float
    n: int
    method: Literal["corrected", "labels"]
    power: float = 0.0

    @property
    def width(self) -> float:
        return self.high - self.low


def corrected_rate(labelled: Labelled, scores: Scores) -> CorrectedRate:
    """Compute the rate with its interval. Raises ``ValueError`` for fewer than two labels."""
    alone = label_rate(labelled)
    sample = _Sample(labelled)
    share = sample.mean(labelled.people)
    spread = sample.variance(labelled.judge, 2)
    if spread <= _NOTHING or sample.n * min(share, 1.0 - share) < _LEAST_RARE:
        return alone
    tuned = sample.slope(labelled.people, labelled.judge) * sample.n / (sample.n + _UNSEEN)
    value = share + tuned * (scores.mean - sample.mean(labelled.judge))
    left = sample.variance(labelled.people - tuned * labelled.judge, 2)
    left += 2 * tuned**2 * spread * _UNSEEN / sample.n
    seen = min(1.0, sample.n / max(scores.n, 1.0))
    variance = left * (1.0 - seen) + sample.variance(labelled.people, 1) * seen
    low, high = sample.interval(value, variance)
    if high - low >= alone.width:
        return alone
    return CorrectedRate(min(1.0, max(0.0, value)), low, high, len(labelled.people), "corrected", tuned)


def label_rate(labelled: Labelled) -> CorrectedRate:
    """Compute the rate with its interval from the labels alone."""
    if len(labelled.people) < 2:
        raise ValueError("a rate needs two labels or more")
    sample = _Sample(labelled)
    share = sample.mean(labelled.people)
    low, high = sample.interval(share, sample.variance(labelled.people, 1))
    return CorrectedRate(share, low, high, len(labelled.people), "labels")


class _Sample:
    """Weighted sums over the labelled runs. ``n``: effective number of independent runs."""

    def __init__(self, labelled: Labelled) -> None:
        self._weights = labelled.weights / labelled.weights.sum()
        self._clusters = labelled.clusters
        self.n = 1.0 / float((self._by_cluster(self._weights) ** 2).sum())

    def mean(self, values: Values) -> float:
        return float((self._weights * values).sum())

    def slope(self, of: Values, by: Values) -> float:
        apart = by - self.mean(by)
        return float((self._weights * apart * of).sum() / (self._weights * apart * apart).sum())

    def variance(self, values: Values, fitted: int) -> float:
        """Estimate the variance of the weighted mean of ``values`` (linearised Hájek estimator).

        ``fitted``: number of fitted parameters.
        """
        parts = self._by_cluster(self._weights * (values - self.mean(values)))
        return float((parts * parts).sum()) * self.n / max(1.0, self.n - fitted)

    def interval(self, value: float, variance: float) -> tuple[float, float]:
        value = min(1.0, max(0.0, value))
        n = value * (1.0 - value) / variance if variance > _NOTHING and 0.0 < value < 1.0 else self.n
        low, high = wilson(value, n, t_quantile(self.n - 1.0, LEVEL))
        return min(low, value), max(high, value)

    def _by_cluster(self, values: Values) -> Values:
        return np.asarray(np.bincount(self._clusters, weights=values), np.float64)
