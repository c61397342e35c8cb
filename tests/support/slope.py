"""Growth rates of sampled values."""

from __future__ import annotations

import statistics
from collections.abc import Sequence


def slope_an_hour(points: Sequence[tuple[float, float]]) -> float:
    """Return the Theil-Sen slope per hour of (seconds, value). Needs two points."""
    slopes = [
        (later[1] - point[1]) / (later[0] - point[0]) for at, point in enumerate(points) for later in points[at + 1 :]
    ]
    return statistics.median(slopes) * 3600
