"""A heap of deadlines that may be moved at any time."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)


class Deadlines(Generic[K]):
    """Finds the keys whose deadline has passed. Moving a deadline later is free (the heap checks it again when the old
    one passes); earlier costs one push.

    ``due_at(key)`` returns the true deadline, or ``None`` for a removed key. Seconds on any one clock.
    """

    def __init__(self, due_at: Callable[[K], float | None]) -> None:
        self._due_at = due_at
        self._heap: list[tuple[float, int, K]] = []
        self._scheduled: dict[K, float] = {}
        self._ticket = 0

    def set(self, key: K, deadline: float) -> None:
        """Schedules a check of ``key`` no later than ``deadline``."""
        scheduled = self._scheduled.get(key)
        if scheduled is None or deadline < scheduled:
            self._push(key, deadline)

    def pop_due(self, now: float) -> K | None:
        """Returns a key whose true deadline has passed, or ``None``. The caller must remove or move it."""
        while self._heap and self._heap[0][0] <= now:
            deadline, _, key = heapq.heappop(self._heap)
            if self._scheduled.get(key) != deadline:
                continue  # an earlier push replaced this one
            del self._scheduled[key]
            true_deadline = self._due_at(key)
            if true_deadline is None:
                continue
            if true_deadline <= now:
                return key
            self._push(key, true_deadline)
        return None

    def next_deadline(self) -> float | None:
        """Returns when to check next, perhaps early but never late; ``None`` when there is nothing to wait for."""
        return self._heap[0][0] if self._heap else None

    def _push(self, key: K, deadline: float) -> None:
        self._scheduled[key] = deadline
        self._ticket += 1
        heapq.heappush(self._heap, (deadline, self._ticket, key))
