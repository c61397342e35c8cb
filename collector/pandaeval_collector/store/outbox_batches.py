"""Batches of encoded items that wait in the outbox: one row of the table holds many items, compressed together.

Encoded results resemble each other, so a batch takes a tenth of the bytes of its items stored one by one; it is
written, counted and deleted as one row.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

from pandaeval_collector.store.chunk_reader import compress, decompress

_MOST_ITEMS = 512
_MOST_BYTES = 1 << 18
"""Most bytes of items in one batch, unless a single item is larger: a reader decompresses whole batches."""


@dataclass(slots=True)
class OutboxBatch:
    """One row of the outbox: ``items`` OTLP items of one ``signal`` (``logs`` or ``traces``), encoded as they will be
    sent. ``packed``: their lengths and bodies, compressed; :func:`batch_items` reads it."""

    signal: str
    items: int
    packed: bytes


def outbox_batches(signal: str, items: Sequence[bytes]) -> list[OutboxBatch]:
    """Puts the items, in their order, into as few batches as the limits allow."""
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
    """The items of a batch, in their order. Raises ``zstandard.ZstdError`` or ``struct.error`` if it was damaged."""
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
