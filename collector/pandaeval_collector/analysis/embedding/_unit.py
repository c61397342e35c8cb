"""Rows of length 1, with the same bits whatever the batch and the processor."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def unit_rows(rows: NDArray[Any]) -> NDArray[np.float32]:
    """The rows divided by their Euclidean length, float32, same shape ``(n, dim)``; rows of zeros stay zeros.

    Squares are added in float64 and row by row: no matrix product, whose order of additions depends on the batch and
    on the processor.
    """
    lengths = np.sqrt(np.add.reduce(np.square(rows, dtype=np.float64), axis=1))
    lengths[lengths == 0.0] = 1.0
    unit: NDArray[np.float32] = np.divide(rows, lengths[:, None], dtype=np.float64).astype(np.float32)
    return unit
