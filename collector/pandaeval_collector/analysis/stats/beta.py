"""Quantiles of the Beta distribution: what is known of a rate after some successes and failures."""

from __future__ import annotations


def beta_quantile(successes: float, failures: float, share: float) -> float:
    """The point below which ``share`` (0..1) of Beta(``successes``, ``failures``) lies, both above 0; exact to double
    precision (the inverse of the regularised incomplete beta function). Raises ``ValueError`` outside of these."""
    if not (successes > 0.0 and failures > 0.0 and 0.0 <= share <= 1.0):
        raise ValueError(f"no Beta({successes!r}, {failures!r}) has a quantile {share!r}")
    from scipy.special import betaincinv  # takes a sixth of a second, which a collector's start need not pay

    return float(betaincinv(successes, failures, share))
