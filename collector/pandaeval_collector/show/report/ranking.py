"""The one order in which runs and sessions are shown, in tables and on pages: worst first."""

from __future__ import annotations

NO_SCORE = 2.0
"""Stands for the signal of what has no score: after all others."""


def rank(failed: bool, worst: float, failures: int, name: str) -> tuple[bool, float, int, str]:
    """A key to sort by. What ``failed`` comes first, then by the ``worst`` signal (0..1, or :data:`NO_SCORE`), then by
    how many results failed; ``name`` decides between equals."""
    return not failed, worst, -failures, name
