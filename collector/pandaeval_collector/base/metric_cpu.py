"""Counts the CPU time that metrics take, by metric.

A fact that several metrics read of a trace is found out by the first of them, and counted to that one. To read the CPU
clock of a thread takes microseconds, so a running collector measures one unit in seventeen, and counts it seventeen
times.
"""

from __future__ import annotations

import time
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

    def measure(self) -> Measured:
        """Begins to measure one unit, if its turn has come."""
        self._turn = (self._turn + 1) % _EVERY
        weight = 1 if self.listener is not None else 0 if self._turn else _EVERY
        return Measured(self, weight)

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


class Measured:
    """What metrics take for one trace, its turns included, or for one session. ``weight``: how many units it stands
    for, itself included; 0: nothing is measured. ``seconds``: of CPU time, by key."""

    def __init__(self, cpu: MetricCpu, weight: int) -> None:
        self._cpu, self.weight = cpu, weight
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self._since = time.thread_time() if weight else 0.0

    def count(self, key: str) -> None:
        """Counts to a metric all that was used since the last count."""
        if self.weight:
            now = time.thread_time()
            self.seconds[key] += now - self._since
            self._since = now

    def end(self, unit_id: str) -> None:
        """Adds the measured times to those of the process."""
        if self.weight:
            self._cpu.add((key, seconds * self.weight) for key, seconds in self.seconds.items())
            if self._cpu.listener is not None:
                self._cpu.listener(unit_id, [*self.seconds.items()])


CPU = MetricCpu()
"""The CPU times of this process."""
