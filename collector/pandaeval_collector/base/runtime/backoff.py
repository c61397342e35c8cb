"""How long to wait before trying again."""

from __future__ import annotations

import random
from collections.abc import Callable


class Backoff:
    """Computes waiting times with full jitter: a random time below a ceiling that doubles with every failure, so that
    many collectors do not come back at the same moment. Seconds."""

    def __init__(
        self, first: float = 0.5, longest: float = 30.0, uniform: Callable[[float, float], float] = random.uniform
    ) -> None:
        self._first, self._longest, self._uniform = first, longest, uniform
        self._ceiling = first

    def succeeded(self) -> None:
        self._ceiling = self._first

    def failed(self, asked: float | None = None) -> float:
        """Notes a failure and returns how long to wait now, no less than what was ``asked`` for."""
        jitter = self._uniform(0.0, self._ceiling)
        self._ceiling = min(2 * self._ceiling, self._longest)
        return (asked or 0.0) + jitter
