"""Begins, continues and ends stored deletions."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from pandaeval_collector.base.runtime import failpoints
from pandaeval_collector.store.connection import FILE_NAME, connect
from pandaeval_collector.store.deleting import late
from pandaeval_collector.store.deleting.hashes import Gone
from pandaeval_collector.store.deleting.log import note
from pandaeval_collector.store.deleting.meta import beginning_with
from pandaeval_collector.store.deleting.stages import FIRST, PURGE, Record, advance
from pandaeval_collector.store.table import StoreTable, written
from pandaeval_otel.assembly import Decided

if TYPE_CHECKING:
    from pandaeval_collector.store.changes import WriteSet

_PENDING = "deletion:"
"""Key prefix of incomplete deletions in the table ``meta``."""
_TRIES, _PAUSE_S = 50, 0.1
"""Number of attempts to empty a busy write-ahead log, and the pause between them."""
_TOMBSTONE = Decided(1, frozenset(), (), 0, final=True)


class Deletions(StoreTable):
    def __init__(self, *parts: Any) -> None:
        super().__init__(*parts)
        self._gone = Gone(self._clock)

    def load(self) -> None:
        self._gone.load(self._reader())

    def pending(self) -> bool:
        return bool(beginning_with(self._reader(), _PENDING))

    @written
    def begin(self, connection: sqlite3.Connection, kind: str, value: str, by: str) -> None:
        if kind == "trace":
            self._gone.add(connection, [value])
        record = Record(kind=kind, value=value, by=by, stage=FIRST, at=0, counts={})
        _write(connection, f"{_PENDING}{time.time_ns()}", record)

    @written
    def step(self, connection: sqlite3.Connection) -> str:
        """Continue the oldest deletion. Returns the next stage, ``""`` after the last."""
        rows = beginning_with(connection, _PENDING)
        if not rows:
            return ""
        failpoints.reach("in_deletion")
        key, record = rows[0][0], _read(rows[0][1])
        if record["stage"] == PURGE:
            return PURGE
        advance(connection, self._gone, record)
        if record["stage"] == PURGE:
            note(connection, record["by"], record["kind"], record["value"], record["counts"])
            record = Record(stage=PURGE)
        _write(connection, key, record)
        return record["stage"]

    @written
    def purged(self, connection: sqlite3.Connection) -> None:
        rows = beginning_with(connection, _PENDING)
        done = [(key,) for key, value in rows if _read(value)["stage"] == PURGE]
        connection.executemany("DELETE FROM meta WHERE key = ?", done)

    def decided(self, trace_ids: Iterable[bytes]) -> dict[bytes, Decided]:
        if not self._gone:
            return {}
        return {id_: _TOMBSTONE for id_ in trace_ids if id_.hex() in self._gone}

    def spared(self, connection: sqlite3.Connection, changes: WriteSet) -> WriteSet:
        return late.spared(connection, changes, self._gone)


def complete(deletions: Deletions, folder: Path, is_over: Callable[[], bool]) -> bool:
    """Complete all deletions, with pauses.

    Blocks. Returns ``False`` if ``is_over``, or if a reader prevents the checkpoint.
    """
    while not is_over():
        began = time.monotonic()
        if not deletions.pending():
            return True
        if deletions.step().result() == PURGE:
            if not _empty_log(folder / FILE_NAME):
                return False
            deletions.purged().result()
        time.sleep(time.monotonic() - began)
    return False


def _empty_log(file: Path) -> bool:
    with closing(connect(file, "full")) as connection:
        for _ in range(_TRIES):
            if not connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]:
                return True
            time.sleep(_PAUSE_S)
    return False


def _read(value: str) -> Record:
    record: Record = orjson.loads(value)
    return record


def _write(connection: sqlite3.Connection, key: str, record: Record) -> None:
    connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, orjson.dumps(record).decode()))
