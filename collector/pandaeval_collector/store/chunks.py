"""Chunks, the raw spans and log records of traces, kept until their trace is decided and for the late window after
that: compressed where that pays, each with a checksum."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Collection, Sequence
from typing import Any

import zstandard

from pandaeval_collector.store import numbers
from pandaeval_collector.store.checksums import row_sum
from pandaeval_collector.store.rows import Chunk
from pandaeval_collector.store.table import insert

_COMPRESS_FROM = 4096
_LEVEL = -1  # a quarter less CPU time than level 1 for an eighth more bytes, on real agent traces


def pack(contents: Sequence[bytes]) -> list[tuple[bool, bytes]]:
    """Returns, for each of ``contents``, whether it was compressed, and the bytes to store. Safe on any thread."""
    large: list[Any] = [data for data in contents if len(data) > _COMPRESS_FROM]
    # All in one call, so that the thread releases the interpreter lock once: see :mod:`bulk`.
    packed = iter(_own.compressor.multi_compress_to_buffer(large) if large else ())
    return [(True, next(packed).tobytes()) if len(data) > _COMPRESS_FROM else (False, data) for data in contents]


def unpack(packed: int, data: bytes) -> bytes:
    """Returns one of the contents that :func:`pack` was given. Raises ``zstandard.ZstdError`` if it was damaged."""
    return decompress(data) if packed else data


def compress(data: bytes) -> bytes:
    """Compresses ``data`` of any size. Safe on any thread."""
    return _own.compressor.compress(data)


def decompress(data: bytes) -> bytes:
    """Decompresses ``data``. Raises ``zstandard.ZstdError`` if it was damaged. Safe on any thread."""
    return _own.decompressor.decompress(data)


class _Zstd(threading.local):
    """A compressor and a decompressor for each thread: neither may be used by two threads at a time."""

    def __init__(self) -> None:
        # With a checksum: damage inside of a row is none that SQLite would see.
        self.compressor = zstandard.ZstdCompressor(level=_LEVEL, write_checksum=True)
        self.decompressor = zstandard.ZstdDecompressor()


_own = _Zstd()


Part = tuple[bool, bytes]
"""A request as it came: whether it holds logs, and its bytes."""


CHUNK = "logs, packed, id, trace_id, items, start_ns, session, closes, data, checksum"
"""The columns of a chunk that :func:`chunk_content` reads. The checksum is of all others, the id among them: a row in
the place of another one is found, too."""


class DamagedChunkError(zstandard.ZstdError):
    """A stored chunk is not as it was stored. Callers treat it like compressed bytes that zstd finds damaged."""


def chunk_content(row: Sequence[Any]) -> bytes:
    """Returns the uncompressed content of a row of :data:`CHUNK`. Raises :class:`DamagedChunkError`."""
    *fields, data, checksum = row
    if type(data) is not bytes or checksum != row_sum(fields, data):
        raise DamagedChunkError(f"chunk {row[2]} of the store was damaged on disk: its checksum differs")
    return unpack(row[1], data)


def chunk_contents(reader: sqlite3.Connection, ids: Collection[int]) -> dict[int, tuple[bool, bytes]]:
    """Reads ``(is_logs, data)`` by chunk id. Raises ``LookupError`` when one of the chunks was deleted and
    :class:`DamagedChunkError` when one was damaged, so that no caller takes a part of a trace for the whole."""
    found: dict[int, tuple[bool, bytes]] = {}
    for marks, group in numbers.batched(ids):
        # All at once: a statement that an error leaves unfinished would show this connection the past from then on.
        rows = reader.execute(f"SELECT {CHUNK} FROM chunks WHERE id IN ({marks})", group).fetchall()  # noqa: S608
        found.update((row[2], (bool(row[0]), chunk_content(row))) for row in rows)
    if len(found) < len(set(ids)):
        raise LookupError(f"{len(set(ids)) - len(found)} of {len(set(ids))} chunks are gone")
    return found


class StoreFullError(RuntimeError):
    """The disk budget (``store.max_bytes``) is used up: the store refuses new spans rather than drop acknowledged
    ones."""


def add_chunks(connection: sqlite3.Connection, chunks: Sequence[Chunk]) -> int:
    """Inserts chunks; returns the bytes that they take. They are packed here and not by the callers: an event loop is
    too dear to compress on."""
    rows = []
    for chunk, (packed, data) in zip(chunks, pack([chunk.data for chunk in chunks]), strict=True):
        logs, id_, trace_id, items, start_ns = int(chunk.logs), chunk.id, chunk.trace_id, chunk.items, chunk.start_ns
        session, closes = chunk.session, int(chunk.closes)
        checksum = row_sum([logs, int(packed), id_, trace_id, items, start_ns, session, closes], data)
        size = len(chunk.data)
        rows.append((id_, trace_id, logs, items, start_ns, size, packed, data, session, closes, checksum))
    insert(connection, "chunks", rows)
    return sum(len(row[7]) for row in rows)
