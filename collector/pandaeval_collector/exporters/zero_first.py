"""The series as their readers see them: a new one is 0 before its first value, since Prometheus sees no increase in one
that first appears at 1.

Each reader (``otlp``, ``scrape``) gets its own zeros. That a zero was shown is stored *after* it was sent and *before*
the value may be: a crash at any moment repeats a zero at worst, and never shows a value and then a zero.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence

from pandaeval_collector.base.telemetry import Telemetry
from pandaeval_collector.store import Store
from pandaeval_collector.store.series import INSTRUMENTS, Point

PAGE = 250
"""Series that are read, rendered and sent at a time: all of them might be more than memory and readers can take."""
_NOTED_AT_ONCE = 500


class ZeroFirst:
    """The score series as one reader may see them. ``hold_s``: how long a new series stays 0."""

    def __init__(self, store: Store, reader: str, hold_s: float) -> None:
        self._store, self._reader, self._hold_s = store, reader, hold_s

    def pages(self, now: float, hold: bool = True) -> Iterator[list[Point]]:
        """Yield all series, a page at a time and those of one instrument one after the other, new ones as 0. Each step
        reads the store for itself, on any thread, and holds nothing of it. ``now``: Unix seconds. ``hold``: whether a
        zero shown a moment ago stands for its time."""
        for name in sorted(INSTRUMENTS):
            after = ""
            while rows := self._store.reads.tally.page(self._reader, name, after, PAGE):
                yield visible(rows, now, self._hold_s if hold else 0.0)
                after = rows[-1].key

    async def shown(self, keys: Sequence[str], now: float) -> None:
        """Note that the new series of these keys went out at ``now``; in pieces, since decisions have their turn at
        the store in between."""
        for start in range(0, len(keys), _NOTED_AT_ONCE):
            some = keys[start : start + _NOTED_AT_ONCE]
            await asyncio.wrap_future(self._store.tally.show_zeros(self._reader, some, now))


def own_points(telemetry: Telemetry) -> list[Point]:
    """Read the collector's counters (since this process began) and gauges. On the event loop."""
    return [
        Point(
            instrument=measure.instrument,
            attributes=measure.attributes,
            start_ns=telemetry.start_ns,
            count=1,
            total=measure.value,
            buckets=(),
            exemplars=(),
        )
        for measure in telemetry.measures()
    ]


def new_ones(points: Iterable[Point]) -> list[str]:
    """Return the keys of series that this reader has never been shown."""
    return [point.key for point in points if point.shown_at is None and point.key]


def visible(points: Iterable[Point], now: float, hold_s: float) -> list[Point]:
    """Return the points as a reader sees them: 0 while a series is new to it, and for ``hold_s`` seconds from then
    on. Leaves out those that another version stored with other buckets."""
    shown = []
    for point in points:
        if len(point.buckets) != len(point.instrument.bounds) + 1:
            continue
        is_zero = point.shown_at is None or 0 <= now - point.shown_at < hold_s
        shown.append(point.as_zero() if is_zero else point)
    return shown
