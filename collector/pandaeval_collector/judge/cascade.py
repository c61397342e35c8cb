"""A cheap judge that is asked first."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CascadeStep:
    """Its ``model``, and where its verdict stands: up to ``low``, and from ``high`` on."""

    model: str
    low: float
    high: float

    def decides(self, score: float) -> bool:
        """Whether its score stands."""
        return score <= self.low + 1e-9 or score >= self.high - 1e-9
