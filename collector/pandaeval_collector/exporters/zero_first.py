"""A new series is shown as 0 before its first value: what first appears at 1 has no increase that Prometheus could see.

Each reader (``otlp``, ``scrape``) sees its own zeros. That a zero was shown is stored *after* it went out and *before*
the value may: a crash at any moment repeats a zero at worst, and never shows a value and then a zero.
"""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import Future

import orjson

from pandaeval_collector.series import INSTRUMENTS, Exemplar, Point
from pandaeval_collector.store import Store, StoredSeries


class ZeroFirst:
    """The score series as one reader may see them. ``hold_s``: how long a new series stays 0."""

    def __init__(self, store: Store, reader: str, hold_s: float) -> None:
        self._store, self._reader, self._hold_s = store, reader, hold_s

    def points(self, now: float, hold: bool = True) -> list[Point]:
        """All series, new ones as 0. Reads the store; any thread. ``now``: Unix seconds. ``hold``: whether a zero
        shown a moment ago stands for its time."""
        return visible(self._store.series(self._reader), now, self._hold_s if hold else 0.0)

    def shown(self, points: Iterable[Point], now: float) -> Future[None] | None:
        """Notes that ``points`` went out at ``now``; ``None`` when none of them was new."""
        keys = [point.key for point in points if point.shown_at is None and point.key]
        return self._store.show_zeros(self._reader, keys, now) if keys else None


def visible(rows: Iterable[StoredSeries], now: float, hold_s: float) -> list[Point]:
    """Series as points: 0 while a series is new to the reader, and for ``hold_s`` seconds from then on."""
    points = []
    for row in rows:
        point = _point(row)
        if point is not None:
            is_zero = row.zero_at is None or 0 <= now - row.zero_at < hold_s
            points.append(point.as_zero() if is_zero else point)
    return points


def _point(row: StoredSeries) -> Point | None:
    """``None`` for an instrument that this version does not know, or knows with other buckets."""
    instrument = INSTRUMENTS.get(row.name)
    if instrument is None or len(row.buckets) != len(instrument.bounds) + 1:
        return None
    return Point(
        instrument=instrument,
        attributes=tuple((key, value) for key, value in orjson.loads(row.attributes)),
        start_ns=row.start_ns,
        count=row.count,
        total=row.total,
        buckets=row.buckets,
        exemplars=tuple((index, Exemplar(*found)) for index, found in sorted(row.exemplars.items())),
        key=row.key,
        shown_at=row.zero_at,
    )
