"""Which capability cases pass so steadily that they belong into the regression suite, and how saturated the suite is.

A capability case asks what an agent cannot do yet; one that it always passes measures nothing more, and is worth more
as a guard. Steady means: even the lower end of the 95 % interval of pass^k is high enough, so that a few lucky trials
promote nothing.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pandaeval_collector.analysis.stats.pass_k import PassEstimate, pass_pow_k
from pandaeval_lab.passk.attempts import CaseOutcomes, CaseTrials

CAPABILITY = "capability"
_MOST_MORE = 2000


@dataclass(frozen=True, slots=True)
class PromotableCase:
    """A capability case. ``more``: how many further trials would all have to pass for its promotion; ``None`` for more
    than 2,000."""

    case: CaseOutcomes
    power: PassEstimate
    more: int | None

    @property
    def steady(self) -> bool:
        """Whether it is proposed for promotion."""
        return self.more == 0

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


def saturation(candidates: Sequence[PromotableCase]) -> str:
    """Writes a sentence about the share of capability cases that pass steadily."""
    steady, every = sum(each.steady for each in candidates), len(candidates)
    if not every:
        return "no trial of a capability case in these results"
    full = "; the suite is saturated: it shows no progress any more, add harder cases" if steady == every else ""
    return f"saturation: {steady} of {every} capability cases pass steadily ({steady / every:.0%}){full}"


def promotable(found: CaseTrials, k: int, least: float) -> list[PromotableCase]:
    """Returns all capability cases, first those of which ``k`` trials in a row pass with a share of at least ``least``,
    0 to 1."""
    candidates = []
    for case in found.cases:
        if case.kind == CAPABILITY:
            n = len(case.trials)  # undetermined ones count as failed: what could not be graded promotes nothing
            power = pass_pow_k(n, case.c, k, "bayesian")

            def holds(more: int, n: int = n, c: int = case.c) -> bool:
                low = pass_pow_k(n + more, c + more, k, "bayesian").ci_low
                return low is not None and low >= least

            more = bisect_left(range(_MOST_MORE + 1), True, key=holds)
            candidates.append(PromotableCase(case, power, more if more <= _MOST_MORE else None))
    return sorted(candidates, key=lambda each: (not each.steady, -(each.power.ci_low or 0.0)))
