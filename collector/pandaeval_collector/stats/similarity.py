"""How alike two vectors or two sets are."""

from __future__ import annotations

import math
from collections.abc import Sequence, Set


def cosine(a: Sequence[float], b: Sequence[float]) -> float | None:
    """The cosine of the angle between two vectors, in -1..1; ``None`` when one of them is all zeros (or empty).

    Symmetric, and exact to the last few bits whatever the vectors' lengths. Raises ``ValueError`` when the dimensions
    differ or a component is not finite. numpy rows are fine.
    """
    if len(a) != len(b):
        raise ValueError(f"vectors of different dimensions: {len(a)} and {len(b)}")
    unit_a, unit_b = _unit(a), _unit(b)
    if unit_a is None or unit_b is None:
        return None
    return min(1.0, max(-1.0, math.fsum(x * y for x, y in zip(unit_a, unit_b, strict=True))))


def jaccard(a: Set[str], b: Set[str]) -> float:
    """Shared elements / all elements, in 0..1; 0 when both sets are empty (nothing is shared)."""
    union = len(a | b)
    return len(a & b) / union if union else 0.0


def _unit(vector: Sequence[float]) -> list[float] | None:
    values = [float(value) for value in vector]
    largest = max((abs(value) for value in values), default=0.0)
    if not all(math.isfinite(value) for value in values):
        raise ValueError("a vector holds a component that is not finite")
    if largest == 0.0:
        return None
    scaled = [value / largest for value in values]  # squares of very large or small components would not fit a double
    norm = math.sqrt(math.fsum(value * value for value in scaled))
    return [value / norm for value in scaled]
