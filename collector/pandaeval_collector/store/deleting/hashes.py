"""Hashes of deleted ids, kept until the retention ends."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterable

from pandaeval_collector.store.clock import StoreClock
from pandaeval_collector.store.deleting.meta import after, beginning_with

_GONE = "gone:"
"""Key prefix of hashes in the table ``meta``. The value is the time of the deletion."""


def hashed(id_: str) -> str:
    """Return the hash of an id or a selector's value."""
    return hashlib.blake2b(id_.encode(errors="surrogatepass"), digest_size=16).hexdigest()


class Gone:
    """The deleted ids of a store, in the writing process only."""

    def __init__(self, clock: StoreClock) -> None:
        self._clock = clock
        self._hashes: set[str] = set()

    def __contains__(self, id_: str) -> bool:
        return hashed(id_) in self._hashes

    def __len__(self) -> int:
        return len(self._hashes)

    def load(self, connection: sqlite3.Connection) -> None:
        self._hashes.update(key.removeprefix(_GONE) for key, _ in beginning_with(connection, _GONE))

    def add(self, connection: sqlite3.Connection, ids: Iterable[str]) -> None:
        hashes = {hashed(id_) for id_ in ids}
        now = str(self._clock.calendar())
        connection.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", [(_GONE + each, now) for each in hashes])
        self._hashes |= hashes


def forget(connection: sqlite3.Connection, before: float) -> None:
    """Delete hashes from before a time of the store's calendar."""
    connection.execute(
        "DELETE FROM meta WHERE key >= ? AND key < ? AND CAST(value AS REAL) < ?", (_GONE, after(_GONE), before)
    )
