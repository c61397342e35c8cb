"""Figures in the words of tables and pages."""

from __future__ import annotations

from pandaeval_collector.analysis.stats.pass_k import PassEstimate, SuiteEstimate
from pandaeval_collector.trials.passk.attempts import CaseOutcomes

NONE = "-"


def number(value: float | None) -> str:
    """Writes a share to the third digit."""
    return NONE if value is None else f"{value:.3f}"


def between(value: float | None, low: float | None, high: float | None) -> str:
    """Writes a share with its interval, where there is one."""
    return number(value) if low is None or high is None else f"{number(value)} ({low:.3f} to {high:.3f})"


def mean(estimate: SuiteEstimate) -> str:
    """Writes the mean of a suite with its interval."""
    return between(estimate.mean, estimate.ci_low, estimate.ci_high)


def median(estimate: PassEstimate) -> str:
    """Writes the median of a case by the Bayesian estimator, with its interval."""
    return between(estimate.median, estimate.ci_low, estimate.ci_high)


def band(label: str | None) -> str:
    """Writes an assessment with blanks in place of underscores."""
    return (label or NONE).replace("_", " ")


def worst_first(case: CaseOutcomes) -> tuple[float, str]:
    """Orders cases by how rarely they succeed; those of which nothing is known come last."""
    return case.c / case.n if case.n else 2.0, case.id
