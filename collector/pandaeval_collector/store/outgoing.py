"""What leaves the store: rows that wait to be sent, and series that are read by whoever scrapes."""

from __future__ import annotations

import sqlite3
import struct
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import Future

import zstandard

from pandaeval_collector.store.changes import drop_unsent, forget_sent
from pandaeval_collector.store.parcels import opened
from pandaeval_collector.store.part import Part
from pandaeval_collector.store.rows import OutboxRow, StoredSeries, stored_series


class DamagedError(RuntimeError):
    """What waits next to be sent cannot be read any more: ``items`` of them, ``seq`` the last."""

    def __init__(self, seq: int, items: int) -> None:
        super().__init__(f"{items} items of the outbox were damaged on disk")
        self.seq, self.items = seq, items


class Outgoing(Part):
    """The outbox of each signal, score series, and the label values that they may have."""

    def outbox_after(self, signal: str, seq: int, limit: int = 1000) -> list[OutboxRow]:
        """What waits to be sent of one signal, from behind a cursor, in order of commitment. Raises
        :class:`DamagedError` when the first of it cannot be read."""
        rows = self._reader().execute(
            "SELECT seq, items, body FROM outbox WHERE signal = ? AND seq > ? ORDER BY seq LIMIT ?",
            (signal, seq, limit),
        )
        found: list[OutboxRow] = []
        for last, count, packed in rows:
            try:
                items = [packed] if count is None else opened(count, packed)
            except (zstandard.ZstdError, struct.error) as error:
                if found:
                    break
                raise DamagedError(last, min(count, last - seq)) from error
            numbered = enumerate(items, last - len(items) + 1)
            found.extend(OutboxRow(signal, item, number) for number, item in numbered if number > seq)
            if len(found) >= limit:
                break
        return found[:limit]

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
        """How many items of one signal lie behind a cursor; counts no further than so many rows."""
        counted = self._reader().execute(
            """SELECT coalesce(sum(min(coalesce(items, 1), seq - ?2)), 0)
               FROM (SELECT seq, items FROM outbox WHERE signal = ?1 AND seq > ?2 LIMIT ?3)""",
            (signal, seq, most),
        )
        return int(counted.fetchone()[0])

    def outbox_bytes(self) -> int:
        """Bytes of all rows that are kept to be sent."""
        return int(self._reader().execute("SELECT coalesce(sum(size), 0) FROM outbox").fetchone()[0])

    def forget_sent(self, signal: str, seq: int, limit: int = 5000) -> Future[int]:
        """Drops what a cursor has passed, at most ``limit`` rows; the future holds how many went."""
        return self._writer.submit(lambda connection: forget_sent(connection, signal, seq, limit))

    def drop_unsent(
        self, before: float, excess_bytes: int, done: Mapping[str, int], limit: int = 1000
    ) -> Future[Counter[tuple[str, str]]]:
        """Drops the oldest rows that wait: those from before ``before`` (Unix seconds), then as many as it takes to
        free ``excess_bytes``; at most ``limit`` rows. ``done``: the cursor of each signal. The future holds how many
        items behind it went, by signal and reason (``too_old``, ``disk_share``); empty when no row did."""
        return self._writer.submit(lambda connection: drop_unsent(connection, before, excess_bytes, done, limit))
