"""Series for readers: a new series is first 0, because Prometheus sees no increase from a start at 1.

Each reader (``otlp``, ``scrape``) has its own zeros, recorded after sending.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence

from pandaeval_collector.base.telemetry import Telemetry
from pandaeval_collector.store import Store
from pandaeval_collector.store.series import INSTRUMENTS, Point

PAGE = 250
"""Series read, rendered and sent at a time, to bound memory."""
_NOTED_AT_ONCE = 500


class ZeroFirst:
    """Score series for a reader. ``hold_s``: seconds for which a new series stays 0."""

    def __init__(self, store: Store, reader: str, hold_s: float) -> None:
        self._store, self._reader, self._hold_s = store, reader, hold_s

    def pages(self, now: float, hold: bool = True) -> Iterator[list[Point]]:
        """Yield all series in pages by instrument, new series as 0.

        Any thread. ``now``: Unix seconds. ``hold``: keep recent zeros.
        """
        for name in sorted(INSTRUMENTS):
            after = ""
            while rows := self._store.reads.tally.page(self._reader, name, after, PAGE):
                yield visible(rows, now, self._hold_s if hold else 0.0)
                after = rows[-1].key

    async def shown(self, keys: Sequence[str], now: float) -> None:
        """Record new series sent at ``now``, in small transactions."""
        for start in range(0, len(keys), _NOTED_AT_ONCE):
            some = keys[start : start + _NOTED_AT_ONCE]
            await asyncio.wrap_future(self._store.tally.show_zeros(self._reader, some, now))


def own_points(telemetry: Telemetry) -> list[Point]:
    """Read the collector's counters and gauges. On the event loop."""
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
    """Return keys of series never shown to this reader."""
    return [point.key for point in points if point.shown_at is None and point.key]


def visible(points: Iterable[Point], now: float, hold_s: float) -> list[Point]:
    """Return points as a reader sees them: 0 while new and for ``hold_s`` seconds after.

    Omits points of another version with other buckets.
    """
    shown = []
    for point in points:
        if len(point.buckets) != len(point.instrument.bounds) + 1:
            continue
        is_zero = point.shown_at is None or 0 <= now - point.shown_at < hold_s
        shown.append(point.as_zero() if is_zero else point)
    return shown
