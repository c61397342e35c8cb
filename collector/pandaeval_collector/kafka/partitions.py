"""Owned partitions: claims, and a ledger of finished traces with the successor's replay position.

Below offset ``settled``, every trace is finished or has no messages. ``replay`` is the earliest message of a trace that
crosses ``settled``. A successor reads from ``replay``, and ignores traces seen below ``settled``.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pandaeval_collector.base.telemetry import Telemetry
from pandaeval_collector.store import Consumed, Extent
from pandaeval_collector.store.consumed import ConsumedTables

if TYPE_CHECKING:
    from pandaeval_collector.kafka.protocols import Deliveries

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class PartitionClaim:
    """A partition's commit to Kafka.

    ``replay``: committed offset, -1 without a commit. ``settled``: all messages below this offset are settled.
    ``owner``: collector that committed. ``read``: settled traces may have messages up to this offset.
    """

    replay: int
    settled: int
    owner: str = ""
    read: int = 0

    @classmethod
    def of(cls, offset: int | None, metadata: str | None) -> PartitionClaim:
        """Read the committed offsets. A foreign commit settles everything before its offset."""
        if offset is None or offset < 0:
            return cls(-1, 0)
        owner, *offsets = (metadata or "").split(" ")
        settled, read = (int(each) if each.isdecimal() else 0 for each in (*offsets, "", "")[:2])
        return cls(offset, max(offset, settled), owner, read)

    @property
    def text(self) -> str:
        return f"{self.owner} {self.settled} {self.read}"


def taken_of(read: Consumed) -> list[bytes]:
    """Return IDs of a partition's traces that no other collector has decided."""
    return [trace_id for trace_id, extent in read.extents.items() if not extent.elsewhere]


class PartitionLedger:
    """The ledger of a partition. One thread at a time."""

    def __init__(self, read: Consumed, until: int = 0) -> None:
        """``read``: earlier state. ``until``: offset that the previous collector had read."""
        self._read, self._until = read, until
        self._changed: set[bytes] = set()
        self._told = read.next

    @property
    def next(self) -> int:
        return self._read.next

    @property
    def traces(self) -> list[bytes]:
        return taken_of(self._read)

    def takes(self, trace_id: bytes, offset: int) -> bool:
        """Record a trace's message. Returns ``False`` if another collector has decided the trace."""
        extent = self._extent(trace_id, offset)
        extent.elsewhere = extent.elsewhere or offset < self._read.settled_below
        return not extent.elsewhere

    def _extent(self, trace_id: bytes, offset: int) -> Extent:
        extent = self._read.extents.setdefault(trace_id, Extent(offset, offset))
        extent.first, extent.last = min(extent.first, offset), max(extent.last, offset)
        self._changed.add(trace_id)
        return extent

    def passed(self, offset: int) -> None:
        """Record that the message at an offset is done."""
        self._read.next = max(self._read.next, offset + 1)

    @property
    def has_news(self) -> bool:
        return bool(self._changed) or self._told != self._read.next

    def news(self) -> Consumed:
        """Return the changes since the last call, for the store."""
        extents = {trace_id: replace(self._read.extents[trace_id]) for trace_id in self._changed}
        self._changed.clear()
        self._told = self._read.next
        return Consumed(self._read.partition, self._read.next, self._read.settled_below, extents)

    def mark(self, is_done: Callable[[bytes], bool]) -> PartitionClaim | None:
        """Return the current claim, or ``None`` until the previous collector's range is re-read.

        ``is_done``: whether a trace is finished.
        """
        if self._read.next < max(self._read.settled_below, self._until):
            return None
        settled = self._read.next
        for trace_id, extent in self._read.extents.items():
            if extent.first < settled and not extent.elsewhere and not is_done(trace_id):
                settled = extent.first
        settled = self._read.settled_below = max(settled, self._read.settled_below)
        across = [settled, *(extent.first for extent in self._read.extents.values() if extent.last >= settled)]
        return PartitionClaim(min(across), settled, read=self._read.next)

    def forget(self, before: int) -> None:
        """Forget traces whose messages all precede ``replay`` of a :class:`PartitionClaim`."""
        extents = self._read.extents
        for trace_id in [trace_id for trace_id, extent in extents.items() if extent.last < before]:
            del extents[trace_id]
            self._changed.discard(trace_id)


class SessionLedger(PartitionLedger):
    """A ledger of sessions, by UTF-8 ID. Messages below ``settled`` are processed too."""

    def takes(self, trace_id: bytes, offset: int) -> bool:
        """Record a session's message. Returns whether the session must still be scored because of it."""
        extent = self._extent(trace_id, offset)
        extent.elsewhere = extent.last < self._read.settled_below
        return offset >= self._read.settled_below


@dataclass(slots=True)
class _Owned:
    """An owned partition. ``claim``: committed. ``end``: last known end. ``is_behind``: not yet read to its end."""

    ledger: PartitionLedger
    claim: PartitionClaim
    end: int
    is_behind: bool


class Partitions:
    """This collector's partitions. On the reader's thread; ``none_owned`` and ``caught_up`` on any."""

    def __init__(
        self,
        owner: str,
        consumed: ConsumedTables,
        deliveries: Deliveries,
        telemetry: Telemetry,
        ledger: Callable[[Consumed, int], PartitionLedger] = PartitionLedger,
    ) -> None:
        self._owner, self._consumed, self._deliveries, self._telemetry = owner, consumed, deliveries, telemetry
        self._ledger = ledger
        self._stored: dict[int, Consumed] = {}
        self._owned: dict[int, _Owned] = {}
        self._pending: tuple[dict[int, PartitionClaim], dict[str, int]] | None = None

    def load(self) -> None:
        self._telemetry.add("pandaeval.log.partitions", "released", len(self._owned))
        self._owned, self._pending = {}, None
        self._stored = self._consumed.load()

    @property
    def any_stored(self) -> bool:
        return bool(self._stored)

    @property
    def none_owned(self) -> bool:
        return not self._owned

    @property
    def owned(self) -> list[int]:
        return sorted(self._owned)

    @property
    def caught_up(self) -> bool:
        """Whether each partition was read to its end at take-over."""
        return not any(partition.is_behind for partition in list(self._owned.values()))

    @property
    def lag(self) -> int:
        return sum(max(0, partition.end - partition.ledger.next) for partition in list(self._owned.values()))

    def not_owned(self) -> list[int]:
        return [number for number, read in self._stored.items() if number not in self._owned and read.next >= 0]

    def stored_traces(self, partition: int) -> list[bytes]:
        if partition in self._owned:
            return self._owned[partition].ledger.traces
        read = self._stored.get(partition)
        return [] if read is None else taken_of(read)

    def at_end(self, number: int | None, offset: int | None) -> bool:
        """Record that a partition was stored up to its end. Returns whether it may be the current end."""
        partition = None if number is None else self._owned.get(number)
        if partition is None or offset is None:
            return True
        if offset < partition.end:
            return False
        partition.end, partition.is_behind = offset, False
        return True

    def ends(self, number: int, high: int) -> None:
        """Record an owned partition's end. Offsets of transactions may hold no message."""
        partition = self._owned[number]
        if partition.ledger.next < high != partition.end:
            partition.is_behind = True
        partition.end = high

    def news(self) -> list[Consumed]:
        return [partition.ledger.news() for partition in self._owned.values() if partition.ledger.has_news]

    def stored(self) -> None:
        for partition in self._owned.values():
            partition.is_behind &= partition.ledger.next < partition.end

    def snapshot(self) -> dict[int, PartitionLedger]:
        return {number: partition.ledger for number, partition in self._owned.items()}

    def take_over(self, partition: int, claim: PartitionClaim, low: int, high: int) -> int:
        """Begin to own a partition; return the offset to read from."""
        known = self._stored.get(partition)
        if known is not None and 0 <= known.next <= high and claim.owner == self._owner:
            self._begin(known, claim, low, high)
            return known.next
        begin = low if claim.replay < 0 or claim.replay > high else claim.replay
        settled, until = (0, 0) if begin != claim.replay else (claim.settled, min(claim.read, high))
        if known is not None:
            mine = {id_ for id_, extent in known.extents.items() if extent.first >= settled}
            self._consumed.unpark(mine).result()
            gone = self._consumed.give_up(known.extents.keys() - mine, time.time()).result()
            if gone:
                self._telemetry.add("pandaeval.jobs", "cancelled", gone, "elsewhere")
        read = Consumed(partition, begin, settled)
        self._consumed.release(partition).result()
        self._consumed.note([read]).result()
        self._stored[partition] = read
        self._begin(read, PartitionClaim(begin, settled, self._owner, until), low, high)
        return begin

    def release(self, partition: int, open_: Collection[bytes]) -> None:
        """Release a partition to another collector. ``open_``: its undecided traces."""
        ids = set(self.stored_traces(partition)) - set(open_)
        waiting = ids & self._consumed.unjudged()
        parked = self._consumed.park(waiting).result()
        if parked:
            self._telemetry.add("pandaeval.jobs", "parked", parked)
        self._consumed.release(partition, waiting).result()
        if self._owned.pop(partition, None) is not None:  # not owned by an earlier process
            self._telemetry.add("pandaeval.log.partitions", "released")
        if self._pending is not None:
            self._pending[0].pop(partition, None)
        self._stored.pop(partition, None)
        self._stored.update({n: read for n, read in self._consumed.load().items() if n == partition})

    def _begin(self, read: Consumed, claim: PartitionClaim, low: int, high: int) -> None:
        ledger = self._ledger(read, min(claim.read, high))
        self._owned[read.partition] = _Owned(ledger, claim, high, is_behind=read.next < high)
        if read.next < low:
            _log.error(
                "messages %d to %d of partition %d are gone: retention is too short", read.next, low - 1, read.partition
            )
            self._telemetry.add("pandaeval.log.messages", "lost", low - read.next)
        self._telemetry.add("pandaeval.log.partitions", "taken")

    def traces_to_mark(self) -> list[bytes] | None:
        """Return the traces whose state :meth:`mark` needs; ``None`` while an earlier mark waits for sending."""
        if self._pending is not None:
            return None
        return [trace_id for partition in self._owned.values() for trace_id in partition.ledger.traces]

    def mark(self, open_: Collection[bytes]) -> None:
        """Mark finished messages, for :meth:`settle` after all current results are sent."""
        undone = set(open_) | self._consumed.unjudged()
        marks = {}
        for number, partition in self._owned.items():
            mark = partition.ledger.mark(lambda trace_id: trace_id not in undone)
            if mark is not None:
                marks[number] = replace(mark, owner=self._owner)
        self._pending = marks, self._deliveries.newest()

    def settle(self) -> None:
        """Claim the marked messages, if their results are sent."""
        if self._pending is None or not self._deliveries.have_sent(self._pending[1]):
            return
        for number, mark in self._pending[0].items():
            partition = self._owned[number]
            if partition.claim != mark:
                partition.claim = mark
                partition.ledger.forget(mark.replay)
                self._consumed.note([partition.ledger.news()]).result()
                self._consumed.forget(number, mark.replay).result()
        self._pending = None

    def claims(self) -> dict[int, PartitionClaim]:
        return {number: partition.claim for number, partition in self._owned.items() if partition.claim.replay >= 0}
