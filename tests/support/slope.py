"""How fast something grows that is noted now and then."""

from __future__ import annotations

import statistics
from collections.abc import Sequence


def slope_an_hour(points: Sequence[tuple[float, float]]) -> float:
    """The median of the slopes between each two of (seconds, value), by the hour (Theil and Sen): a few samples that
    lie elsewhere do not move it. Needs two points."""
    slopes = [
        (later[1] - point[1]) / (later[0] - point[0]) for at, point in enumerate(points) for later in points[at + 1 :]
    ]
    return statistics.median(slopes) * 3600
