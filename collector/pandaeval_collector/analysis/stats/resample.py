"""The bootstrap over groups (Efron 1979): how far a mean would move if other groups had been drawn."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

RESAMPLES = 2000
_AT_ONCE = 4_000_000
"""So many draws at a time: 32 MB."""


def means(sums: NDArray[np.float64], sizes: NDArray[np.float64], seed: int = 0) -> NDArray[np.float64]:
    """The means of samples of groups, drawn with replacement, from each group's sum and size. The same arguments give
    the same draws."""
    random = np.random.default_rng(seed)
    found = []
    left, rows = RESAMPLES, max(1, _AT_ONCE // len(sums))
    while left > 0:
        drawn = random.integers(0, len(sums), (min(left, rows), len(sums)))
        found.append(sums[drawn].sum(axis=1) / sizes[drawn].sum(axis=1))
        left -= rows
    return np.concatenate(found)
