"""Verdicts that judges gave, under the hash of their question: a restart pays for none of them twice."""

from __future__ import annotations

import sqlite3

from pandaeval_collector.store.table import StoreTable, written


class Verdicts(StoreTable):
    """The verdicts of one store."""

    def recall(self, key: str) -> bytes | None:
        """Return the verdict that was kept under ``key``; ``None`` where there is none."""
        row = self._row("SELECT body FROM verdicts WHERE key = ?", key)
        return None if row is None else bytes(row[0])

    @written
    def keep(self, connection: sqlite3.Connection, key: str, body: bytes) -> None:
        """Store a verdict under the hash of its question."""
        connection.execute("INSERT OR REPLACE INTO verdicts VALUES (?, ?, ?)", (key, self._clock.calendar(), body))
