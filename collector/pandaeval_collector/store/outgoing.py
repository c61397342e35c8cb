"""What leaves the store: rows that wait to be sent, and series that are read by whoever scrapes."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import Future

from pandaeval_collector.store.changes import drop_unsent, forget_sent
from pandaeval_collector.store.part import Part
from pandaeval_collector.store.rows import OutboxRow, StoredSeries, stored_series


class Outgoing(Part):
    """The outbox of each signal, score series, and the label values that they may have."""

    def outbox_after(self, signal: str, seq: int, limit: int = 1000) -> list[OutboxRow]:
        """What waits to be sent of one signal, from behind a cursor, in order of commitment."""
        rows = self._reader().execute(
            "SELECT signal, body, seq FROM outbox WHERE signal = ? AND seq > ? ORDER BY seq LIMIT ?",
            (signal, seq, limit),
        )
        return [OutboxRow(*row) for row in rows]

    def series(self, reader: str) -> list[StoredSeries]:
        """All score series; ``reader`` is ``otlp`` or ``scrape``."""
        column = {"otlp": "zero_otlp", "scrape": "zero_scrape"}[reader]
        rows = self._reader().execute(
            f"""SELECT key, name, attributes, start_ns, count, total, buckets, exemplars, {column}
                FROM series ORDER BY name, key"""  # noqa: S608
        )
        return [stored_series(row) for row in rows]

    def show_zeros(self, reader: str, keys: Sequence[str], now: float) -> Future[None]:
        """Notes that a reader was shown these series as 0."""
        column = {"otlp": "zero_otlp", "scrape": "zero_scrape"}[reader]

        def work(connection: sqlite3.Connection) -> None:
            connection.executemany(
                f"UPDATE series SET {column} = ? WHERE key = ? AND {column} IS NULL",  # noqa: S608
                [(now, key) for key in keys],
            )

        return self._writer.submit(work)

    def labels(self) -> list[tuple[str, str]]:
        """The label values that were admitted so far."""
        return list(self._reader().execute("SELECT kind, value FROM labels"))

    def outbox_waiting(self, signal: str, seq: int, most: int = 100_000) -> int:
        """How many rows of one signal lie behind a cursor; counts no further than ``most``."""
        counted = self._reader().execute(
            "SELECT count(*) FROM (SELECT 1 FROM outbox WHERE signal = ? AND seq > ? LIMIT ?)", (signal, seq, most)
        )
        return int(counted.fetchone()[0])

    def outbox_bytes(self) -> int:
        """Bytes of all rows that are kept to be sent."""
        return int(self._reader().execute("SELECT coalesce(sum(size), 0) FROM outbox").fetchone()[0])

    def forget_sent(self, signal: str, seq: int, limit: int = 5000) -> Future[int]:
        """Drops what a cursor has passed, at most ``limit`` rows; the future holds how many went."""
        return self._writer.submit(lambda connection: forget_sent(connection, signal, seq, limit))

    def drop_unsent(self, before: float, excess_bytes: int, limit: int = 1000) -> Future[Counter[tuple[str, str]]]:
        """Drops the oldest rows that wait: those from before ``before`` (Unix seconds), then as many as it takes to
        free ``excess_bytes``; at most ``limit`` rows. The future holds how many went, by signal and reason
        (``too_old``, ``disk_share``)."""
        return self._writer.submit(lambda connection: drop_unsent(connection, before, excess_bytes, limit))
