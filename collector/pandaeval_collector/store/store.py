"""The store: acknowledged means committed, and a restart continues where the last process stopped.

One thread writes (:mod:`writer`); readers have connections of their own. Only the index of open traces lives in memory;
contents stay on disk until their trace is due.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection
from concurrent.futures import Future
from contextlib import AbstractContextManager
from pathlib import Path

from pandaeval_collector.store.access import Access
from pandaeval_collector.store.chunks import ChunkTables
from pandaeval_collector.store.clock import KEY, StoreClock
from pandaeval_collector.store.connection import FILE_NAME, Durability, create
from pandaeval_collector.store.consumed import ConsumedMembers, ConsumedTables
from pandaeval_collector.store.decisions import DecisionTables
from pandaeval_collector.store.directory import Directory
from pandaeval_collector.store.failure_groups import FailureGroupTable
from pandaeval_collector.store.forgetting import forget
from pandaeval_collector.store.jobs import Jobs
from pandaeval_collector.store.judging import Spending, Verdicts
from pandaeval_collector.store.kept import KeptTables
from pandaeval_collector.store.outgoing import OutboxTables
from pandaeval_collector.store.people import People
from pandaeval_collector.store.runs import RunTable
from pandaeval_collector.store.schedules import Schedules
from pandaeval_collector.store.sessions import SessionTables


class Store(ChunkTables, DecisionTables, KeptTables, SessionTables, OutboxTables):
    """The store in one data directory. ``durability``: ``full`` survives power cuts, ``normal`` process crashes (the
    last commits may be lost at a power cut), ``off`` nothing (for temporary stores)."""

    def __init__(
        self,
        path: Path,
        durability: Durability = "full",
        max_bytes: int = 10 << 30,
        clock: StoreClock | None = None,
    ) -> None:
        self.path = path
        self._directory = Directory(path)
        try:
            file = path / FILE_NAME
            self.was_damaged = create(file, durability)
            self._directory.sync()
            self._access = Access(self._directory, file, durability, self.was_damaged, clock)
            self._access.resume_clock()
            super().__init__(self._access, max_bytes)
        except BaseException:
            self._directory.close()
            raise
        self.jobs = Jobs(self._writer, self._reader, self.clock)
        self.verdicts = Verdicts(self._writer, self._reader, self.clock)
        self.spending = Spending(self._writer, self._reader)
        self.people = People(self._writer, self._reader)
        self.failure_groups = FailureGroupTable(self._reader)
        self.runs = RunTable(self._writer, self._reader, self.clock)
        self.schedules = Schedules(self._writer, self._reader, self.clock)
        self.consumed = ConsumedTables(self._writer, self._reader)
        self.members_read = ConsumedMembers(self._writer, self._reader)

    # -- cursors and small facts ---------------------------------------------------------------------------------

    def get(self, key: str) -> str | None:
        row = self._reader().execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return None if row is None else str(row[0])

    def put(self, key: str, value: str) -> Future[None]:
        def work(connection: sqlite3.Connection) -> None:
            connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))

        return self._writer.submit(work)

    def keep_time(self) -> Future[None]:
        """Stores the store's clock, for the next process to continue."""
        return self.put(KEY, self.clock.kept())

    # -- upkeep --------------------------------------------------------------------------------------------------

    def forget(
        self,
        late_window_s: float,
        retention_s: float,
        now: float,
        keep: Collection[bytes] = (),
        limit: int = 2000,
        judged_s: float = 30 * 86_400.0,
        unlisted_only: bool = False,
    ) -> Future[int]:
        """Drops raw chunks of traces decided more than ``late_window_s`` seconds ago, ``keep`` excepted, results,
        tombstones and closed sessions older than ``retention_s``, and judged scores older than ``judged_s`` at ``now``
        of the store's calendar; of each kind no more than ``limit``. ``unlisted_only``: raw chunks of listed traces are
        left to :meth:`keep` until ``retention_s`` is over. The future holds how many went of the kind that had most;
        call again while it is ``limit``."""
        return self._writer.submit(
            lambda connection: forget(connection, now, late_window_s, retention_s, keep, limit, judged_s, unlisted_only)
        )

    def waiting(self) -> int:
        """Returns how many writes are queued."""
        return self._writer.waiting()

    def snapshot(self) -> AbstractContextManager[None]:
        """Inside the block, the calling thread reads the store as it was at the first read, and reads cost less."""
        return self._access.snapshot()

    def checkpoint(self) -> None:
        """Moves what the write-ahead log holds into the main file, as far as readers allow. Blocks; any thread."""
        self._access.checkpoint()

    def close(self) -> None:
        """Commits what is queued and unlocks the directory. Safe to call twice."""
        self._stop_remembering()
        self.keep_time()
        self._access.close()
        self._directory.close()

    # -- whether it is well --------------------------------------------------------------------------------------

    @property
    def missing(self) -> str:
        """What earlier processes committed and the store lacks, as a clause; empty if nothing is known to be
        missing."""
        return self._access.commits.missing

    @property
    def gone(self) -> str:
        """Why nothing is accepted until a restart: files were taken away. Empty while all are where they were."""
        return self._access.place.gone

    @property
    def failing(self) -> str:
        """Why the last transaction could not be written; empty after one that could."""
        return self._access.writer.failing

    def require(self) -> None:
        """Raises :class:`StoreGoneError` when it is known that files were taken away."""
        self._access.place.require()

    def look(self) -> str:
        """Checks whether all files are at their paths; returns ``gone``. Blocks; any thread."""
        return self._access.look()

    def rescue(self) -> None:
        """Saves what would end with the process when the store's files were taken away, as far as possible, and logs
        where it is. Blocks, seconds for each GiB; any thread. Raises ``OSError`` and ``sqlite3.Error`` where it cannot
        be done just now."""
        self._access.rescue()
