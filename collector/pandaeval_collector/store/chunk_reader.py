"""Reads the contents of chunks by id: for the store itself, and for other processes that read the same file."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Collection, Iterator
from pathlib import Path

from pandaeval_collector.store import numbers
from pandaeval_collector.store.compression import unpack
from pandaeval_collector.store.connection import FILE_NAME, connect
from pandaeval_collector.store.damage import note_damage

Part = tuple[bool, bytes]
"""A request as it came: whether it holds logs, and its bytes."""


def chunk_contents(reader: sqlite3.Connection, ids: Collection[int]) -> dict[int, tuple[bool, bytes]]:
    """``(is_logs, data)`` by chunk id. Raises ``LookupError`` when one of the chunks was deleted, so that no caller
    takes a part of a trace for the whole."""
    found: dict[int, tuple[bool, bytes]] = {}
    for marks, group in numbers.batched(ids):
        rows = reader.execute(f"SELECT logs, packed, id, data FROM chunks WHERE id IN ({marks})", group)  # noqa: S608
        found.update((id_, (bool(logs), unpack(packed, data))) for logs, packed, id_, data in rows)
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
