"""Counts the CPU time that metrics take, by metric.

A fact that several metrics read of a trace is found out by the first of them, and counted to that one. To read the CPU
clock of a thread takes microseconds, so a running collector measures one unit in seventeen, and counts it seventeen
times.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from threading import Lock

from pandaeval_collector.base.instrument import Attributes, attributes

EMBEDDING = "embedding"
"""Listed among the metrics: the time for vectors, which several of them compare."""
Spent = Sequence[tuple[str, float]]
"""Keys of metrics, each with seconds of CPU time."""
_EVERY = 17
"""A prime: traces of one kind may come at a regular distance."""


class MetricCpu:
    """Sums CPU time by metric since the process began, of this process and of its workers. Any thread."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._turn = 0
        self._seconds: defaultdict[str, float] = defaultdict(float)
        self.listener: Callable[[str, Spent], None] | None = None
        """Is called with the id of each trace and session, and what metrics took for it; then each is measured."""

    def add(self, spent: Iterable[tuple[str, float]]) -> None:
        """Adds CPU times of metrics."""
        with self._lock:
            for key, seconds in spent:
                self._seconds[key] += seconds

    def weight(self) -> int:
        """Returns how many units the next measured one stands for, itself included; 0: it is not measured."""
        if self.listener is not None:
            return 1
        self._turn = (self._turn + 1) % _EVERY
        return 0 if self._turn else _EVERY

    def add_for(self, unit_id: str, spent: Spent, weight: int) -> None:
        """Adds what metrics took for one trace, its turns included, or for one session."""
        self.add([(key, seconds * weight) for key, seconds in spent])
        if self.listener is not None:
            self.listener(unit_id, spent)

    def seconds(self) -> dict[str, float]:
        """Returns the seconds that each metric took."""
        with self._lock:
            return dict(self._seconds)

    def take(self) -> list[tuple[str, float]]:
        """Returns the sums for the process that this one works for, and resets them."""
        with self._lock:
            taken = list(self._seconds.items())
            self._seconds.clear()
        return taken

    def values(self) -> Mapping[tuple[str, Attributes], float]:
        """Returns the values of the counter ``pandaeval.metric.cpu``."""
        return {("pandaeval.metric.cpu", attributes(metric=key)): each for key, each in self.seconds().items()}


CPU = MetricCpu()
"""The CPU times of this process."""
