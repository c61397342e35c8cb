"""How alike two vectors or two sets are."""

from __future__ import annotations

import math
from collections.abc import Sequence, Set

import numpy as np
from numpy.typing import NDArray


def cosine(a: Sequence[float], b: Sequence[float]) -> float | None:
    """The cosine of the angle between two vectors, in -1..1; ``None`` when one of them is all zeros (or empty).

    Symmetric, in double precision whatever the vectors' lengths and types; numpy rows are fine. Raises ``ValueError``
    when the dimensions differ or a component is not finite.
    """
    if len(a) != len(b):
        raise ValueError(f"vectors of different dimensions: {len(a)} and {len(b)}")
    unit_a, unit_b = _unit(a), _unit(b)
    if unit_a is None or unit_b is None:
        return None
    # Not a BLAS dot product: its last bits depend on the processor, and scores must not.
    return min(1.0, max(-1.0, float(np.add.reduce(unit_a * unit_b))))


def jaccard(a: Set[str], b: Set[str]) -> float:
    """Shared elements / all elements, in 0..1; 0 when both sets are empty (nothing is shared)."""
    union = len(a | b)
    return len(a & b) / union if union else 0.0


def _unit(vector: Sequence[float]) -> NDArray[np.float64] | None:
    values = np.asarray(vector, dtype=np.float64)
    largest = float(np.abs(values).max(initial=0.0))
    if not math.isfinite(largest):
        raise ValueError("a vector holds a component that is not finite")
    if largest == 0.0:
        return None
    scaled = values / largest  # squares of very large or small components would not fit a double
    unit: NDArray[np.float64] = scaled / math.sqrt(float(np.add.reduce(scaled * scaled)))
    return unit
