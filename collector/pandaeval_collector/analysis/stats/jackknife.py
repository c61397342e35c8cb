"""A measure of agreement between -1 and 1 that is made of sums over runs, with its interval by the jackknife.

Each session is left out once (Tukey 1958); what the measure does then says how far it is off by chance. The interval
lies evenly about it on Fisher's scale, on which such measures spread alike wherever they are, with Student's quantile.
Where no run disagrees the jackknife sees no spread at all: then the interval is Wilson's for a share of which so many
sessions know no exception, stretched from 0..1 to -1..1.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from pandaeval_collector.analysis.stats.quantiles import t_quantile, wilson

_LEAST = 3
"""Sessions below which there is no interval."""
Values = NDArray[np.float64]


def jackknifed(
    columns: Values, clusters: NDArray[np.int64], of: Callable[[Values], Values]
) -> tuple[float | None, float | None, float | None]:
    """Computes a measure with its interval. ``columns``: what each run adds to each sum; ``of`` makes the measure of
    the sums (NaN where it is not defined), for one set of sums or many at once. Value, low and high end; ``None`` for
    what there is not."""
    parts = np.asarray([np.bincount(clusters, weights=each) for each in columns])
    sums = parts.sum(1)
    value = float(of(sums[:, None])[0])
    if math.isnan(value):
        return None, None, None
    n, runs = parts.shape[1], columns.shape[1]
    if n < _LEAST:
        return value, None, None
    without = of(sums[:, None] - parts)
    if np.isnan(without).any():
        return value, None, None
    scaled = np.arctanh(np.clip(np.r_[value, without], 1.0 / runs - 1.0, 1.0 - 1.0 / runs))
    error, quantile = math.sqrt((n - 1) / n * float(((scaled[1:] - scaled[1:].mean()) ** 2).sum())), t_quantile(n - 2.0)
    if error > 1e-9:
        half = quantile * max(error, 1.0 / math.sqrt(runs))
        low, high = math.tanh(scaled[0] - half), math.tanh(scaled[0] + half)
    else:
        low, high = (2.0 * end - 1.0 for end in wilson((value + 1.0) / 2.0, n, quantile))
    return value, min(low, value), max(high, value)
