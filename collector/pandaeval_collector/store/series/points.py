"""A series as exporters render it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from pandaeval_collector.base.instrument import Attributes, Instrument


@dataclass(frozen=True, slots=True)
class Exemplar:
    """A measurement that stands for others: the evaluated span. ``time_ns``: when it was measured."""

    value: float
    trace_id: str
    span_id: str
    time_ns: int


@dataclass(frozen=True, slots=True)
class Point:
    """One series as it stands. Times are Unix nanoseconds; ``buckets``: counts per bucket, one more than bounds."""

    instrument: Instrument
    attributes: Attributes
    start_ns: int
    count: int
    total: float
    buckets: tuple[int, ...]
    exemplars: tuple[tuple[int, Exemplar], ...]
    key: str = ""
    shown_at: float | None = None
    """When this reader was first shown the series as 0, Unix seconds; ``None``: never."""

    def as_zero(self) -> Point:
        """The series before its first value: what a reader has to see once, or ``increase()`` misses that value."""
        return replace(self, count=0, total=0.0, buckets=(0,) * len(self.buckets), exemplars=())
