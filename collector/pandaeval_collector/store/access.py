"""Opens the store's file for its users: one thread that writes, and a connection of its own for each thread that
reads."""

from __future__ import annotations

import contextlib
import logging
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path

from pandaeval_collector.store.clock import StoreClock
from pandaeval_collector.store.commits import Commits, number_of
from pandaeval_collector.store.connection import PAGE_BYTES, Durability, connect
from pandaeval_collector.store.damage import note_damage
from pandaeval_collector.store.directory import Directory, StoreFiles
from pandaeval_collector.store.rescue import rescue
from pandaeval_collector.store.writer import Writer

_log = logging.getLogger(__name__)


class Access:
    """Holds the connections to the store's file, whose directory this process has locked. Safe from any thread."""

    def __init__(
        self,
        directory: Directory,
        file: Path,
        durability: Durability,
        was_damaged: bool = False,
        clock: StoreClock | None = None,
    ) -> None:
        self._directory, self._file, self._durability = directory, file, durability
        self.clock = clock or StoreClock()
        self._readers = threading.local()
        self._open_readers: list[sqlite3.Connection] = []
        # This connection reads at once and is idle from then on. It has all files of the store open, whatever becomes
        # of their names.
        self._first = connect(file, durability)
        try:
            number_of(self._first)
            self.place = StoreFiles(directory, file)
            self.commits = Commits(self._first, directory.path, self.place, was_damaged)
            self.writer = Writer(lambda: connect(file, durability), self._look_at, self.commits)
            self.writer.start()
        except BaseException:
            self._first.close()
            raise
        self._rescuing, self._is_rescued = threading.Lock(), False
        self._made_anew: Directory | None = None
        self._is_closed = False

    def resume_clock(self) -> None:
        """Sets the clock to where the store stopped; to the machine's time where that cannot be read."""
        try:
            self.clock.resume(self.reader())
        except sqlite3.DatabaseError as error:
            if not note_damage(self._file, error):
                raise

    def reader(self) -> sqlite3.Connection:
        """The calling thread's connection for reading."""
        reader: sqlite3.Connection | None = getattr(self._readers, "connection", None)
        if reader is None:
            reader = self._readers.connection = connect(self._file, self._durability, read_only=True)
            self._open_readers.append(reader)
        return reader

    @contextlib.contextmanager
    def snapshot(self) -> Iterator[None]:
        """Inside the block, the calling thread reads the store as it was at the first read. Reads cost less: outside of
        a snapshot, each read checks what others have changed since the one before."""
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
        """Opens a connection for a long read. Until the read ends it shows the store as it was at the first row; the
        calling thread's own reader stays free for reads that have to see newer commits."""
        connection = connect(self._file, self._durability, read_only=True)
        try:
            yield connection
        finally:
            connection.close()

    def used_bytes(self) -> int:
        """Returns how many bytes of the store's file are in use, free pages not counted."""
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

    def look(self) -> str:
        """Checks whether all files are in their place; returns what is wrong, or an empty text. Once something was
        wrong, the answer stays. Blocks."""
        self.commits.look()
        return self.place.look()

    def rescue(self) -> None:
        """Saves what the open files of a store hold after they were taken away; see :mod:`rescue`. Blocks. Does nothing
        while all files are in place, nor when called again."""
        with self._rescuing:
            if self.place.gone and not self._is_rescued:
                self._made_anew = rescue(self._first, self.place, self._directory)
                self._is_rescued = True

    def close(self) -> None:
        """Commits what is queued and closes all connections. Safe to call twice."""
        if self._is_closed:
            return
        self._is_closed = True
        self.writer.close()
        self._rescue_at_last()
        for connection in (*self._open_readers, self._first):
            connection.close()
        self._open_readers.clear()
        self.commits.close()
        self.place.close()
        if self._made_anew is not None:
            self._made_anew.close()

    def _rescue_at_last(self) -> None:
        self.look()
        try:
            self.rescue()
        except (OSError, sqlite3.Error) as error:
            _log.error("what was in the store at %s is lost: it could not be saved (%s)", self._file, error)


class TableGroup:
    """The base class of the classes that each read and write the tables of one subject. Reads run on the caller's
    thread, writes on the writer's."""

    def __init__(self, access: Access) -> None:
        self._reader, self._scan, self._writer = access.reader, access.scan, access.writer
        self.clock = access.clock
        """The store's own time."""
