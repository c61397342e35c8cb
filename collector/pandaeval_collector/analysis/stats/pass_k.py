"""pass@k and pass^k of a case: probability that any, or all, of k trials succeed.

Three estimators from ``c`` successes in ``n`` determined trials:

- ``plug_in``: p = c/n in 1 - (1 - p)^k and p^k. p^k is biased upwards for few trials.
- ``unbiased``: 1 - C(n-c, k)/C(n, k) (Chen et al. 2021, "Evaluating Large Language Models Trained on Code") and C(c,
  k)/C(n, k) (Yao et al. 2024, "tau-bench"). Unknown for k > n.
- ``bayesian``: posterior Beta(1 + c, 1 + n - c) with mean, median and equal-tailed 95 % interval. The mean can be
  outside it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from pandaeval_collector.analysis.stats.quantiles import LEVEL, beta_quantile

Mode: TypeAlias = Literal["plug_in", "unbiased", "bayesian"]
MODES: tuple[Mode, ...] = get_args(Mode)


@dataclass(frozen=True, slots=True)
class PassEstimate:
    """An estimate in 0..1; ``None`` if unknown. ``ci_low`` to ``ci_high`` (95 %) and ``median`` are Bayesian."""

    value: float | None
    ci_low: float | None = None
    ci_high: float | None = None
    median: float | None = None


def pass_at_k(n: int, c: int, k: int, mode: Mode = "plug_in") -> PassEstimate:
    """Estimate the probability that any of ``k`` trials succeeds, after ``c`` of ``n`` did.

    Raises ``ValueError`` unless 0 <= c <= n and k >= 1.
    """
    opposite = pass_pow_k(n, n - c, k, mode)
    if mode == "bayesian" or opposite.value is None:
        # Computed as the complement of failing every time.
        shares = (opposite.value, opposite.ci_high, opposite.ci_low, opposite.median)
        return PassEstimate(*(None if share is None else 1.0 - share for share in shares))
    if mode == "unbiased":
        groups = math.comb(n, k)
        return PassEstimate((groups - math.comb(n - c, k)) / groups)
    return PassEstimate(1.0 - (1.0 - c / n) ** k)


def pass_pow_k(n: int, c: int, k: int, mode: Mode = "plug_in") -> PassEstimate:
    """Estimate the probability that all ``k`` trials succeed, after ``c`` of ``n`` did. Raises as :func:`pass_at_k`."""
    if not 0 <= c <= n:
        raise ValueError(f"the number of successes must be in 0..{n}, the number of trials")
    if k < 1:
        raise ValueError(f"k must be at least 1, not {k}")
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
