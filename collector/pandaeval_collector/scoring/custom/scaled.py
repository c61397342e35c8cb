"""A number on a metric's own scale, as a score."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pandaeval_collector.base.score import Score

UNIT = (0.0, 1.0)


def scaled(
    raw: float, scale: tuple[float, float], reason: str = "", metadata: Mapping[str, Any] | None = None
) -> Score:
    """The score 0..1 of a number on ``scale`` (its worst and its best end), which ``raw`` keeps. Raises ``ValueError``
    for a number outside of it."""
    least, most = scale
    if not least <= raw <= most:
        raise ValueError(f"{raw!r} does not lie in the metric's scale {least:g}-{most:g}")
    held = dict(metadata or {})
    if scale == UNIT:
        return Score(float(raw), reason, held)
    value = (raw - least) / (most - least)
    return Score(min(1.0, max(0.0, value)), reason, held, raw=float(raw), scale=written(scale))


def written(scale: tuple[float, float]) -> str:
    """A scale as metrics and results have it: ``"1-5"``, ``""`` for 0..1."""
    return "" if scale == UNIT else f"{scale[0]:g}-{scale[1]:g}"
