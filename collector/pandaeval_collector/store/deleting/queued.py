"""Removes queued exports of deleted traces."""

from __future__ import annotations

import re
import sqlite3
import struct
from collections.abc import Iterator, Sequence
from itertools import chain, groupby
from typing import Any

import zstandard

from pandaeval_collector.store.deleting.hashes import Gone, hashed
from pandaeval_collector.store.deleting.selecting import KEYS
from pandaeval_collector.store.outbox import batch_items, outbox_batches

BATCHES = 20
"""Rows of the outbox read at a time."""
_ID = re.compile(rb"(?s)(?=[\x0a\x4a]\x10(.{16}))")
"""Trace IDs of an encoded span, log record or member: a field of 16 bytes."""
_HEX = re.compile(rb"(?<![0-9a-f])[0-9a-f]{32}(?![0-9a-f])")
_TEXT = rb"\x12[\x80-\xff]*[\x00-\x7f]\x0a([\x80-\xff]*[\x00-\x7f])"
"""The bytes between the key of an attribute and its text; the group is the length of the text."""


def rows_after(connection: sqlite3.Connection, seq: int) -> list[Any]:
    query = "SELECT seq, signal, created_at, items, body FROM outbox WHERE seq > ? ORDER BY seq LIMIT ?"
    return connection.execute(query, (seq, BATCHES)).fetchall()


def items_of(items: int, packed: bytes) -> list[bytes]:
    try:
        return batch_items(items, packed)
    except (zstandard.ZstdError, struct.error):
        return [b""] * items


def concerns(item: bytes, gone: Gone | set[str], session: str = "") -> bool:
    """Return whether an item is about a trace in ``gone``, or the session with the hash ``session``."""
    ids = chain((found[1].hex() for found in _ID.finditer(item)), (found[0].decode() for found in _HEX.finditer(item)))
    return any(id_ in gone for id_ in ids) or bool(session and session in map(hashed, _sessions(item)))


def scrub(connection: sqlite3.Connection, row: Sequence[Any], gone: Gone, session: str) -> int:
    """Remove items about deleted data from a row. Returns their number."""
    last, signal, created_at, items, packed = row
    found = items_of(items, packed)
    goes = [concerns(item, gone, session) for item in found]
    if not any(goes):
        return 0
    connection.execute("DELETE FROM outbox WHERE seq = ?", (last,))
    seq = last - items
    for is_gone, run in groupby(zip(found, goes, strict=True), lambda pair: pair[1]):
        same = [item for item, _ in run]
        if not is_gone:
            _put_back(connection, signal, created_at, same, seq)
        seq += len(same)
    return sum(goes)


def _put_back(connection: sqlite3.Connection, signal: str, created_at: float, items: list[bytes], seq: int) -> None:
    for batch in outbox_batches(signal, items):
        seq += batch.items
        connection.execute(
            "INSERT INTO outbox (seq, signal, created_at, body, size, items) VALUES (?, ?, ?, ?, ?, ?)",
            (seq, signal, created_at, batch.packed, len(batch.packed), batch.items),
        )


def _sessions(item: bytes) -> Iterator[str]:
    for key in KEYS["session"]:
        for found in re.finditer(re.escape(key) + _TEXT, item):
            size = sum((byte & 0x7F) << 7 * at for at, byte in enumerate(found[1]))
            yield item[found.end() : found.end() + size].decode(errors="replace")
