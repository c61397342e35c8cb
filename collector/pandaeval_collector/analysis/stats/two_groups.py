"""Two shares of independent yes-or-no observations, such as the pass rates of two versions."""

from __future__ import annotations

import math
from dataclasses import dataclass

from pandaeval_collector.analysis.stats.quantiles import normal_quantile, wilson

_SAME = 1e-7
"""Tables whose weights differ by less are equally likely."""
_RARE = 1e-300
"""Weights below this share of the most likely table are ignored."""


@dataclass(frozen=True, slots=True)
class ShareDifference:
    """``value``: second share minus first; ``low`` to ``high``: Newcombe's 95 % interval; ``p``: two-sided, by Fisher's
    exact test."""

    value: float
    low: float
    high: float
    p: float


def share_difference(hits: int, n: int, other_hits: int, other_n: int) -> ShareDifference | None:
    """Compare ``hits`` of ``n`` with ``other_hits`` of ``other_n``; ``None`` if a group is empty."""
    if not n or not other_n:
        return None
    one, two = hits / n, other_hits / other_n
    (low_one, high_one), (low_two, high_two) = (
        wilson(share, size, normal_quantile()) for share, size in ((one, n), (two, other_n))
    )
    low = two - one - math.hypot(two - low_two, high_one - one)
    high = two - one + math.hypot(high_two - two, one - low_one)
    return ShareDifference(two - one, low, high, fisher(hits, n, other_hits, other_n))


def fisher(hits: int, n: int, other_hits: int, other_n: int) -> float:
    """Return the two-sided p-value of Fisher's exact test: the share of all tables with the same sums that are as
    unlikely as this table, or less likely."""
    total = hits + other_hits
    first, last = max(0, total - other_n), min(total, n)
    likeliest = min(last, max(first, (n + 1) * (total + 1) // (n + other_n + 2)))
    weights = {likeliest: 1.0}
    for step, end in ((1, last), (-1, first)):
        at, weight = likeliest, 1.0
        while at != end and weight > _RARE:
            weight *= _ratio(at, n, total, other_n) if step > 0 else 1.0 / _ratio(at - 1, n, total, other_n)
            at += step
            weights[at] = weight
    limit = weights.get(hits, 0.0) * (1.0 + _SAME)
    return min(1.0, math.fsum(each for each in weights.values() if each <= limit) / math.fsum(weights.values()))


def _ratio(at: int, n: int, total: int, other_n: int) -> float:
    """Return how much likelier the table with one more hit in the first group is."""
    return (n - at) * (total - at) / ((at + 1) * (other_n - total + at + 1))
