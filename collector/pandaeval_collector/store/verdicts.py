"""Stored judge verdicts by question hash, which avoid repeated costs."""

from __future__ import annotations

import sqlite3

from pandaeval_collector.store.table import StoreTable, written


class Verdicts(StoreTable):
    def recall(self, key: str) -> bytes | None:
        row = self._row("SELECT body FROM verdicts WHERE key = ?", key)
        return None if row is None else bytes(row[0])

    @written
    def keep(self, connection: sqlite3.Connection, key: str, body: bytes) -> None:
        connection.execute("INSERT OR REPLACE INTO verdicts VALUES (?, ?, ?)", (key, self._clock.calendar(), body))
