"""The store's own time. The machine's clock may be set, by days; rows must neither be deleted too early nor kept for
ever because of that.

Ages are counted on a steady clock while the process runs. The machine's clock is read when a store is new, and at a
start to find out for how long no collector ran; so a clock that jumps changes nothing while the collector runs, and at
most a day of it is believed at a start.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from typing import NamedTuple

import orjson

KEY = "clock"
"""The key of the clock in the table ``meta``."""
_CREDIT_S = 86_400.0
"""Most seconds that count of the time between two processes: a wrong clock at a start must not end a retention."""


class Times(NamedTuple):
    """One moment, in seconds. ``wall``: the machine's clock, for what others read. ``calendar`` and ``running``: see
    :class:`StoreClock`."""

    wall: float
    calendar: float
    running: float


class StoreClock:
    """Two clocks that never jump and never go back; Unix seconds as long as the machine's clock is right. Any thread.

    ``running`` stands still while no collector runs: what waits to be sent or asked is as old as the time in which that
    could have been done. ``calendar`` goes on then, by a day at most: retention is about that.
    """

    def __init__(self, wall: Callable[[], float] = time.time, steady: Callable[[], float] = time.monotonic) -> None:
        self._wall, self._steady = wall, steady
        self._began = steady()
        self._running = self._calendar = wall()

    def resume(self, connection: sqlite3.Connection) -> bool:
        """Set the clock to where the store stopped. Returns ``False`` for a new store, whose time is the machine's."""
        row = connection.execute("SELECT value FROM meta WHERE key = ?", (KEY,)).fetchone()
        if row is not None:
            kept = orjson.loads(row[0])
            self._began = self._steady()
            self._running = float(kept["running"])
            passed = min(max(0.0, self._wall() - float(kept["wall"])), _CREDIT_S)
            self._calendar = float(kept["calendar"]) + passed
        return row is not None

    def running(self) -> float:
        """Seconds that collectors have run on this store, from the Unix time at which it was new."""
        return self._running + self._passed()

    def calendar(self) -> float:
        """Return what ``running`` does, plus the time in which no collector ran."""
        return self._calendar + self._passed()

    def now(self) -> Times:
        """Read all clocks at one moment."""
        passed = self._passed()
        return Times(self._wall(), self._calendar + passed, self._running + passed)

    def kept(self) -> str:
        """Write the clock as text, for :meth:`resume` of the next process."""
        return orjson.dumps(self.now()._asdict()).decode()

    def _passed(self) -> float:
        return max(0.0, self._steady() - self._began)


def last_running(connection: sqlite3.Connection) -> float | None:
    """Return the running clock as it was stored last: for processes that read a store which a collector has open."""
    row = connection.execute("SELECT value FROM meta WHERE key = ?", (KEY,)).fetchone()
    return None if row is None else float(orjson.loads(row[0])["running"])
