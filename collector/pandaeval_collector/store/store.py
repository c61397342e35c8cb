"""The store, which acknowledges data after commit. A thread writes (:mod:`commits`); readers have own connections."""

from __future__ import annotations

import itertools
import sqlite3
from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, closing
from pathlib import Path

from pandaeval_collector.store import retention
from pandaeval_collector.store.access import StoreAccess
from pandaeval_collector.store.changes import WriteSet, apply
from pandaeval_collector.store.chunks import KeptTraces, StoreFullError, add_chunks, keep_newest, newest_chunk
from pandaeval_collector.store.clock import KEY, StoreClock
from pandaeval_collector.store.commits import Writer
from pandaeval_collector.store.connection import FILE_NAME, Durability, connect, create, note_damage
from pandaeval_collector.store.consumed import Consumed, ConsumedMembers, ConsumedTables, write as write_consumed
from pandaeval_collector.store.directory import Directory
from pandaeval_collector.store.outbox import OutboxRows
from pandaeval_collector.store.reader import StoreReader
from pandaeval_collector.store.rows import Chunk, ResultRow
from pandaeval_collector.store.seen import Seen
from pandaeval_collector.store.series_table import SeriesTable
from pandaeval_collector.store.table import insert, written
from pandaeval_otel.assembly import Decided


class Store(StoreAccess):
    """Writes a locked data directory; thread-safe.

    ``durability``: ``full`` survives power cuts, ``normal`` process crashes. ``max_bytes``: disk budget.
    """

    def __init__(
        self, path: Path, durability: Durability = "full", max_bytes: int = 10 << 30, clock: StoreClock | None = None
    ) -> None:
        self.max_bytes, clock = max_bytes, clock or StoreClock()
        self._file, self._durability = path / FILE_NAME, durability
        self._directory = Directory(path)
        self._decided, self._responses = Seen(), Seen()
        with ExitStack() as undone:
            undone.callback(self._directory.close)
            self.was_damaged = create(self._file, durability)
            self._directory.sync()
            reads = StoreReader(path, self._responses)
            undone.callback(reads.close)
            self._size = reads.used_bytes()
            is_new = not self._resume(clock, reads)
            self._chunk_ids = itertools.count(newest_chunk(reads.connection()) + 1)
            self._writer = Writer(
                lambda: connect(self._file, self._durability), lambda error: note_damage(self._file, error)
            )
            self._writer.start()
            undone.pop_all()
        super().__init__(reads, self._writer, clock)
        self.waiting, self._is_closed = self._writer.waiting, False
        tables = reads.connection, self._writer, clock
        self.consumed, self.members_read = ConsumedTables(*tables), ConsumedMembers(*tables)
        self.tally, self.outbox, self.kept = SeriesTable(*tables), OutboxRows(*tables), KeptTraces(*tables)
        if is_new:
            self.keep_time()
        self.deletions.load()
        self._decided.remember(self.reads.scan, "SELECT trace_id FROM traces INDEXED BY traces_by_id")
        self._responses.remember(self.reads.scan, "SELECT digest FROM responses")

    def _resume(self, clock: StoreClock, reads: StoreReader) -> bool:
        try:
            return clock.resume(reads.connection())
        except sqlite3.DatabaseError as error:
            if not note_damage(self._file, error):
                raise
            return True

    # -- spans ---------------------------------------------------------------------------------------------------

    def size_bytes(self) -> int:
        self._size = self.reads.used_bytes()
        return self._size

    def next_chunk_id(self) -> int:
        return next(self._chunk_ids)

    def append(
        self, chunks: Sequence[Chunk], endings: Sequence[str] = (), read: Sequence[Consumed] = ()
    ) -> Future[None]:
        """Store chunks, ended sessions and log positions.

        The future is done after commit. Raises :class:`StoreFullError`.
        """
        if self._size >= self.max_bytes and self.size_bytes() >= self.max_bytes:
            raise StoreFullError(self._size, self.max_bytes)
        return self._writer.submit_item(self._append, (chunks, endings, read))

    def _append(
        self,
        connection: sqlite3.Connection,
        appended: Sequence[tuple[Sequence[Chunk], Sequence[str], Sequence[Consumed]]],
    ) -> None:
        new = [chunk for some, _, _ in appended for chunk in some]
        self._size += add_chunks(connection, new)
        insert(connection, "endings", [(id_,) for _, ended, _ in appended for id_ in ended], verb="INSERT OR IGNORE")
        for _, _, read in appended:
            write_consumed(connection, read)

    @written
    def discard(self, connection: sqlite3.Connection, ids: Sequence[int]) -> None:
        keep_newest(connection)
        connection.executemany("DELETE FROM chunks WHERE id = ?", [(id_,) for id_ in ids])

    # -- decisions -----------------------------------------------------------------------------------------------

    def decided(self, trace_ids: Iterable[bytes]) -> dict[bytes, Decided]:
        asked = [*trace_ids]
        perhaps = [trace_id for trace_id in asked if trace_id in self._decided]
        known = self.reads.decided(perhaps) if perhaps else {}
        return known | self.deletions.decided(asked)

    def commit(self, changes: WriteSet) -> Future[list[ResultRow]]:
        """Apply a decision atomically. The future holds the new results with ``seq``."""
        perhaps_known = [row.trace_id for row in changes.traces if row.trace_id in self._decided]
        self._decided.add(row.trace_id for row in changes.traces)
        if changes.strangers:
            self._decided.add(changes.strangers)
        self._responses.add(row.digest for row in changes.responses)

        def write(connection: sqlite3.Connection) -> list[ResultRow]:
            spared = self.deletions.spared(connection, changes)
            return apply(connection, spared, self.clock.now(), perhaps_known)

        return self._writer.submit(write)

    @written
    def forget_endings(self, connection: sqlite3.Connection, session_ids: Sequence[str]) -> None:
        connection.executemany("DELETE FROM endings WHERE session_id = ?", [(id_,) for id_ in session_ids])

    # -- upkeep --------------------------------------------------------------------------------------------------

    def keep_time(self) -> Future[None]:
        return self.put(KEY, self.clock.kept())

    forget = written(retention.forget)

    def checkpoint(self) -> None:
        """Checkpoint the write-ahead log as far as readers allow. Blocks."""
        with closing(connect(self._file, self._durability)) as connection:
            connection.execute("PRAGMA wal_checkpoint(PASSIVE)")

    # -- whether it is well --------------------------------------------------------------------------------------

    @property
    def failing(self) -> str:
        """The last transaction's error, or empty."""
        return self._writer.failing

    def close(self) -> None:
        """Commit queued work and unlock the directory. Idempotent."""
        if self._is_closed:
            return
        self._is_closed = True
        self._decided.stop()
        self._responses.stop()
        self.keep_time()
        self._writer.close()
        self.reads.close()
        self._directory.close()
