"""The outbox of encoded items, in compressed batches."""

from __future__ import annotations

import itertools
import sqlite3
import struct
from collections import Counter
from collections.abc import Mapping, Sequence

import zstandard

from pandaeval_collector.store.chunks import compress, decompress
from pandaeval_collector.store.numbers import following
from pandaeval_collector.store.rows import OutboxBatch, OutboxRow
from pandaeval_collector.store.table import StoreTable, insert, written

READ_BYTES = 4 << 20
"""Bytes of unsent items read at a time; a single item can be larger."""
_MOST_ITEMS = 512
_MOST_BYTES = 1 << 18
"""Maximum bytes of a batch, because a reader decompresses whole batches. A single item can be larger."""


def outbox_batches(signal: str, items: Sequence[bytes]) -> list[OutboxBatch]:
    found: list[OutboxBatch] = []
    first = size = 0
    for at, item in enumerate(items):
        size += len(item)
        if at > first and (at - first == _MOST_ITEMS or size > _MOST_BYTES):
            found.append(_batch(signal, items[first:at]))
            first, size = at, len(item)
    if items:
        found.append(_batch(signal, items[first:]))
    return found


def batch_items(items: int, packed: bytes) -> list[bytes]:
    """Return a batch's items. Raises ``zstandard.ZstdError`` or ``struct.error`` if it is damaged."""
    data = decompress(packed)
    at = 4 * items
    found = []
    for size in struct.unpack_from(f"<{items}I", data):
        found.append(data[at : at + size])
        at += size
    return found


def _batch(signal: str, items: Sequence[bytes]) -> OutboxBatch:
    sizes = struct.pack(f"<{len(items)}I", *map(len, items))
    return OutboxBatch(signal, len(items), compress(sizes + b"".join(items)))


class DamagedError(RuntimeError):
    """The next ``items`` items, up to number ``seq``, are unreadable."""

    def __init__(self, seq: int, items: int) -> None:
        super().__init__(f"{items} items of the outbox were damaged on disk")
        self.seq, self.items = seq, items


def put(connection: sqlite3.Connection, batches: Sequence[OutboxBatch], now: float) -> None:
    """Number the items and insert the batches, under the number of their last item."""
    first = following(connection, "outbox")
    ends = itertools.accumulate((batch.items for batch in batches), initial=first - 1)
    next(ends)
    insert(
        connection,
        "outbox (seq, signal, created_at, body, size, items)",
        [
            (seq, each.signal, now, each.packed, len(each.packed), each.items)
            for seq, each in zip(ends, batches, strict=True)
        ],
    )


class OutboxRows(StoreTable):
    def after(self, signal: str, seq: int, limit: int = 1000) -> list[OutboxRow]:
        """Return at most ``limit`` items of a signal after a cursor, fewer if large. Raises :class:`DamagedError`."""
        rows = self._reader().execute(
            "SELECT seq, items, body FROM outbox WHERE signal = ? AND seq > ? ORDER BY seq LIMIT ?",
            (signal, seq, limit),
        )
        found: list[OutboxRow] = []
        size = 0
        for last, count, packed in rows:
            try:
                items = batch_items(count, packed)
            except (zstandard.ZstdError, struct.error) as error:
                if found:
                    break
                raise DamagedError(last, min(count, last - seq)) from error
            numbered = enumerate(items, last - len(items) + 1)
            found.extend(OutboxRow(signal, item, number) for number, item in numbered if number > seq)
            size += sum(map(len, items))
            if len(found) >= limit or size >= READ_BYTES:
                break
        rows.close()
        return found[:limit]

    def waiting(self, signal: str, seq: int, most: int = 100_000) -> int:
        """Count items of ``signal`` after a cursor, within ``most`` rows."""
        behind = "SELECT seq, items FROM outbox WHERE signal = ?1 AND seq > ?2 LIMIT ?3"
        query = f"SELECT coalesce(sum(min(items, seq - ?2)), 0) FROM ({behind})"  # noqa: S608
        return int(self._row(query, signal, seq, most)[0])

    def size(self) -> int:
        return int(self._row("SELECT coalesce(sum(size), 0) FROM outbox")[0])

    def newest(self, signal: str) -> int:
        """Return the newest item's number, 0 for none."""
        return int(self._row("SELECT coalesce(max(seq), 0) FROM outbox WHERE signal = ?", signal)[0])

    @written
    def forget_sent(self, connection: sqlite3.Connection, signal: str, seq: int, limit: int = 5000) -> int:
        """Delete at most ``limit`` sent rows; return their number."""
        old = "SELECT seq FROM outbox WHERE signal = ? AND seq <= ? ORDER BY seq LIMIT ?"
        return connection.execute(f"DELETE FROM outbox WHERE seq IN ({old})", (signal, seq, limit)).rowcount  # noqa: S608

    @written
    def drop_unsent(
        self,
        connection: sqlite3.Connection,
        before: float,
        excess_bytes: int,
        done: Mapping[str, int],
        limit: int = 1000,
    ) -> Counter[tuple[str, str]]:
        """Drop at most ``limit`` rows: older than ``before`` (running clock), then to free ``excess_bytes``.

        Returns unsent dropped items by signal and reason.
        """
        oldest = connection.execute(
            "SELECT seq, signal, created_at, size, items FROM outbox ORDER BY seq LIMIT ?", (limit,)
        )
        dropped: Counter[tuple[str, str]] = Counter()
        last = freed = 0
        for seq, signal, created_at, size, items in oldest:
            reason = "too_old" if created_at < before else "disk_share"
            if reason == "disk_share" and freed >= excess_bytes:
                break
            last, freed = seq, freed + size
            dropped[signal, reason] += min(items, max(0, seq - done.get(signal, 0)))
        connection.execute("DELETE FROM outbox WHERE seq <= ?", (last,))
        return dropped
