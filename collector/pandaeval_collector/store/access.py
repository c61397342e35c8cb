"""How the store's file is reached: one thread that writes, and readers with connections of their own."""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path

from pandaeval_collector.store.clock import StoreClock
from pandaeval_collector.store.connection import PAGE_BYTES, Durability, connect
from pandaeval_collector.store.damage import note_damage
from pandaeval_collector.store.writer import Writer


class Access:
    """The connections to one file, which is ready to be opened. Safe from any thread."""

    def __init__(self, file: Path, durability: Durability, clock: StoreClock | None = None) -> None:
        self._file, self._durability = file, durability
        self.clock = clock or StoreClock()
        self.writer = Writer(lambda: connect(file, durability), self._look_at)
        self.writer.start()
        self._readers = threading.local()
        self._open_readers: list[sqlite3.Connection] = []

    def resume_clock(self) -> None:
        """Has the clock go on where the store stopped; with the machine's time where that cannot be read."""
        try:
            self.clock.resume(self.reader())
        except sqlite3.DatabaseError as error:
            if not note_damage(self._file, error):
                raise

    def reader(self) -> sqlite3.Connection:
        """The connection that this thread reads on."""
        reader: sqlite3.Connection | None = getattr(self._readers, "connection", None)
        if reader is None:
            reader = self._readers.connection = connect(self._file, self._durability, read_only=True)
            self._open_readers.append(reader)
        return reader

    @contextlib.contextmanager
    def snapshot(self) -> Iterator[None]:
        """What this thread reads meanwhile is the store as it was at its first read, and costs less: every read alone
        has to look what others changed since the one before."""
        reader = self.reader()
        reader.rollback()  # of a snapshot that could not be ended
        reader.execute("BEGIN")
        try:
            yield
        except sqlite3.DatabaseError as error:
            self._look_at(error)
            raise
        finally:
            reader.execute("COMMIT")

    def _look_at(self, error: BaseException) -> None:
        note_damage(self._file, error)

    @contextlib.contextmanager
    def scan(self) -> Iterator[sqlite3.Connection]:
        """A connection for a long read. It goes on seeing the store as it was at the first row, and a thread's own
        reader would do so too while a read on it is under way: it must see what is committed meanwhile."""
        connection = connect(self._file, self._durability, read_only=True)
        try:
            yield connection
        finally:
            connection.close()

    def used_bytes(self) -> int:
        """Bytes in use on disk, free pages not counted."""
        reader = self.reader()
        pages = int(reader.execute("PRAGMA page_count").fetchone()[0])
        free = int(reader.execute("PRAGMA freelist_count").fetchone()[0])
        return (pages - free) * PAGE_BYTES

    def checkpoint(self) -> None:
        """Moves what the write-ahead log holds into the main file, as far as readers allow. Blocks; any thread."""
        connection = connect(self._file, self._durability)
        try:
            connection.execute("PRAGMA wal_checkpoint(PASSIVE)")
        finally:
            connection.close()

    def close(self) -> None:
        """Commits what is queued and closes all connections."""
        self.writer.close()
        for reader in self._open_readers:
            reader.close()
        self._open_readers.clear()
