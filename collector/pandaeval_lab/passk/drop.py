"""Did a suite get worse? Successes of the same cases before and now, case by case.

The test is exact and takes the cases as they are: if nothing changed, a case's trials of both times are drawn from
the same urn, so that how many of its successes fall on the trials of now is hypergeometric; their sum over the cases
is the statistic (the exact test of Mantel and Haenszel 1959 for 2 x 2 tables in strata; of one trial per case and
time it is McNemar's, 1947). Cases that always succeed, or never, say nothing; no case's own rate needs to be known.

Counts are few and whole, so an exact p-value is too large on average. Half of the probability of what was observed is
left out of it (the mid-p of Lancaster 1961), which brings the share of false alarms to its level.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pandaeval_collector.analysis.stats.paired import PairedDifference, paired_difference

Counts = tuple[int, int]
"""Trials, and how many of them succeeded."""


@dataclass(frozen=True, slots=True)
class Drop:
    """``p``: how likely so few successes now would be, or fewer, if nothing had changed (0..1, one-sided, mid-p).
    ``difference``: mean over cases of the rate now minus the rate before, with its 95 % interval by the bootstrap over
    cases. ``informative``: cases with both successes and failures; only these inform the test."""

    p: float
    difference: PairedDifference
    informative: int


def drop(before: Sequence[Counts], now: Sequence[Counts]) -> Drop | None:
    """Compares the same cases in the same order, each with a trial at both times; returns ``None`` without a case."""
    if not before:
        return None
    pairs = list(zip(before, now, strict=True))
    differences = [c1 / n1 - c0 / n0 for (n0, c0), (n1, c1) in pairs]
    found = paired_difference(differences, range(len(pairs)))
    assert found is not None
    return Drop(p_value(pairs), found, sum(0 < c0 + c1 < n0 + n1 for (n0, c0), (n1, c1) in pairs))


def p_value(pairs: Sequence[tuple[Counts, Counts]]) -> float:
    """Computes the ``p`` of :class:`Drop`. Each pair: a case's trials and successes before, and now."""
    chances: NDArray[np.float64] = np.ones(1)
    least = observed = 0
    for (n0, c0), (n1, c1) in pairs:
        lowest, own = _urn(n0 + n1, c0 + c1, n1)
        chances = np.convolve(chances, own)
        least, observed = least + lowest, observed + c1
    at = observed - least
    return float(min(1.0, chances[:at].sum() + chances[at] / 2.0))


def _urn(balls: int, white: int, drawn: int) -> tuple[int, NDArray[np.float64]]:
    """Returns the least number of white balls drawn, and the chance of that number and of each larger one."""
    lowest, highest = max(0, drawn - (balls - white)), min(drawn, white)
    ways = math.comb(balls, drawn)
    numbers = range(lowest, highest + 1)
    return lowest, np.array([math.comb(white, j) * math.comb(balls - white, drawn - j) / ways for j in numbers])
