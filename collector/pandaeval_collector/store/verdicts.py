"""Verdicts that judges gave, under the hash of what they were given for: a restart pays for none of them twice."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from concurrent.futures import Future

from pandaeval_collector.store.clock import StoreClock
from pandaeval_collector.store.writer import Writer


class Verdicts:
    """The verdicts of one store. Reading is safe from any thread, writing happens on the store's writer."""

    def __init__(self, writer: Writer, reader: Callable[[], sqlite3.Connection], clock: StoreClock) -> None:
        self._writer, self._reader, self._clock = writer, reader, clock

    def recall(self, key: str) -> bytes | None:
        """The verdict that was given before, as it was kept."""
        row = self._reader().execute("SELECT body FROM verdicts WHERE key = ?", (key,)).fetchone()
        return None if row is None else bytes(row[0])

    def keep(self, key: str, body: bytes) -> Future[None]:
        """Remembers a verdict under the hash of what it was given for."""

        def work(connection: sqlite3.Connection) -> None:
            connection.execute("INSERT OR REPLACE INTO verdicts VALUES (?, ?, ?)", (key, self._clock.calendar(), body))

        return self._writer.submit(work)


def forget(connection: sqlite3.Connection, before: float) -> None:
    """Deletes verdicts that were kept before a time of the store's calendar."""
    connection.execute("DELETE FROM verdicts WHERE created_at < ?", (before,))
