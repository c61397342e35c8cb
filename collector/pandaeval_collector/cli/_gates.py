"""Does a run pass? Only thresholds that somebody configured can fail it."""

from __future__ import annotations

from collections.abc import Mapping

from pandaeval_collector.result import TOLERANCE


def missed(
    thresholds: Mapping[str, float],
    max_unscored: float,
    outcomes: Mapping[tuple[str, str, str], int],
    means: Mapping[str, float],
) -> list[str]:
    """What keeps a run from passing, as sentences. ``outcomes``: counts by (metric key, outcome, why).

    A metric with a configured threshold fails when the mean of its scores is below it; when it has no score although it
    should have (all assumed or not applicable passes); and when more than ``max_unscored`` of its results are unscored.
    """
    found: list[str] = []
    for key, threshold in thresholds.items():
        scored = _count(outcomes, key, "scored")
        unscored = _count(outcomes, key, "unscored")
        if scored and means[key] < threshold - TOLERANCE:
            found.append(f"{key}: mean {means[key]:.4f} of {scored} scores is below the threshold {threshold:g}")
        if not scored and unscored:
            found.append(f"{key}: none of {unscored} results could be scored")
        elif unscored > max_unscored * (scored + unscored):
            found.append(f"{key}: {unscored} of {scored + unscored} results are unscored (gates.max_unscored)")
    return found


def _count(outcomes: Mapping[tuple[str, str, str], int], key: str, outcome: str) -> int:
    return sum(count for (name, kind, _), count in outcomes.items() if (name, kind) == (key, outcome))
