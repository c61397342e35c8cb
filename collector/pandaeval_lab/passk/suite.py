"""pass@k and pass^k of a suite: the mean over its cases, with an interval for cases that might have been drawn instead.

The mean is over the cases' unbiased estimates, since the errors of any other estimator would not cancel. The interval
is Wilson's, with each case as one observation, below 50 cases; from there on the bootstrap over cases, which is
narrower where cases differ little, and far too narrow where there are few. A case's estimate lies in 0..1, so it
varies no more than a yes or no does: Wilson's interval is on the safe side.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from pandaeval_collector.analysis.stats.pass_k import Mode, PassEstimate, pass_at_k, pass_pow_k
from pandaeval_collector.analysis.stats.quantiles import LEVEL, means, normal_quantile, wilson

Bounds: TypeAlias = tuple[float | None, float | None]
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


def suite(of: Callable[[int, int, int, Mode], PassEstimate], cases: Sequence[Counts], k: int) -> SuiteEstimate:
    """Estimates ``of``, pass@k or pass^k, at a case of this kind."""
    found = [of(n, c, k, "unbiased").value for n, c in cases]
    known = [value for value in found if value is not None]
    if not known:
        return SuiteEstimate(None, None, None, None, 0, len(found), "")
    mean, (low, high, method) = statistics.fmean(known), interval(known)
    whole = mean if len(known) == len(found) else None
    return SuiteEstimate(whole, mean, low, high, len(known), len(found), method)


def interval(values: Sequence[float], seed: int = 0) -> tuple[float, float, str]:
    """Returns the 95 % interval of the mean of cases' shares (0..1, at least one), and the name of its method."""
    mean = min(1.0, max(0.0, math.fsum(values) / len(values)))
    shares = np.asarray(values, dtype=np.float64)
    if len(values) < ENOUGH_CASES or np.ptp(shares) == 0.0:  # no draw differs from another, and that is no certainty
        return *wilson(mean, len(values), normal_quantile()), "wilson"
    drawn = means(shares, np.ones(len(shares)), seed)
    low, high = np.quantile(drawn, [(1.0 - LEVEL) / 2.0, (1.0 + LEVEL) / 2.0])
    return float(low), float(high), "bootstrap"


def bounds(n: int, c: int, undetermined: int, k: int, mode: Mode = "unbiased") -> tuple[Bounds, Bounds]:
    """Returns the ranges of pass@k and pass^k, had the ``undetermined`` trials been graded: all of them failures, or
    all successes. ``None`` as for the estimates."""
    low, high = (n + undetermined, c), (n + undetermined, c + undetermined)
    at, power = ((of(*low, k, mode).value, of(*high, k, mode).value) for of in (pass_at_k, pass_pow_k))
    return at, power
