"""pass@k and pass^k of one case: would at least one of k further trials succeed, and would all of them?

Of ``n`` trials of which ``c`` succeeded, by three estimators:

- ``plug_in``: the observed rate p = c/n in 1 - (1 - p)^k and p^k. Simple, and off for few trials: p^k is too high on
  average, since a power rises faster than it falls.
- ``unbiased``: 1 - C(n-c, k)/C(n, k) (Chen et al. 2021, "Evaluating Large Language Models Trained on Code") and
  C(c, k)/C(n, k) (Yao et al. 2024, "tau-bench"): the share of all groups of k among the trials that were made. Right on
  average over many repetitions, which makes it the one to take the mean of over cases. Unknown for k > n.
- ``bayesian``: the rate is unknown, and after the trials it is distributed as Beta(1 + c, 1 + n - c), by a uniform
  prior. Gives the mean, the median and the equal-tailed 95 % interval. All three are exact: both curves rise (or fall)
  with the rate throughout, so that quantiles go through them; the mean is a product of the distribution's moments. The
  mean can lie outside the interval where the distribution is skew, which is why curves are drawn by the median.

``n`` counts determined trials: one that could not be graded is neither a success nor a failure.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np

from pandaeval_collector.analysis.stats.quantiles import LEVEL, beta_quantile, means, normal_quantile, wilson

Mode: TypeAlias = Literal["plug_in", "unbiased", "bayesian"]
MODES: tuple[Mode, ...] = get_args(Mode)


@dataclass(frozen=True, slots=True)
class PassEstimate:
    """An estimate in 0..1. ``ci_low`` to ``ci_high`` (95 %) and ``median`` are those of the Bayesian estimator;
    ``None`` is unknown: nothing was tried, or fewer trials than ``k`` for the unbiased one."""

    value: float | None
    ci_low: float | None = None
    ci_high: float | None = None
    median: float | None = None


def pass_at_k(n: int, c: int, k: int, mode: Mode = "plug_in") -> PassEstimate:
    """Estimates how likely at least one of ``k`` trials succeeds, after ``c`` of ``n`` did. Raises ``ValueError``
    unless 0 <= c <= n and k >= 1."""
    opposite = pass_pow_k(n, n - c, k, mode)
    if mode == "bayesian" or opposite.value is None:
        # Its numbers are those of failing throughout, the other way round.
        shares = (opposite.value, opposite.ci_high, opposite.ci_low, opposite.median)
        return PassEstimate(*(None if share is None else 1.0 - share for share in shares))
    if mode == "unbiased":
        groups = math.comb(n, k)
        return PassEstimate((groups - math.comb(n - c, k)) / groups)
    return PassEstimate(1.0 - (1.0 - c / n) ** k)


def pass_pow_k(n: int, c: int, k: int, mode: Mode = "plug_in") -> PassEstimate:
    """Estimates how likely all of ``k`` trials succeed, after ``c`` of ``n`` did. Raises ``ValueError`` unless 0 <= c
    <= n and k >= 1."""
    if not 0 <= c <= n:
        raise ValueError(f"of {n} trials {c} cannot have succeeded")
    if k < 1:
        raise ValueError(f"k is a number of trials, 1 or more, not {k}")
    if mode not in MODES:
        raise ValueError(f"unknown mode {mode!r}; known: {', '.join(MODES)}")
    if n == 0:
        return PassEstimate(None)
    if mode == "unbiased":
        return PassEstimate(math.comb(c, k) / math.comb(n, k) if k <= n else None)
    if mode == "plug_in":
        return PassEstimate((c / n) ** k)
    successes, failures, aside = 1 + c, 1 + n - c, (1.0 - LEVEL) / 2.0
    mean = math.prod((successes + i) / (successes + failures + i) for i in range(k))
    low, median, high = (beta_quantile(successes, failures, share) ** k for share in (aside, 0.5, 1.0 - aside))
    return PassEstimate(mean, low, high, median)


def bounds(n: int, c: int, undetermined: int, k: int, mode: Mode = "unbiased") -> tuple[Bounds, Bounds]:
    """Returns the ranges of pass@k and pass^k, had the ``undetermined`` trials been graded: all of them failures, or
    all successes. ``None`` as for the estimates."""
    low, high = (n + undetermined, c), (n + undetermined, c + undetermined)
    at, power = ((of(*low, k, mode).value, of(*high, k, mode).value) for of in (pass_at_k, pass_pow_k))
    return at, power


Bounds: TypeAlias = tuple[float | None, float | None]


# pass@k and pass^k of a suite: the mean over its cases, with an interval for cases that might have been drawn instead.
#
# The mean is over the cases' unbiased estimates, since the errors of any other estimator would not cancel. The interval
# is Wilson's, with each case as one observation, below 50 cases; from there on the bootstrap over cases, which is
# narrower where cases differ little, and far too narrow where there are few. A case's estimate lies in 0..1, so it
# varies no more than a yes or no does: Wilson's interval is on the safe side.
ENOUGH_CASES = 50
"""From here on the bootstrap over cases holds what it says."""

Counts = tuple[int, int]
"""Determined trials of a case, and how many of them succeeded."""


@dataclass(frozen=True, slots=True)
class SuiteEstimate:
    """``value``: ``None`` unless all ``of`` cases of the suite have ``k`` determined trials. ``mean``: over the
    ``cases`` that do, with its 95 % interval ``ci_low`` to ``ci_high`` by ``method``; ``None`` if none does."""

    value: float | None
    mean: float | None
    ci_low: float | None
    ci_high: float | None
    cases: int
    of: int
    method: str


def suite_pass_at_k(cases: Sequence[Counts], k: int) -> SuiteEstimate:
    """Estimates how likely at least one of ``k`` trials at a case of this kind succeeds."""
    return _suite([pass_at_k(n, c, k, "unbiased").value for n, c in cases])


def suite_pass_pow_k(cases: Sequence[Counts], k: int) -> SuiteEstimate:
    """Estimates how likely all of ``k`` trials at a case of this kind succeed."""
    return _suite([pass_pow_k(n, c, k, "unbiased").value for n, c in cases])


def interval(values: Sequence[float], seed: int = 0) -> tuple[float, float, str]:
    """Returns the 95 % interval of the mean of cases' shares (0..1, at least one), and the name of its method."""
    mean = min(1.0, max(0.0, math.fsum(values) / len(values)))
    if len(values) < ENOUGH_CASES:
        return *wilson(mean, len(values), normal_quantile()), "wilson"
    shares = np.asarray(values, dtype=np.float64)
    if np.ptp(shares) == 0.0:  # no draw differs from another, and that is no certainty
        return *wilson(mean, len(values), normal_quantile()), "wilson"
    drawn = means(shares, np.ones(len(shares)), seed)
    low, high = np.quantile(drawn, [(1.0 - LEVEL) / 2.0, (1.0 + LEVEL) / 2.0])
    return float(low), float(high), "bootstrap"


def _suite(found: list[float | None]) -> SuiteEstimate:
    known = [value for value in found if value is not None]
    if not known:
        return SuiteEstimate(None, None, None, None, 0, len(found), "")
    mean, (low, high, method) = statistics.fmean(known), interval(known)
    whole = mean if len(known) == len(found) else None
    return SuiteEstimate(whole, mean, low, high, len(known), len(found), method)
