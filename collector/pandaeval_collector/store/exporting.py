"""Reads all spans that a store holds, trace by trace, beside a collector that may run on it: open ones, decided ones,
and those that are kept for lists."""

from __future__ import annotations

import sqlite3
import struct
from collections.abc import Iterator
from dataclasses import dataclass

import zstandard

from pandaeval_collector.store.chunk_reader import CHUNK, Part, chunk_content
from pandaeval_collector.store.kept import unpacked


@dataclass(frozen=True, slots=True)
class StoredTrace:
    """``parts``: its requests, oldest first; none where ``damage`` says why it cannot be read whole."""

    trace_id: bytes
    parts: list[Part]
    damage: str = ""


def count_traces(connection: sqlite3.Connection) -> int:
    """How many traces have spans."""
    held = "SELECT count(DISTINCT trace_id) FROM chunks"
    return int(connection.execute(f"SELECT ({held}) + (SELECT count(*) FROM kept)").fetchone()[0])  # noqa: S608


def stored_traces(connection: sqlite3.Connection) -> Iterator[StoredTrace]:
    """Each of them, earliest first as far as that is known, as the store is at the first read."""
    connection.execute("BEGIN")
    try:
        for no, trace_id in connection.execute(
            "SELECT kept.no, trace_id FROM kept JOIN traces USING (no) ORDER BY kept.no"
        ):
            yield _kept(connection, no, trace_id)
        for (trace_id,) in connection.execute("SELECT trace_id FROM chunks GROUP BY trace_id ORDER BY min(start_ns)"):
            yield _chunked(connection, trace_id)
    finally:
        connection.rollback()


def _kept(connection: sqlite3.Connection, no: int, trace_id: bytes) -> StoredTrace:
    (data,) = connection.execute("SELECT data FROM kept WHERE no = ?", (no,)).fetchone()
    try:
        return StoredTrace(trace_id, unpacked(data))
    except (zstandard.ZstdError, struct.error, TypeError) as error:
        return StoredTrace(trace_id, [], str(error))


def _chunked(connection: sqlite3.Connection, trace_id: bytes) -> StoredTrace:
    rows = connection.execute(f"SELECT {CHUNK} FROM chunks WHERE trace_id = ? ORDER BY id", (trace_id,))  # noqa: S608
    try:
        return StoredTrace(trace_id, [(bool(row[0]), chunk_content(row)) for row in rows])
    except (zstandard.ZstdError, TypeError) as error:
        return StoredTrace(trace_id, [], str(error))
