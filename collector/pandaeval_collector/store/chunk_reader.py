"""Compresses what is stored, reads stored chunks and compares each with its checksum: for the store itself, and for
other processes that read the same file."""

from __future__ import annotations

import contextlib
import sqlite3
import threading
import zlib
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

import zstandard

from pandaeval_collector.store import numbers
from pandaeval_collector.store.connection import FILE_NAME, connect
from pandaeval_collector.store.damage import note_damage

# Compresses contents that are stored, where that pays, and decompresses them.
_COMPRESS_FROM = 4096
_LEVEL = -1  # a quarter less CPU time than level 1 for an eighth more bytes, on real agent traces


def pack(contents: Sequence[bytes]) -> list[tuple[bool, bytes]]:
    """Returns, for each of ``contents``, whether it was compressed, and the bytes to store. Safe on any thread."""
    packed = iter(_all_compressed([data for data in contents if len(data) > _COMPRESS_FROM]))
    return [(True, next(packed)) if len(data) > _COMPRESS_FROM else (False, data) for data in contents]


def unpack(packed: int, data: bytes) -> bytes:
    """Returns one of the contents that :func:`pack` was given. Raises ``zstandard.ZstdError`` if it was damaged."""
    return decompress(data) if packed else data


def compress(data: bytes) -> bytes:
    """Compresses ``data`` of any size. Safe on any thread."""
    return _own.compressor.compress(data)


def decompress(data: bytes) -> bytes:
    """Decompresses ``data``. Raises ``zstandard.ZstdError`` if it was damaged. Safe on any thread."""
    return _own.decompressor.decompress(data)


def _all_compressed(contents: list[Any]) -> list[bytes]:
    """Compresses all in one call, so that the thread releases the interpreter lock once: see :mod:`bulk`."""
    if not contents:
        return []
    packed = _own.compressor.multi_compress_to_buffer(contents)
    return [packed[at].tobytes() for at in range(len(packed))]


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
"""The columns of a chunk that :func:`chunk_content` reads."""


class DamagedChunkError(zstandard.ZstdError):
    """A stored chunk is not as it was stored. Callers treat it like compressed bytes that zstd finds damaged."""


def chunk_checksum(fields: Sequence[object], data: bytes) -> int:
    """The checksum of a row: of its ``data`` and of all other :data:`CHUNK` columns, its id among them, so that a row
    in the place of another one is found, too."""
    return zlib.crc32(data, zlib.crc32(ascii(fields).encode()))


def chunk_content(row: Sequence[Any]) -> bytes:
    """Returns the uncompressed content of a row of :data:`CHUNK`. Raises :class:`DamagedChunkError`."""
    *fields, data, checksum = row
    if type(data) is not bytes or checksum != chunk_checksum(fields, data):
        raise DamagedChunkError(f"chunk {row[2]} of the store was damaged on disk: its checksum differs")
    return unpack(row[1], data)


def chunk_contents(reader: sqlite3.Connection, ids: Collection[int]) -> dict[int, tuple[bool, bytes]]:
    """Reads ``(is_logs, data)`` by chunk id. Raises ``LookupError`` when one of the chunks was deleted and
    :class:`DamagedChunkError` when one was damaged, so that no caller takes a part of a trace for the whole."""
    found: dict[int, tuple[bool, bytes]] = {}
    for marks, group in numbers.batched(ids):
        rows = reader.execute(f"SELECT {CHUNK} FROM chunks WHERE id IN ({marks})", group)  # noqa: S608
        found.update((row[2], (bool(row[0]), chunk_content(row))) for row in rows)
    if len(found) < len(set(ids)):
        raise LookupError(f"{len(set(ids)) - len(found)} of {len(set(ids))} chunks are gone")
    return found


class ChunkReader:
    """Reads the chunks of a store that another process has open for writing. A snapshot contains everything that was
    committed before it began. One thread."""

    def __init__(self, path: Path) -> None:
        """``path``: the data directory."""
        self._file = path / FILE_NAME
        self._reader = connect(self._file, "off", read_only=True)

    def chunks(self, ids: Collection[int]) -> dict[int, tuple[bool, bytes]]:
        """See :func:`chunk_contents`."""
        return chunk_contents(self._reader, ids)

    @contextlib.contextmanager
    def snapshot(self) -> Iterator[None]:
        """Inside the block, all reads see the store as it was at the first read, and cost less."""
        self._reader.rollback()  # of a snapshot that could not be ended
        self._reader.execute("BEGIN")
        try:
            yield
        except sqlite3.DatabaseError as error:
            note_damage(self._file, error)
            raise
        finally:
            self._reader.execute("COMMIT")

    def close(self) -> None:
        self._reader.close()
