"""Quantiles of the Beta distribution: what is known of a rate after some successes and failures."""

from __future__ import annotations


def beta_quantile(successes: float, failures: float, share: float) -> float:
    """The point below which ``share`` (0..1) of Beta(``successes``, ``failures``) lies, both above 0; exact to double
    precision (the inverse of the regularised incomplete beta function). Raises ``ValueError`` outside of these."""
    if not (successes > 0.0 and failures > 0.0 and 0.0 <= share <= 1.0):
        raise ValueError(f"no Beta({successes!r}, {failures!r}) has a quantile {share!r}")
    from scipy.special import betaincinv  # takes a sixth of a second, which a collector's start need not pay

    return float(betaincinv(successes, failures, share))


def clopper_pearson(hits: int, n: int, level: float) -> tuple[float, float]:
    """The exact interval (Clopper and Pearson, 1934) of a share of ``n`` independent yes-or-no observations: it holds
    the truth at least as often as ``level`` says. 0..1 for ``n`` = 0."""
    aside = (1.0 - level) / 2.0
    low = beta_quantile(hits, n - hits + 1, aside) if hits else 0.0
    high = beta_quantile(hits + 1, n - hits, 1.0 - aside) if hits < n else 1.0
    return low, high
