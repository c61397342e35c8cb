"""Which capability cases pass so steadily that they belong into the regression suite, and how saturated the suite is.

A capability case asks what an agent cannot do yet; one that it always passes measures nothing more, and is worth more
as a guard. Steady means: even the lower end of the 95 % interval of pass^k is high enough, so that a few lucky trials
promote nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pandaeval_collector.analysis.stats.pass_k import PassEstimate, pass_pow_k
from pandaeval_collector.trials.passk.attempts import CaseOutcomes, CaseTrials

CAPABILITY = "capability"
_MOST_MORE = 2000


@dataclass(frozen=True, slots=True)
class PromotableCase:
    """A capability case. ``steady``: it is proposed for promotion; ``more``: how many further trials would all have to
    pass for that; ``None`` for more than 2,000."""

    case: CaseOutcomes
    power: PassEstimate
    steady: bool
    more: int | None

    def to_dict(self) -> dict[str, Any]:
        """Returns the case and its figures, JSON-ready."""
        return {
            "case": self.case.id,
            "n": self.case.n,
            "c": self.case.c,
            "undetermined": self.case.undetermined,
            "pass_pow_k": self.power.median,
            "ci_low": self.power.ci_low,
            "ci_high": self.power.ci_high,
            "promote": self.steady,
            "more_passing_trials": self.more,
        }


@dataclass(frozen=True, slots=True)
class Promotion:
    """Which capability cases to promote. ``candidates``: all capability cases, the proposed ones first."""

    k: int
    least: float
    candidates: Sequence[PromotableCase]

    @property
    def steady(self) -> list[PromotableCase]:
        return [each for each in self.candidates if each.steady]

    @property
    def saturation(self) -> float | None:
        """The share of capability cases that pass steadily; ``None`` without such cases."""
        return len(self.steady) / len(self.candidates) if self.candidates else None

    @property
    def told(self) -> str:
        """A sentence about the saturation."""
        if self.saturation is None:
            return "no trial of a capability case in these results"
        said = f"saturation: {len(self.steady)} of {len(self.candidates)} capability cases pass steadily"
        full = (
            "; the suite is saturated: it shows no progress any more, add harder cases" if self.saturation == 1 else ""
        )
        return f"{said} ({self.saturation:.0%}){full}"


def promotion(found: CaseTrials, k: int, least: float) -> Promotion:
    """Finds the cases of which ``k`` trials in a row pass with a share of at least ``least``, 0 to 1."""
    candidates = [_candidate(case, k, least) for case in found.cases if case.kind == CAPABILITY]
    return Promotion(k, least, sorted(candidates, key=lambda each: (not each.steady, -(each.power.ci_low or 0.0))))


def _candidate(case: CaseOutcomes, k: int, least: float) -> PromotableCase:
    """Counts undetermined trials as failed: what could not be graded promotes nothing."""
    n = case.n + case.undetermined
    power = pass_pow_k(n, case.c, k, "bayesian")
    more = _more(n, case.c, k, least)
    return PromotableCase(case, power, more == 0, more)


def _more(n: int, c: int, k: int, least: float) -> int | None:
    """Returns how many further passing trials bring the lower end up to ``least``, found by bisection."""
    if not _holds(n, c, _MOST_MORE, k, least):
        return None
    low, high = 0, _MOST_MORE
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if _holds(n, c, middle, k, least) else (middle + 1, high)
    return low


def _holds(n: int, c: int, more: int, k: int, least: float) -> bool:
    low = pass_pow_k(n + more, c + more, k, "bayesian").ci_low
    return low is not None and low >= least
