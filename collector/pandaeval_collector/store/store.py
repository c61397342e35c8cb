"""The store: acknowledged means committed, and a restart goes on where the last process stopped.

Writing happens on one thread (:mod:`writer`), reading on connections of the readers' own. Only the index of open
traces lives in memory; contents stay on disk until their trace is due.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection
from concurrent.futures import Future
from contextlib import AbstractContextManager
from pathlib import Path

from pandaeval_collector.store.access import Access
from pandaeval_collector.store.chunks import Chunks
from pandaeval_collector.store.clock import KEY, StoreClock
from pandaeval_collector.store.connection import Durability, create, open_directory
from pandaeval_collector.store.decisions import Decisions
from pandaeval_collector.store.forgetting import forget
from pandaeval_collector.store.jobs import Jobs
from pandaeval_collector.store.outgoing import Outgoing
from pandaeval_collector.store.sessions import Sessions


class Store(Chunks, Decisions, Sessions, Outgoing):
    """One data directory. ``durability``: ``full`` survives power cuts, ``normal`` process crashes (the last commits
    may be lost at a power cut), ``off`` nothing (for temporary stores)."""

    def __init__(
        self,
        path: Path,
        durability: Durability = "full",
        max_bytes: int = 10 << 30,
        clock: StoreClock | None = None,
    ) -> None:
        self.path = path
        file, self._lock = open_directory(path)
        try:
            self.was_damaged = create(file, durability)
            self._access = Access(file, durability, clock)
            self._access.resume_clock()
            super().__init__(self._access, max_bytes)
        except BaseException:
            self._lock.close()
            raise
        self.jobs = Jobs(self._writer, self._reader, self.clock)

    # -- cursors and small facts ---------------------------------------------------------------------------------

    def get(self, key: str) -> str | None:
        row = self._reader().execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return None if row is None else str(row[0])

    def put(self, key: str, value: str) -> Future[None]:
        def work(connection: sqlite3.Connection) -> None:
            connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))

        return self._writer.submit(work)

    def keep_time(self) -> Future[None]:
        """Notes what the store's clock says; the next process goes on from there."""
        return self.put(KEY, self.clock.kept())

    # -- upkeep --------------------------------------------------------------------------------------------------

    def forget(
        self, late_window_s: float, retention_s: float, now: float, keep: Collection[bytes] = (), limit: int = 2000
    ) -> Future[int]:
        """Drops raw chunks of traces decided more than ``late_window_s`` seconds ago, ``keep`` excepted, and results,
        tombstones and closed sessions older than ``retention_s`` at ``now`` of the store's calendar; of each kind no
        more than ``limit``. The future holds how many went of the kind that had most; call again while it is
        ``limit``."""
        return self._writer.submit(lambda connection: forget(connection, now, late_window_s, retention_s, keep, limit))

    def waiting(self) -> int:
        """Writes that are queued."""
        return self._writer.waiting()

    def snapshot(self) -> AbstractContextManager[None]:
        """While it lasts, this thread reads the store as it was at its first read, and reads it cheaper."""
        return self._access.snapshot()

    def checkpoint(self) -> None:
        """Moves what the write-ahead log holds into the main file, as far as readers allow. Blocks; any thread."""
        self._access.checkpoint()

    def close(self) -> None:
        """Commits what is queued and lets go of the directory."""
        self._stop_remembering()
        self.keep_time()
        self._access.close()
        self._lock.close()
