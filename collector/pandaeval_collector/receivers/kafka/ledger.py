"""What a consumer of a partition must not forget: which of its traces are done, and from where another collector would
have to read again so that it sees every other one whole.

Two offsets say it. Every trace with a message below ``settled`` is either done, or has none of its messages there;
``replay`` is where the earliest message lies of a trace that reaches across ``settled``. Whoever takes the partition
over reads from ``replay``: each trace that it meets below ``settled`` is done, and is not taken again however late its
other messages come; all others begin at ``settled`` or behind it, so that it has them whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from pandaeval_collector.store import Consumed, Extent


@dataclass(frozen=True, slots=True)
class PartitionMark:
    """How much of a partition is done; offsets. ``replay`` is never behind ``settled``."""

    settled: int
    replay: int


class PartitionLedger:
    """The ledger of one partition. One thread at a time."""

    def __init__(self, read: Consumed) -> None:
        """``read``: what was read of the partition before, from which the ledger goes on."""
        self._read = read
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
        if self._read.next < self._read.settled_below:
            return None
        settled = self._read.next
        for trace_id, extent in self._read.extents.items():
            if extent.first < settled and not extent.elsewhere and not is_done(trace_id):
                settled = extent.first
        settled = self._read.settled_below = max(settled, self._read.settled_below)
        across = (extent.first for extent in self._read.extents.values() if extent.last >= settled)
        return PartitionMark(settled, min(settled, min(across, default=settled)))

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
