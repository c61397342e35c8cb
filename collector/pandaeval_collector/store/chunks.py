"""Raw spans and log records until the late window ends, then compressed for each agent trace.

Format: per request a flag (1: logs), a four-byte length, and the request.
"""

from __future__ import annotations

import logging
import sqlite3
import struct
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import orjson
import zstandard

from pandaeval_collector.store import numbers
from pandaeval_collector.store.rows import Chunk, row_sum
from pandaeval_collector.store.table import StoreTable, insert, written

_log = logging.getLogger(__name__)
_HEAD = struct.Struct("<BI")
_KEPT_LEVEL = 3
"""At this level, the similar spans of a trace shrink to an eighth, in twice the time of the fastest level."""
_READ_BYTES = 8 << 20
_NEWEST = "newest_chunk"
_COMPRESS_FROM = 4096
_LEVEL = -1  # a quarter less CPU time than level 1 for an eighth more bytes, on real agent traces
Part = tuple[bool, bytes]
"""A received request: whether it has logs, and its bytes."""


CHUNK = "logs, packed, id, trace_id, items, start_ns, session, closes, data, checksum"
"""Columns read by :func:`chunk_content`. The checksum covers all others and the id, so swapped rows are detected."""


def pack(contents: Sequence[bytes]) -> list[tuple[bool, bytes]]:
    """Return (is compressed, bytes) for each of ``contents``. Any thread."""
    large: list[Any] = [data for data in contents if len(data) > _COMPRESS_FROM]
    # All in one call, so that the thread releases the interpreter lock once: see :mod:`bulk`.
    packed = iter(_own.compressor.multi_compress_to_buffer(large) if large else ())
    return [(True, next(packed).tobytes()) if len(data) > _COMPRESS_FROM else (False, data) for data in contents]


def compress(data: bytes) -> bytes:
    return _own.compressor.compress(data)


def decompress(data: bytes) -> bytes:
    """Decompress ``data``. Any thread. Raises ``zstandard.ZstdError`` if it is damaged."""
    return _own.decompressor.decompress(data)


class _Zstd(threading.local):
    def __init__(self) -> None:
        # With a checksum, because SQLite does not notice damage inside a row.
        self.compressor = zstandard.ZstdCompressor(level=_LEVEL, write_checksum=True)
        self.decompressor = zstandard.ZstdDecompressor()


_own = _Zstd()


class DamagedChunkError(zstandard.ZstdError):
    """The checksum of a stored chunk is wrong."""


def chunk_content(row: Sequence[Any]) -> bytes:
    """Return the uncompressed content of a row of :data:`CHUNK`. Raises :class:`DamagedChunkError`."""
    *fields, data, checksum = row
    if type(data) is not bytes or checksum != row_sum(fields, data):
        raise DamagedChunkError(f"chunk {row[2]} of the store was damaged on disk: its checksum differs")
    return decompress(data) if row[1] else data


def chunk_contents(reader: sqlite3.Connection, ids: Collection[int]) -> dict[int, tuple[bool, bytes]]:
    """Read ``(is_logs, data)`` by id. Raises ``LookupError`` or :class:`DamagedChunkError`."""
    found: dict[int, tuple[bool, bytes]] = {}
    for marks, group in numbers.batched(ids):
        # All at once: after an error, an unfinished statement would keep this connection in an old snapshot.
        rows = reader.execute(f"SELECT {CHUNK} FROM chunks WHERE id IN ({marks})", group).fetchall()  # noqa: S608
        found.update((row[2], (bool(row[0]), chunk_content(row))) for row in rows)
    if len(found) < len(set(ids)):
        raise LookupError(f"{len(set(ids)) - len(found)} of {len(set(ids))} chunks are gone")
    return found


class StoreFullError(RuntimeError):
    """The disk budget (``store.max_bytes``) is used up, so the store refuses new spans."""

    CURE = "raise it, or shorten late.window or store.retention"

    def __init__(self, used: int, most: int) -> None:
        size, limit = (f"{count / 2**20:.1f} MiB" for count in (used, most))
        self.cause = f"the store holds {size}, and store.max_bytes is {limit}"
        super().__init__(f"{self.cause}: {self.CURE}")


def add_chunks(connection: sqlite3.Connection, chunks: Sequence[Chunk]) -> int:
    """Insert chunks, compressed on the writer's thread; return their size in bytes."""
    rows, size = [], 0
    for chunk, (packed, data) in zip(chunks, pack([chunk.data for chunk in chunks]), strict=True):
        about: list[object] = [int(chunk.logs), int(packed), chunk.id, chunk.trace_id, chunk.items, chunk.start_ns]
        about += [chunk.session, int(chunk.closes)]
        rows.append((*about, data, row_sum(about, data), len(chunk.data)))
        size += len(data)
    insert(connection, f"chunks ({CHUNK}, size)", rows)
    return size


def newest_chunk(connection: sqlite3.Connection) -> int:
    """Return the largest id of any chunk; ids are never reused."""
    (largest,) = connection.execute("SELECT coalesce(max(id), 0) FROM chunks").fetchone()
    kept = connection.execute("SELECT CAST(value AS INTEGER) FROM meta WHERE key = ?", (_NEWEST,)).fetchone()
    return int(largest) if kept is None else max(int(largest), int(kept[0]))


def keep_newest(connection: sqlite3.Connection) -> None:
    connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (_NEWEST, str(newest_chunk(connection))))


class KeptTraces(StoreTable):
    def keep(self, late_window_s: float, now: float, wanted: Collection[bytes] = (), limit: int = 200) -> int:
        """Compress chunks of up to ``limit`` traces, decided over ``late_window_s`` seconds before ``now``.

        ``now``: store calendar. ``wanted`` traces and traces with judge jobs wait. Deletes the chunks, also damaged
        chunks. Returns the number of traces. Blocks; not on the writer thread.
        """
        due = self._due(now - late_window_s, wanted, limit)
        packed: list[tuple[int, bytes, bytes | None]] = []
        for no, chunks in due:
            data = None
            try:
                found = chunk_contents(self._reader(), orjson.loads(chunks))
                data = packed_contents([found[id_] for id_ in sorted(found)])
            except (LookupError, zstandard.ZstdError) as error:
                _log.warning("the spans of a trace cannot be kept (%s)", error)
            packed.append((no, chunks, data))
        if packed:
            self._move(packed, now).result()
        return len(packed)

    def _due(self, before: float, wanted: Collection[bytes], limit: int) -> list[tuple[int, bytes]]:
        rows = self._rows(
            """SELECT traces.no, trace_id, chunks, size FROM traces JOIN listed ON listed.no = traces.no
               WHERE decided_at < ? AND size > 0 AND digest != '' AND NOT EXISTS
               (SELECT 1 FROM jobs WHERE jobs.trace = traces.no AND jobs.state IN ('due', 'leased'))
               ORDER BY decided_at LIMIT ?""",
            *(before, limit),
        )
        due: list[tuple[int, bytes]] = []
        total = 0
        for no, trace_id, chunks, size in rows:
            total += size
            if due and total > _READ_BYTES:
                break
            if trace_id not in wanted:
                due.append((no, chunks))
        return due

    @written
    def forget(
        self, connection: sqlite3.Connection, retention_s: float, max_bytes: int, now: float, limit: int = 500
    ) -> int:
        """Delete contents older than ``retention_s`` seconds, then the oldest above ``max_bytes``; at most ``limit``.

        Returns their number.
        """
        (held,) = connection.execute("SELECT total(size) FROM kept").fetchone()
        oldest = connection.execute("SELECT no, kept_at, size FROM kept ORDER BY no LIMIT ?", (limit,))
        old = []
        for no, kept_at, size in oldest.fetchall():
            if kept_at >= now - retention_s and held <= max_bytes:
                break
            held -= size
            old.append((no,))
        connection.executemany("DELETE FROM kept WHERE no = ?", old)
        return len(old)

    @written
    def _move(
        self, connection: sqlite3.Connection, packed: Sequence[tuple[int, bytes, bytes | None]], now: float
    ) -> None:
        keep_newest(connection)
        for no, chunks, data in packed:
            taken = connection.execute(
                "UPDATE traces SET chunks = '[]', known = x'', size = 0 WHERE no = ? AND chunks = ? AND size > 0",
                (no, chunks),
            ).rowcount
            if not taken:
                continue
            connection.executemany("DELETE FROM chunks WHERE id = ?", [(id_,) for id_ in orjson.loads(chunks)])
            if data is not None:
                connection.execute("INSERT OR REPLACE INTO kept VALUES (?, ?, ?, ?)", (no, now, len(data), data))


def contents(connection: sqlite3.Connection, trace_id: bytes) -> list[Part]:
    """Return the stored requests of a decided trace, oldest first.

    Raises ``zstandard.ZstdError`` if they are damaged.
    """
    no = numbers.of_traces(connection, [trace_id]).get(trace_id)
    kept = "SELECT data FROM kept WHERE no = ?"
    row = connection.execute(kept, (no,)).fetchone()
    if row is None:
        chunks = connection.execute("SELECT chunks FROM traces WHERE no = ?", (no,)).fetchone()
        try:
            found = chunk_contents(connection, [] if chunks is None else orjson.loads(chunks[0]))
        except LookupError:  # they were moved or deleted between the two reads
            row = connection.execute(kept, (no,)).fetchone()
        else:
            return [found[id_] for id_ in sorted(found)]
    return [] if row is None else unpacked(row[0])


def packed_contents(parts: Iterable[Part]) -> bytes:
    whole = b"".join(_HEAD.pack(logs, len(data)) + data for logs, data in parts)
    return zstandard.ZstdCompressor(level=_KEPT_LEVEL, write_checksum=True).compress(whole)


def unpacked(data: bytes) -> list[Part]:
    whole = zstandard.ZstdDecompressor().decompress(data)
    parts: list[Part] = []
    at = 0
    while at < len(whole):
        logs, size = _HEAD.unpack_from(whole, at)
        at += _HEAD.size
        parts.append((bool(logs), whole[at : at + size]))
        at += size
    return parts


@dataclass(frozen=True, slots=True)
class StoredTrace:
    """``parts``: requests, oldest first; empty if ``damage`` is set."""

    trace_id: bytes
    parts: list[Part]
    damage: str = ""


def count_traces(connection: sqlite3.Connection) -> int:
    held = "SELECT count(DISTINCT trace_id) FROM chunks"
    return int(connection.execute(f"SELECT ({held}) + (SELECT count(*) FROM kept)").fetchone()[0])  # noqa: S608


def stored_traces(connection: sqlite3.Connection, start: str = "") -> Iterator[StoredTrace]:
    """Yield the traces with stored spans from one snapshot, earliest first. ``start``: prefix of the hex id."""
    connection.execute("BEGIN")
    try:
        query = "SELECT no, trace_id FROM kept JOIN traces USING (no) WHERE hex(trace_id) LIKE ? ORDER BY no"
        for no, trace_id in connection.execute(query, (f"{start}%",)):
            (data,) = connection.execute("SELECT data FROM kept WHERE no = ?", (no,)).fetchone()
            yield _read(trace_id, unpacked, data)
        query = "SELECT trace_id FROM chunks WHERE hex(trace_id) LIKE ? GROUP BY trace_id ORDER BY min(start_ns)"
        for (trace_id,) in connection.execute(query, (f"{start}%",)):
            rows = connection.execute(f"SELECT {CHUNK} FROM chunks WHERE trace_id = ? ORDER BY id", (trace_id,))  # noqa: S608
            yield _read(trace_id, lambda rows: [(bool(row[0]), chunk_content(row)) for row in rows], rows.fetchall())
    finally:
        connection.rollback()


def _read(trace_id: bytes, parts: Callable[[Any], list[Part]], stored: Any) -> StoredTrace:
    try:
        return StoredTrace(trace_id, parts(stored))
    except (zstandard.ZstdError, struct.error, TypeError) as error:
        return StoredTrace(trace_id, [], str(error))
