"""The partitions that this collector owns, what it says about them to the group, and the ledger of each: which of its
traces are done, and from where another collector would have to read again so that it sees every other one whole.

Two offsets say it. Every trace with a message below ``settled`` is either done, or has none of its messages there;
``replay`` is where the earliest message lies of a trace that reaches across ``settled``. Whoever takes the partition
over reads from ``replay``: each trace that it meets below ``settled`` is done, and is not taken again however late its
other messages come; all others begin at ``settled`` or behind it, so that it has them whole.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterable
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
    """What is committed to Kafka for a partition: the offset ``replay`` (-1: nothing was ever committed), the offset
    below which all is ``settled``, the collector that says so, and the offset to which the partition had been ``read``:
    what is settled may have messages up to there."""

    replay: int
    settled: int
    owner: str
    read: int = 0

    @classmethod
    def of(cls, offset: int | None, metadata: str | None) -> PartitionClaim:
        """Reads what was committed. A commit by anything but a collector settles all before its offset."""
        if offset is None or offset < 0:
            return cls(-1, 0, "")
        owner, *offsets = (metadata or "").split(" ")
        settled, read = (int(each) if each.isdecimal() else 0 for each in (*offsets, "", "")[:2])
        return cls(offset, max(offset, settled), owner, read)

    @property
    def text(self) -> str:
        """The metadata of the commit to Kafka."""
        return f"{self.owner} {self.settled} {self.read}"


@dataclass(frozen=True, slots=True)
class PartitionMark:
    """How much of a partition is done, and how much was read; offsets. ``replay`` is never behind ``settled``."""

    settled: int
    replay: int
    read: int


class PartitionLedger:
    """The ledger of one partition. One thread at a time."""

    def __init__(self, read: Consumed, until: int = 0) -> None:
        """``read``: what was read of the partition before, from which the ledger goes on. ``until``: the offset to
        which the collector before this one had read."""
        self._read, self._until = read, until
        self._changed: set[bytes] = set()
        self._told = read.next

    @property
    def next(self) -> int:
        """The offset of the message that is to be read next."""
        return self._read.next

    @property
    def traces(self) -> Iterable[bytes]:
        """The ids of the traces that were taken, as far as they are remembered."""
        return [trace_id for trace_id, extent in self._read.extents.items() if not extent.elsewhere]

    def takes(self, trace_id: bytes, offset: int) -> bool:
        """Notes a message about a trace. Returns whether it is to be taken: not if another collector has decided the
        trace."""
        extent = self._extent(trace_id, offset)
        extent.elsewhere = extent.elsewhere or offset < self._read.settled_below
        return not extent.elsewhere

    def _extent(self, trace_id: bytes, offset: int) -> Extent:
        extent = self._read.extents.setdefault(trace_id, Extent(offset, offset))
        extent.first, extent.last = min(extent.first, offset), max(extent.last, offset)
        self._changed.add(trace_id)
        return extent

    def passed(self, offset: int) -> None:
        """Notes that the message at an offset was dealt with."""
        self._read.next = max(self._read.next, offset + 1)

    @property
    def has_news(self) -> bool:
        """Whether anything has changed since the last :meth:`news`."""
        return bool(self._changed) or self._told != self._read.next

    def news(self) -> Consumed:
        """Returns what has changed since the last call, for the store."""
        extents = {trace_id: replace(self._read.extents[trace_id]) for trace_id in self._changed}
        self._changed.clear()
        self._told = self._read.next
        return Consumed(self._read.partition, self._read.next, self._read.settled_below, extents)

    def mark(self, is_done: Callable[[bytes], bool]) -> PartitionMark | None:
        """Returns how much is done now; ``settled`` never goes back. ``is_done``: whether nothing is left to do for a
        trace that was taken. ``None`` until all is read again that the collector before this one has read: its mark
        stands till then."""
        if self._read.next < max(self._read.settled_below, self._until):
            return None
        settled = self._read.next
        for trace_id, extent in self._read.extents.items():
            if extent.first < settled and not extent.elsewhere and not is_done(trace_id):
                settled = extent.first
        settled = self._read.settled_below = max(settled, self._read.settled_below)
        across = (extent.first for extent in self._read.extents.values() if extent.last >= settled)
        return PartitionMark(settled, min(settled, min(across, default=settled)), self._read.next)

    def forget(self, before: int) -> None:
        """Forgets the traces whose messages all lie before an offset, the ``replay`` of a :class:`PartitionMark`."""
        extents = self._read.extents
        for trace_id in [trace_id for trace_id, extent in extents.items() if extent.last < before]:
            del extents[trace_id]
            self._changed.discard(trace_id)


class SessionLedger(PartitionLedger):
    """The ledger of a partition whose units are sessions, by their ids as UTF-8. Unlike a trace, a session that was
    done may go on: its messages below ``settled`` are taken too, since later ones add to them."""

    def takes(self, trace_id: bytes, offset: int) -> bool:
        """Notes a message about a session. Returns whether the session is still to be scored because of it."""
        extent = self._extent(trace_id, offset)
        extent.elsewhere = extent.last < self._read.settled_below
        return offset >= self._read.settled_below


class Partitions:
    """The partitions that this collector owns. Used on the reader's thread; ``none_owned`` and ``caught_up`` on any."""

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
        self._ledgers: dict[int, PartitionLedger] = {}
        self._claims: dict[int, PartitionClaim] = {}
        self._ends: dict[int, int] = {}
        self._behind: set[int] = set()
        self._pending: tuple[dict[int, PartitionMark], dict[str, int]] | None = None

    def load(self) -> None:
        """Starts over from the store, without owning any partition."""
        self._telemetry.add("pandaeval.log.partitions", "released", len(self._ledgers))
        self._ledgers, self._claims, self._ends, self._pending = {}, {}, {}, None
        self._behind = set()
        self._stored = self._consumed.load()

    @property
    def any_stored(self) -> bool:
        """Whether the store has read any partition."""
        return bool(self._stored)

    @property
    def none_owned(self) -> bool:
        return not self._ledgers

    @property
    def owned(self) -> list[int]:
        return sorted(self._ledgers)

    @property
    def caught_up(self) -> bool:
        """Whether each partition was read to where it ended when this collector got it."""
        return not self._behind

    @property
    def lag(self) -> int:
        """The number of messages between what was read and the last known ends."""
        return sum(max(0, self._ends.get(number, 0) - each.next) for number, each in dict(self._ledgers).items())

    def not_owned(self) -> list[int]:
        """Returns partitions that the store has read and others own now."""
        return [number for number, read in self._stored.items() if number not in self._ledgers and read.next >= 0]

    def stored_traces(self, partition: int) -> list[bytes]:
        """Returns the ids of the traces that were read of a partition, owned or not."""
        if partition in self._ledgers:
            return list(self._ledgers[partition].traces)
        read = self._stored.get(partition)
        return [] if read is None else [id_ for id_, extent in read.extents.items() if not extent.elsewhere]

    def at_end(self, partition: int | None, offset: int | None) -> bool:
        """Notes that a partition was read to an offset, where it ended, and that everything before it is stored.
        Returns whether that may be its end now: not if it is known to go on, as where that was said before the process
        stood still."""
        if partition not in self._ledgers or offset is None:
            return True
        if offset < self._ends[partition]:
            return False
        self._ends[partition] = offset
        self._behind.discard(partition)
        return True

    def ends(self, partition: int, high: int) -> None:
        """Notes that a partition that is owned ends at an offset: it is behind until it was read to there. To an end
        that was reached before it may be no message: what transactions leave in the log is none."""
        if self._ledgers[partition].next < high != self._ends.get(partition):
            self._behind.add(partition)
        self._ends[partition] = high

    def news(self) -> list[Consumed]:
        """Returns what has changed in the ledgers, for the store."""
        return [ledger.news() for ledger in self._ledgers.values() if ledger.has_news]

    def stored(self) -> None:
        """Notes that all is stored that the ledgers hold."""
        self._behind -= {n for n in self._behind if self._ledgers[n].next >= self._ends[n]}

    def snapshot(self) -> dict[int, PartitionLedger]:
        """Returns the ledgers of the partitions that are owned now."""
        return dict(self._ledgers)

    def take_over(self, partition: int, claim: PartitionClaim, low: int, high: int) -> int:
        """Begins to own a partition; returns the offset to read from. ``low``, ``high``: where its log begins and
        ends."""
        known = self._stored.get(partition)
        if known is not None and 0 <= known.next <= high and claim.owner == self._owner:
            self._begin(known, claim, low, high)
            return known.next
        begin = low if claim.replay < 0 or claim.replay > high else claim.replay
        settled, until = (0, 0) if begin != claim.replay else (claim.settled, min(claim.read, high))
        if known is not None:
            mine = {id_ for id_, each in known.extents.items() if each.first >= settled}
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
        """Gives up a partition that another collector has now. ``open_``: its traces that were not decided."""
        ids = set(self.stored_traces(partition)) - set(open_)
        waiting = ids & self._consumed.unjudged()
        parked = self._consumed.park(waiting).result()
        if parked:
            self._telemetry.add("pandaeval.jobs", "parked", parked)
        self._consumed.release(partition, waiting).result()
        if partition in self._ledgers:  # and not one of an earlier process
            self._telemetry.add("pandaeval.log.partitions", "released")
        if self._pending is not None:
            self._pending[0].pop(partition, None)
        for held in (self._ledgers, self._claims, self._ends, self._stored):
            held.pop(partition, None)
        self._behind.discard(partition)
        self._stored.update({n: read for n, read in self._consumed.load().items() if n == partition})

    def _begin(self, read: Consumed, claim: PartitionClaim, low: int, high: int) -> None:
        self._ledgers[read.partition] = self._ledger(read, min(claim.read, high))
        self._claims[read.partition] = claim
        self._ends.pop(read.partition, None)
        self.ends(read.partition, high)
        if read.next < low:
            _log.error(
                "messages %d to %d of partition %d are gone: retention is too short", read.next, low - 1, read.partition
            )
            self._telemetry.add("pandaeval.log.messages", "lost", low - read.next)
        self._telemetry.add("pandaeval.log.partitions", "taken")

    def traces_to_mark(self) -> list[bytes] | None:
        """Returns the traces about which :meth:`mark` has to know whether they are open; ``None`` while an earlier mark
        waits for its results to be sent."""
        if self._pending is not None:
            return None
        return [trace_id for ledger in self._ledgers.values() for trace_id in ledger.traces]

    def mark(self, open_: Collection[bytes]) -> None:
        """Notes what is done. :meth:`settle` claims it when all results that there are now have been sent."""
        undone = set(open_) | self._consumed.unjudged()
        marks = {}
        for number, ledger in self._ledgers.items():
            mark = ledger.mark(lambda trace_id: trace_id not in undone)
            if mark is not None:
                marks[number] = mark
        self._pending = marks, self._deliveries.newest()

    def settle(self) -> None:
        """Claims what was marked, if its results are sent."""
        if self._pending is None or not self._deliveries.have_sent(self._pending[1]):
            return
        for number, mark in self._pending[0].items():
            if self._claims[number] != (claim := PartitionClaim(mark.replay, mark.settled, self._owner, mark.read)):
                self._claims[number] = claim
                self._ledgers[number].forget(mark.replay)
                self._consumed.note([self._ledgers[number].news()]).result()
                self._consumed.forget(number, mark.replay).result()
        self._pending = None

    def claims(self) -> dict[int, PartitionClaim]:
        """Returns what is to be committed to Kafka for each partition."""
        return {number: claim for number, claim in self._claims.items() if claim.replay >= 0}
