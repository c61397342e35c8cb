"""The store's clock, which ignores changes of the system clock. It counts at most a day of each downtime."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from typing import NamedTuple

import orjson

KEY = "clock"
"""The key of the clock in the table ``meta``."""
_CREDIT_S = 86_400.0
"""Maximum seconds of downtime that a start counts, so that a wrong system clock cannot end a retention."""


class Times(NamedTuple):
    """A moment in Unix seconds. ``wall``: system clock, for display. Others: see :class:`StoreClock`."""

    wall: float
    calendar: float
    running: float


class StoreClock:
    """Two monotonic clocks in Unix seconds; thread-safe.

    ``running`` stops without a collector. ``calendar`` also counts downtime, at most a day.
    """

    def __init__(self, wall: Callable[[], float] = time.time, steady: Callable[[], float] = time.monotonic) -> None:
        self._wall, self._steady = wall, steady
        self._began = steady()
        self._running = self._calendar = wall()

    def resume(self, connection: sqlite3.Connection) -> bool:
        """Continue the stored clock. Returns ``False`` for a new store, which uses the system clock."""
        kept = stored_times(connection)
        if kept is not None:
            self._began = self._steady()
            self._running = kept.running
            passed = min(max(0.0, self._wall() - kept.wall), _CREDIT_S)
            self._calendar = kept.calendar + passed
        return kept is not None

    def running(self) -> float:
        """The creation time plus the seconds that collectors have run."""
        return self._running + self._passed()

    def calendar(self) -> float:
        return self._calendar + self._passed()

    def now(self) -> Times:
        passed = self._passed()
        return Times(self._wall(), self._calendar + passed, self._running + passed)

    def kept(self) -> str:
        """Return the clock as text for :meth:`resume`."""
        return orjson.dumps(self.now()._asdict()).decode()

    def _passed(self) -> float:
        return max(0.0, self._steady() - self._began)


def stored_times(connection: sqlite3.Connection) -> Times | None:
    """Return the times of the last write, or ``None`` for a new store."""
    row = connection.execute("SELECT value FROM meta WHERE key = ?", (KEY,)).fetchone()
    return None if row is None else Times(**orjson.loads(row[0]))
