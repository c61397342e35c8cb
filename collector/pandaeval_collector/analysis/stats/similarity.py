"""How alike two vectors or two sets are."""

from __future__ import annotations

import math
from collections.abc import Sequence, Set
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray


class Direction:
    """Where a vector points: made once, it can be compared many times. False for a vector that is all zeros (or empty)
    and points nowhere. Raises ``ValueError`` when a component is not finite."""

    __slots__ = ("components", "size")

    def __init__(self, vector: Sequence[float] | NDArray[Any]) -> None:
        self.size = len(vector)
        self.components: NDArray[np.float64] | None = _unit(np.asarray(vector, dtype=np.float64))

    @classmethod
    def of_rows(cls, rows: NDArray[Any]) -> list[Direction]:
        """Returns the directions of many vectors, shape (n, dim): the same to the last bit, in a fraction of the
        time."""
        values = np.asarray(rows, dtype=np.float64)
        largest = np.maximum.reduce(np.abs(values), axis=1, initial=0.0)
        if not np.isfinite(largest).all():
            raise ValueError("a vector holds a component that is not finite")
        values = values / np.where(largest == 0.0, 1.0, largest)[:, None]
        lengths = np.sqrt(np.add.reduce(values * values, axis=1))
        values /= np.where(lengths == 0.0, 1.0, lengths)[:, None]
        return [cls._made(row if some else None, len(row)) for row, some in zip(values, largest, strict=True)]

    @classmethod
    def _made(cls, components: NDArray[np.float64] | None, size: int) -> Direction:
        made = cls.__new__(cls)
        made.size, made.components = size, components
        return made

    def __len__(self) -> int:
        return self.size

    def __bool__(self) -> bool:
        return self.components is not None


Vector: TypeAlias = Sequence[float] | NDArray[Any] | Direction


def cosine(a: Vector, b: Vector) -> float | None:
    """The cosine of the angle between two vectors, in -1..1; ``None`` when one of them is all zeros (or empty).

    Symmetric, in double precision whatever the vectors' lengths and types; numpy rows are fine. Raises ``ValueError``
    when the dimensions differ or a component is not finite.
    """
    one = a if isinstance(a, Direction) else Direction(a)
    other = b if isinstance(b, Direction) else Direction(b)
    if one.size != other.size:
        raise ValueError(f"vectors of different dimensions: {one.size} and {other.size}")
    if one.components is None or other.components is None:
        return None
    # Not a BLAS dot product: its last bits depend on the processor, and scores must not.
    return min(1.0, max(-1.0, float(np.add.reduce(one.components * other.components))))


def jaccard(a: Set[str], b: Set[str]) -> float:
    """Shared elements / all elements, in 0..1; 0 when both sets are empty (nothing is shared)."""
    shared = len(a & b)
    union = len(a) + len(b) - shared
    return shared / union if union else 0.0


def _unit(values: NDArray[np.float64]) -> NDArray[np.float64] | None:
    largest = float(np.maximum.reduce(np.abs(values), initial=0.0))
    if not math.isfinite(largest):
        raise ValueError("a vector holds a component that is not finite")
    if largest == 0.0:
        return None
    values = values / largest  # squares of very large or small components would not fit a double
    unit: NDArray[np.float64] = values / math.sqrt(float(np.add.reduce(values * values)))
    return unit
