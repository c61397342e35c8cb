"""Items that wait to be sent, many in a row of the outbox: what results say of themselves is much alike, so that a
parcel takes a tenth of the room that its items take one by one, and is written, counted and deleted as one."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pandaeval_collector.store.packing import compress, decompress

_MOST_ITEMS = 512
_MOST_BYTES = 1 << 18
"""So much is opened at a time at least, whatever is wanted of it."""


@dataclass(slots=True)
class Parcel:
    """So many items of one ``signal`` (``logs`` or ``traces``), each an OTLP item encoded for good."""

    signal: str
    items: int
    packed: bytes


def parcels(signal: str, items: Sequence[bytes]) -> Iterator[Parcel]:
    """The items in their order, in as few parcels as they may fill."""
    first = size = 0
    for at, item in enumerate(items):
        size += len(item)
        if at > first and (at - first == _MOST_ITEMS or size > _MOST_BYTES):
            yield _parcel(signal, items[first:at])
            first, size = at, len(item)
    if items:
        yield _parcel(signal, items[first:])


def opened(items: int, packed: bytes) -> list[bytes]:
    """What is in a parcel. Raises ``zstandard.ZstdError`` or ``struct.error`` for one that was damaged."""
    data = decompress(packed)
    at = 4 * items
    found = []
    for size in struct.unpack_from(f"<{items}I", data):
        found.append(data[at : at + size])
        at += size
    return found


def _parcel(signal: str, items: Sequence[bytes]) -> Parcel:
    sizes = struct.pack(f"<{len(items)}I", *map(len, items))
    return Parcel(signal, len(items), compress(sizes + b"".join(items)))
