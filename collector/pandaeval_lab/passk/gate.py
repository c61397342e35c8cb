"""The regression gate: current trials compared with a baseline over the same cases.

It fails for four reasons: the drop exceeds chance; the drop exceeds the allowance; a ``regression`` case that passed
all baseline trials now fails all, beyond chance; or too little was comparable. The first and third share the
significance level. A case breaks by chance if all successes of an urn fall on the earlier trials; the sum of these
chances bounds any such event.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from pandaeval_collector.analysis.stats.paired import PairedDifference, paired_difference
from pandaeval_collector.base.errors import UserError
from pandaeval_lab.passk.attempts import CaseOutcomes, CaseTrials

LEVEL = 0.05
BROKEN_SHARE = 0.2
"""The share of the level for regression cases that break; the rest is for the drop."""
FEWEST = 3
"""Minimum number of baseline trials with which a case can break."""
_SHOWN = 5
_BROKE = "passed every trial of the baseline, but fails every trial now"


@dataclass(frozen=True, slots=True)
class Rules:
    """The limits of the gate, each 0..1.

    ``level``: total rate of false alarms. ``max_drop``: the largest mean drop that passes, or ``None``.
    ``max_missing``: the largest share of cases, and of trials, without outcome.
    """

    level: float = LEVEL
    max_drop: float | None = None
    max_missing: float = 0.2


@dataclass(slots=True)
class GateVerdict:
    """The outcome of the gate.

    ``broken``: regression cases that fail beyond chance; ``doubtful``: those within chance; ``missing`` and ``new``:
    cases only before, or only now.
    """

    metric: str
    drop: Drop | None
    broken: list[str]
    missing: list[str]
    new: list[str]
    undetermined: int = 0
    tried: int = 0
    failures: list[str] = field(default_factory=list)
    doubtful: list[str] = field(default_factory=list)
    share: float = 1.0

    @property
    def notice(self) -> str:
        if not self.doubtful:
            return ""
        return f"{_BROKE}, which can be chance with so few trials: {first_of(self.doubtful)}"

    @property
    def passed(self) -> bool:
        return not self.failures

    @property
    def text(self) -> str:
        if self.drop is None:
            return "no case has a determined trial both now and in the baseline"
        found = self.drop.difference
        between = f" (95 % interval {found.low:+.3f} to {found.high:+.3f})" if found.low is not None else ""
        informed = f"{self.drop.informative} of {found.n} cases had both successes and failures"
        return f"{self.metric} against the baseline: {found.mean:+.3f}{between}, p = {self.drop.p:.4f}; {informed}"


def compared(before: CaseTrials, now: CaseTrials, rules: Rules) -> GateVerdict:
    """Compare trials with a baseline. Raises ``UserError`` for different metrics."""
    if (before.metric, before.per) != (now.metric, now.per):
        raise UserError(f"the baseline counts {before.metric} by {before.per}, this {now.metric} by {now.per}")
    past, present = ({case.id: case for case in each.cases if case.n} for each in (before, now))
    both = [(past[name], present[name]) for name in sorted(past.keys() & present.keys())]
    broke = [new.id for old, new in both if _is_kept(old, new) and old.c == old.n and new.c == 0]
    credible = _credible(both, rules.level * BROKEN_SHARE)
    verdict = GateVerdict(
        now.metric,
        drop([(old.n, old.c) for old, _ in both], [(new.n, new.c) for _, new in both]),
        [name for name in broke if name in credible],
        sorted(past.keys() - present.keys()),
        sorted(present.keys() - past.keys()),
        sum(new.undetermined for _, new in both),
        sum(len(new.trials) for _, new in both),
        doubtful=[name for name in broke if name not in credible],
        share=1.0 - BROKEN_SHARE if credible else 1.0,
    )
    verdict.failures = list(_failures(verdict, rules, len(past)))
    return verdict


def _is_kept(old: CaseOutcomes, new: CaseOutcomes) -> bool:
    return "regression" in (old.kind, new.kind)


def _credible(both: Sequence[tuple[CaseOutcomes, CaseOutcomes]], level: float) -> set[str]:
    could = [(old, new) for old, new in both if _is_kept(old, new) and old.n >= FEWEST and old.c + new.c == old.n]
    chances = sorted((1.0 / math.comb(old.n + new.n, old.n), new.id) for old, new in could)
    found: set[str] = set()
    for chance, name in chances:
        level -= chance
        if level < 0.0:
            break
        found.add(name)
    return found


def _failures(verdict: GateVerdict, rules: Rules, cases: int) -> Iterator[str]:
    if verdict.broken:
        yield f"{_BROKE}: {first_of(verdict.broken)}"
    found = verdict.drop
    if found is None:
        yield "no comparison: no case has a determined trial both now and in the baseline"
        return
    mean = found.difference.mean
    level = rules.level * verdict.share
    if mean < 0.0 and found.p <= level:
        yield f"the drop of {-mean:.3f} is more than chance explains (p = {found.p:.4f}, level {level:g})"
    if rules.max_drop is not None and -mean > rules.max_drop + 1e-9:
        yield f"the drop of {-mean:.3f} is larger than {rules.max_drop:g} (gates.baseline.max_drop)"
    if len(verdict.missing) > rules.max_missing * cases:
        lost = first_of(verdict.missing)
        yield f"{len(verdict.missing)} of {cases} cases of the baseline have no determined trial now: {lost}"
    if verdict.undetermined > rules.max_missing * verdict.tried:
        ungraded = f"{verdict.undetermined} of {verdict.tried} trials at the compared cases"
        rates = "the rates do not include these trials"
        yield f"{ungraded} could not be graded, more than gates.max_unscored allows; {rates}"


def first_of(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more


# Did a suite get worse? Successes of the same cases before and now, case by case.
#
# The test is exact and takes the cases as they are: if nothing changed, a case's trials of both times are drawn from
# the same urn, so that how many of its successes fall on the trials of now is hypergeometric; their sum over the cases
# is the statistic (the exact test of Mantel and Haenszel 1959 for 2 x 2 tables in strata; of one trial per case and
# time it is McNemar's, 1947). Cases that always or never succeed add no information. The rate of a case is not needed.
#
# Counts are few and whole, so an exact p-value is too large on average. Half of the probability of what was observed is
# left out of it (the mid-p of Lancaster 1961), which brings the share of false alarms to its level.
Counts = tuple[int, int]
"""Trials, and how many of them succeeded."""


@dataclass(frozen=True, slots=True)
class Drop:
    """``p``: one-sided mid-p of so few successes under no change.

    ``difference``: mean rate change, with 95 % bootstrap interval. ``informative``: cases with successes and failures.
    """

    p: float
    difference: PairedDifference
    informative: int


def drop(before: Sequence[Counts], now: Sequence[Counts]) -> Drop | None:
    """Compare the same cases in the same order, each with trials at both times; ``None`` without a case."""
    if not before:
        return None
    pairs = list(zip(before, now, strict=True))
    differences = [c1 / n1 - c0 / n0 for (n0, c0), (n1, c1) in pairs]
    found = paired_difference(differences, range(len(pairs)))
    assert found is not None
    return Drop(p_value(pairs), found, sum(0 < c0 + c1 < n0 + n1 for (n0, c0), (n1, c1) in pairs))


def p_value(pairs: Sequence[tuple[Counts, Counts]]) -> float:
    """Compute the ``p`` of :class:`Drop` from pairs of (trials, successes), before and now."""
    chances: NDArray[np.float64] = np.ones(1)
    least = observed = 0
    for (n0, c0), (n1, c1) in pairs:
        lowest, own = _urn(n0 + n1, c0 + c1, n1)
        chances = np.convolve(chances, own)
        least, observed = least + lowest, observed + c1
    at = observed - least
    return float(min(1.0, chances[:at].sum() + chances[at] / 2.0))


def _urn(balls: int, white: int, drawn: int) -> tuple[int, NDArray[np.float64]]:
    lowest, highest = max(0, drawn - (balls - white)), min(drawn, white)
    ways = math.comb(balls, drawn)
    numbers = range(lowest, highest + 1)
    return lowest, np.array([math.comb(white, j) * math.comb(balls - white, drawn - j) / ways for j in numbers])
