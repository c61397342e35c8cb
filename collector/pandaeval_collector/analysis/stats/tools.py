"""Compares called with expected tools, by name.

Source: Agent Evaluation Framework, three layers. ``plan_order`` follows its sentence, not its listing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence


def plan_order(actual: Sequence[str], expected: Sequence[str]) -> float:
    """Return the share, 0..1, of ``expected`` that ``actual`` has in this order; 1 if none is expected."""
    return common_order(actual, expected) / len(expected) if expected else 1.0


def tool_routing_accuracy(actual: Sequence[str], expected: Sequence[str]) -> float:
    """Return the share, 0..1, of positions in ``expected`` with the same tool in ``actual``; 1 if none is expected."""
    if not expected:
        return 1.0
    return sum(one == other for one, other in zip(actual, expected, strict=False)) / len(expected)


def tool_selection_f1(actual: Sequence[str], expected: Sequence[str]) -> float:
    """Return the multisets' F1, 0..1: 1 if both are empty, 0 if only one is."""
    if not actual and not expected:
        return 1.0
    common = (Counter(actual) & Counter(expected)).total()
    return 2 * common / (len(actual) + len(expected))


def step_efficiency(actual: int, minimum: int) -> float | None:
    """Return ``minimum / actual`` steps, at most 1; ``None`` without a step."""
    return min(1.0, minimum / actual) if actual > 0 else None


def common_order(one: Sequence[str], other: Sequence[str]) -> int:
    row = [0] * (len(other) + 1)
    for item in one:
        diagonal = 0
        for at, candidate in enumerate(other, 1):
            above = row[at]
            row[at] = diagonal + 1 if item == candidate else max(above, row[at - 1])
            diagonal = above
    return row[-1]


def tool_band(score: float) -> str:
    """Return the source's band of a tool score: ``perfect``, ``good`` (from 0.75), ``moderate`` (from 0.5) or
    ``poor``.
    """
    limits = {"perfect": 1.0, "good": 0.75, "moderate": 0.5}
    return next((band for band, least in limits.items() if score >= least - 1e-9), "poor")
