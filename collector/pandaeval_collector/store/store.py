"""The store: acknowledged means committed, and a restart goes on where the last process stopped.

Writing happens on one thread (:mod:`writer`), reading on connections of the readers' own. Only the index of open
traces lives in memory; contents stay on disk until their trace is due.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from concurrent.futures import Future
from pathlib import Path

import orjson
import zstandard

from pandaeval_collector.store import numbers
from pandaeval_collector.store.changes import apply, drop_unsent, forget, forget_sent
from pandaeval_collector.store.connection import PAGE_BYTES, Durability, StoreBusyError, connect, create, open_directory
from pandaeval_collector.store.jobs import Jobs
from pandaeval_collector.store.rows import (
    Chunk,
    OutboxRow,
    ResultRow,
    SessionTraceRow,
    StoredSeries,
    WriteSet,
    decided,
    stored_series,
)
from pandaeval_collector.store.seen import Seen
from pandaeval_collector.store.writer import Writer
from pandaeval_otel.assembly import Decided

__all__ = ["Store", "StoreBusyError", "StoreFullError"]

_log = logging.getLogger(__name__)

_COMPRESS_FROM = 4096
_LEVEL = -1  # a quarter less CPU time than level 1 for an eighth more bytes, on real agent traces
_RESULT = "id, unit, metric, revision, body, counted, seq"


class StoreFullError(RuntimeError):
    """The disk budget (``store.max_bytes``) is used up; refusing is better than dropping what was acknowledged."""


class Store:
    """One data directory. ``durability``: ``full`` survives power cuts, ``normal`` process crashes (the last commits
    may be lost at a power cut), ``off`` nothing (for temporary stores)."""

    def __init__(self, path: Path, durability: Durability = "full", max_bytes: int = 10 << 30) -> None:
        self.path, self._durability, self._max_bytes = path, durability, max_bytes
        self._file, self._lock = open_directory(path)
        self.was_damaged = create(self._file, durability)
        self._writer = Writer(lambda: connect(self._file, durability))
        self._writer.start()
        self._readers = threading.local()
        self._open_readers: list[sqlite3.Connection] = []
        self.jobs = Jobs(self._writer, self._reader)
        self._chunk_ids = itertools.count(self._newest_chunk() + 1)
        self._packer = threading.local()
        self._size = self._measure()
        self._seen = Seen()
        self._closing = False
        self._remembering = threading.Thread(target=self._remember, name="pandaeval-seen", daemon=True)
        self._remembering.start()

    # -- spans in ------------------------------------------------------------------------------------------------

    def next_chunk_id(self) -> int:
        """An id for a chunk; ids grow in order of arrival."""
        return next(self._chunk_ids)

    def append(self, chunks: Sequence[Chunk], endings: Sequence[str] = ()) -> Future[None]:
        """Stores chunks, and the ids of sessions that an application ended with them; the future is done when they are
        committed. Raises :class:`StoreFullError` at once."""
        if self._size >= self._max_bytes:
            self._size = self._measure()
            if self._size >= self._max_bytes:
                raise StoreFullError(
                    f"the store holds {self._size >> 20} MiB, its budget store.max_bytes is {self._max_bytes >> 20} MiB"
                )

        def work(connection: sqlite3.Connection) -> None:
            # Packed here and not by the caller: an event loop is too dear to compress on.
            rows = [self._row(chunk) for chunk in chunks]
            self._size += sum(len(row[7]) for row in rows)
            connection.executemany("INSERT INTO chunks VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)
            connection.executemany("INSERT OR IGNORE INTO endings VALUES (?)", [(id_,) for id_ in endings])

        return self._writer.submit(work)

    def read_chunks(self, ids: Collection[int]) -> list[tuple[bool, bytes]]:
        """``(is_logs, data)`` of chunks, by id. Raises ``LookupError`` when one of them is gone: half a trace must not
        be taken for the whole."""
        found = self.chunks(ids)
        return [found[id_] for id_ in sorted(found)]

    def chunks(self, ids: Collection[int]) -> dict[int, tuple[bool, bytes]]:
        """The same, each under its id."""
        reader, unpack = self._reader(), self._unpack
        found: dict[int, tuple[bool, bytes]] = {}
        for marks, group in numbers.batched(ids):
            rows = reader.execute(f"SELECT logs, packed, id, data FROM chunks WHERE id IN ({marks})", group)  # noqa: S608
            found.update((id_, (bool(logs), unpack(packed, data))) for logs, packed, id_, data in rows)
        if len(found) < len(set(ids)):
            raise LookupError(f"{len(set(ids)) - len(found)} of {len(set(ids))} chunks are gone")
        return found

    def open_chunks(self) -> Iterator[Chunk]:
        """Chunks of traces that were not decided yet, in order of arrival: what a restart resumes from."""
        with self._scan() as reader:
            undecided = reader.execute(
                """WITH held AS MATERIALIZED (
                       SELECT value FROM traces, json_each(CAST(traces.chunks AS TEXT)) WHERE traces.size > 0)
                   SELECT id, trace_id, logs, items, start_ns, packed, data, session, closes FROM chunks
                   WHERE id NOT IN held ORDER BY id"""
            )
            for id_, trace_id, logs, items, start_ns, packed, data, session, closes in undecided:
                try:
                    content = self._unpack(packed, data)
                except zstandard.ZstdError:  # a start must not fail over it; the trace is given up when it is due
                    content = b""
                yield Chunk(id_, trace_id, bool(logs), items, start_ns, content, session, bool(closes))

    def discard(self, ids: Sequence[int]) -> Future[None]:
        """Drops chunks that brought nothing new to a decided trace."""

        def work(connection: sqlite3.Connection) -> None:
            connection.executemany("DELETE FROM chunks WHERE id = ?", [(id_,) for id_ in ids])

        return self._writer.submit(work)

    def traces_by_start(self) -> Iterator[tuple[bytes, list[int], int, int]]:
        """Every undecided trace with its chunk ids, bytes and items (copies counted), earliest start first (for files:
        the order on disk must not matter). Memory does not grow with their number."""
        with self._scan() as reader:
            rows = reader.execute(
                """SELECT trace_id, group_concat(id), sum(size), sum(items),
                          min(CASE logs WHEN 0 THEN start_ns END) AS start
                   FROM chunks GROUP BY trace_id ORDER BY start, trace_id"""
            )
            for trace_id, ids, size, items, _ in rows:
                yield trace_id, sorted(int(part) for part in ids.split(",")), size, items

    # -- decisions -----------------------------------------------------------------------------------------------

    def decided(self, trace_ids: Iterable[bytes]) -> dict[bytes, Decided]:
        """What is remembered of those of the given traces that were decided before."""
        found: dict[bytes, Decided] = {}
        reader = self._reader()
        perhaps = [trace_id for trace_id in trace_ids if trace_id in self._seen]
        among = numbers.blocks(reader) if perhaps else ""
        for marks, group in numbers.batched(perhaps):
            rows = reader.execute(
                f"""SELECT trace_id, revision, final, known, chunks, size FROM traces
                    WHERE {numbers.BY_ID.format(marks=marks)}""",  # noqa: S608
                (among, *group),
            )
            found.update((row[0], decided(row[1:])) for row in rows)
        return found

    def held(self, trace_id: bytes) -> tuple[str, tuple[int, ...]] | None:
        """The digest of a decided trace and the chunks that are left of it; ``None`` for one that is not decided."""
        reader = self._reader()
        number = numbers.of_traces(reader, [trace_id]).get(trace_id)
        row = reader.execute("SELECT digest, chunks FROM traces WHERE no = ?", (number,)).fetchone()
        return None if row is None else (str(row[0]), tuple(orjson.loads(row[1])))

    def commit(self, changes: WriteSet) -> Future[list[ResultRow]]:
        """Applies a decision whole or not at all. The future holds the results that are new, with their ``seq``."""
        perhaps_known = [row.trace_id for row in changes.traces if row.trace_id in self._seen]
        self._seen.add(row.trace_id for row in changes.traces)
        return self._writer.submit(lambda connection: apply(connection, changes, time.time(), perhaps_known))

    def newest_results(self, units: Collection[str]) -> dict[tuple[str, str], ResultRow]:
        """The result that stands for each (unit, metric) of the given units."""
        found: dict[tuple[str, str], ResultRow] = {}
        reader = self._reader()
        for marks, group in numbers.batched(numbers.of_units(reader, units)):
            rows = reader.execute(
                f"SELECT {_RESULT} FROM results WHERE about IN ({marks}) ORDER BY seq",  # noqa: S608
                group,
            )
            found.update(((row[1], row[2]), ResultRow(*row)) for row in rows)
        return found

    def results_after(self, seq: int, limit: int = 1000) -> list[ResultRow]:
        """Results in order of commitment, from behind a cursor."""
        rows = self._reader().execute(
            f"SELECT {_RESULT} FROM results WHERE seq > ? ORDER BY seq LIMIT ?",  # noqa: S608
            (seq, limit),
        )
        return [ResultRow(*row) for row in rows]

    def newest_seq(self) -> int:
        """The ``seq`` of the newest result; 0 when there is none."""
        return int(self._reader().execute("SELECT coalesce(max(seq), 0) FROM results").fetchone()[0])

    # -- sessions ------------------------------------------------------------------------------------------------

    def session_traces(self, session_id: str, newest: int = -1) -> list[SessionTraceRow]:
        """What the decided traces of a session left behind, in session order; of the ``newest`` so many, or of all."""
        rows = self._reader().execute(
            """SELECT trace_id, start_ns, end_ns, body, answer FROM members
               WHERE session = (SELECT no FROM sessions WHERE session_id = ?)
               ORDER BY start_ns DESC, trace_id DESC LIMIT ?""",
            (session_id, newest),
        )
        return [SessionTraceRow(trace_id, session_id, *row) for trace_id, *row in rows][::-1]

    def session_size(self, session_id: str) -> int:
        """How many decided traces a session has."""
        counted = self._reader().execute(
            "SELECT count(*) FROM members WHERE session = (SELECT no FROM sessions WHERE session_id = ?)", (session_id,)
        )
        return int(counted.fetchone()[0])

    def session_trace(self, trace_id: bytes) -> SessionTraceRow | None:
        """What one decided trace left behind for its session."""
        reader = self._reader()
        row = reader.execute(
            """SELECT trace_id, session_id, start_ns, end_ns, body, answer
               FROM members JOIN sessions ON sessions.no = session WHERE members.no = ?""",
            (numbers.of_traces(reader, [trace_id]).get(trace_id),),
        ).fetchone()
        return None if row is None else SessionTraceRow(*row)

    def session_of(self, trace_ids: Collection[bytes]) -> dict[bytes, str]:
        """The session that each trace is filed under."""
        reader = self._reader()
        found: dict[bytes, str] = {}
        for marks, group in numbers.batched(numbers.of_traces(reader, trace_ids).values()):
            found.update(
                reader.execute(
                    f"""SELECT trace_id, session_id FROM members JOIN sessions ON sessions.no = session
                        WHERE members.no IN ({marks})""",  # noqa: S608
                    group,
                )
            )
        return found

    def open_sessions(self) -> Iterator[str]:
        """Sessions that were not scored for good yet."""
        yield from (row[0] for row in self._reader().execute("SELECT session_id FROM sessions WHERE open = 1"))

    def endings(self) -> list[str]:
        """Sessions that an application ended and that are not scored for good yet."""
        return [row[0] for row in self._reader().execute("SELECT session_id FROM endings ORDER BY session_id")]

    def forget_endings(self, session_ids: Sequence[str]) -> Future[None]:
        """They are scored for good."""

        def work(connection: sqlite3.Connection) -> None:
            connection.executemany("DELETE FROM endings WHERE session_id = ?", [(id_,) for id_ in session_ids])

        return self._writer.submit(work)

    def session_is_open(self, session_id: str) -> bool | None:
        """Whether a session waits to be scored for good; ``None`` for one that is not known."""
        row = self._reader().execute("SELECT open FROM sessions WHERE session_id = ?", (session_id,)).fetchone()
        return None if row is None else bool(row[0])

    # -- cursors and small facts ---------------------------------------------------------------------------------

    def get(self, key: str) -> str | None:
        row = self._reader().execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return None if row is None else str(row[0])

    def put(self, key: str, value: str) -> Future[None]:
        def work(connection: sqlite3.Connection) -> None:
            connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))

        return self._writer.submit(work)

    # -- out -----------------------------------------------------------------------------------------------------

    def outbox_after(self, signal: str, seq: int, limit: int = 1000) -> list[OutboxRow]:
        """What waits to be sent of one signal, from behind a cursor, in order of commitment."""
        rows = self._reader().execute(
            "SELECT signal, body, seq FROM outbox WHERE signal = ? AND seq > ? ORDER BY seq LIMIT ?",
            (signal, seq, limit),
        )
        return [OutboxRow(*row) for row in rows]

    def series(self, reader: str) -> list[StoredSeries]:
        """All score series; ``reader`` is ``otlp`` or ``scrape``."""
        column = {"otlp": "zero_otlp", "scrape": "zero_scrape"}[reader]
        rows = self._reader().execute(
            f"""SELECT key, name, attributes, start_ns, count, total, buckets, exemplars, {column}
                FROM series ORDER BY name, key"""  # noqa: S608
        )
        return [stored_series(row) for row in rows]

    def show_zeros(self, reader: str, keys: Sequence[str], now: float) -> Future[None]:
        """Notes that a reader was shown these series as 0."""
        column = {"otlp": "zero_otlp", "scrape": "zero_scrape"}[reader]

        def work(connection: sqlite3.Connection) -> None:
            connection.executemany(
                f"UPDATE series SET {column} = ? WHERE key = ? AND {column} IS NULL",  # noqa: S608
                [(now, key) for key in keys],
            )

        return self._writer.submit(work)

    def labels(self) -> list[tuple[str, str]]:
        """The label values that were admitted so far."""
        return list(self._reader().execute("SELECT kind, value FROM labels"))

    def outbox_waiting(self, signal: str, seq: int, most: int = 100_000) -> int:
        """How many rows of one signal lie behind a cursor; counts no further than ``most``."""
        counted = self._reader().execute(
            "SELECT count(*) FROM (SELECT 1 FROM outbox WHERE signal = ? AND seq > ? LIMIT ?)", (signal, seq, most)
        )
        return int(counted.fetchone()[0])

    def outbox_bytes(self) -> int:
        """Bytes of all rows that are kept to be sent."""
        return int(self._reader().execute("SELECT coalesce(sum(size), 0) FROM outbox").fetchone()[0])

    def forget_sent(self, signal: str, seq: int, limit: int = 5000) -> Future[int]:
        """Drops what a cursor has passed, at most ``limit`` rows; the future holds how many went."""
        return self._writer.submit(lambda connection: forget_sent(connection, signal, seq, limit))

    def drop_unsent(self, before: float, excess_bytes: int, limit: int = 1000) -> Future[Counter[tuple[str, str]]]:
        """Drops the oldest rows that wait: those from before ``before`` (Unix seconds), then as many as it takes to
        free ``excess_bytes``; at most ``limit`` rows. The future holds how many went, by signal and reason
        (``too_old``, ``disk_share``)."""
        return self._writer.submit(lambda connection: drop_unsent(connection, before, excess_bytes, limit))

    # -- upkeep --------------------------------------------------------------------------------------------------

    def forget(
        self, late_window_s: float, retention_s: float, now: float, keep: Collection[bytes] = (), limit: int = 2000
    ) -> Future[int]:
        """Drops raw chunks of traces decided more than ``late_window_s`` seconds ago, ``keep`` excepted, and results,
        tombstones and closed sessions older than ``retention_s``; of each kind no more than ``limit``. The future
        holds how many went of the kind that had most; call again while it is ``limit``."""
        return self._writer.submit(lambda connection: forget(connection, now, late_window_s, retention_s, keep, limit))

    @property
    def max_bytes(self) -> int:
        """The disk budget."""
        return self._max_bytes

    def size_bytes(self) -> int:
        """Bytes in use on disk, free pages not counted."""
        self._size = self._measure()
        return self._size

    def waiting(self) -> int:
        """Writes that are queued."""
        return self._writer.waiting()

    def checkpoint(self) -> None:
        """Moves what the write-ahead log holds into the main file, as far as readers allow. Blocks; any thread."""
        connection = connect(self._file, self._durability)
        try:
            connection.execute("PRAGMA wal_checkpoint(PASSIVE)")
        finally:
            connection.close()

    def close(self) -> None:
        """Commits what is queued and lets go of the directory."""
        self._closing = True
        self._remembering.join()
        self._writer.close()
        for reader in self._open_readers:
            reader.close()
        self._open_readers.clear()
        self._lock.close()

    def _reader(self) -> sqlite3.Connection:
        reader: sqlite3.Connection | None = getattr(self._readers, "connection", None)
        if reader is None:
            reader = self._readers.connection = connect(self._file, self._durability, read_only=True)
            self._open_readers.append(reader)
        return reader

    @contextlib.contextmanager
    def snapshot(self) -> Iterator[None]:
        """What this thread reads meanwhile is the store as it was at its first read, and costs less: every read alone
        has to look what others changed since the one before."""
        reader = self._reader()
        reader.rollback()  # of a snapshot that could not be ended
        reader.execute("BEGIN")
        try:
            yield
        finally:
            reader.execute("COMMIT")

    @contextlib.contextmanager
    def _scan(self) -> Iterator[sqlite3.Connection]:
        """A connection for a long read. It goes on seeing the store as it was at the first row, and a thread's own
        reader would do so too while a read on it is under way: it must see what is committed meanwhile."""
        connection = connect(self._file, self._durability, read_only=True)
        try:
            yield connection
        finally:
            connection.close()

    def _row(self, chunk: Chunk) -> tuple[int, bytes, int, int, int, int, int, bytes, str, int]:
        packed = len(chunk.data) > _COMPRESS_FROM
        data = self._zstd()[0].compress(chunk.data) if packed else chunk.data
        size = len(chunk.data)
        head = (chunk.id, chunk.trace_id, chunk.logs, chunk.items, chunk.start_ns, size, packed, data)
        return (*head, chunk.session, chunk.closes)

    def _unpack(self, packed: int, data: bytes) -> bytes:
        return self._zstd()[1].decompress(data) if packed else data

    def _zstd(self) -> tuple[zstandard.ZstdCompressor, zstandard.ZstdDecompressor]:
        pair: tuple[zstandard.ZstdCompressor, zstandard.ZstdDecompressor] | None = getattr(self._packer, "pair", None)
        if pair is None:
            pair = self._packer.pair = (zstandard.ZstdCompressor(level=_LEVEL), zstandard.ZstdDecompressor())
        return pair

    def _remember(self) -> None:
        """Takes the decided traces of earlier lives into the filter: two seconds for a million, beside the work."""
        try:
            with self._scan() as reader:
                rows = reader.execute("SELECT trace_id FROM traces INDEXED BY traces_by_id")
                while (some := rows.fetchmany(1000)) and not self._closing:
                    self._seen.add(trace_id for (trace_id,) in some)
        except sqlite3.Error as error:  # then every new trace is looked up on disk: slower, and as right
            _log.warning("the ids of decided traces could not be read (%s)", error)
            return
        self._seen.complete = not self._closing

    def _newest_chunk(self) -> int:
        return int(self._reader().execute("SELECT coalesce(max(id), 0) FROM chunks").fetchone()[0])

    def _measure(self) -> int:
        reader = self._reader()
        pages = int(reader.execute("PRAGMA page_count").fetchone()[0])
        free = int(reader.execute("PRAGMA freelist_count").fetchone()[0])
        return (pages - free) * PAGE_BYTES
