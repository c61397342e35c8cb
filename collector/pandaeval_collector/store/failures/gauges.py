"""How many failures each group has, as gauges of a running collector."""

from __future__ import annotations

import sqlite3
import time
from collections import Counter
from collections.abc import Mapping

from pandaeval_collector.base.instrument import Attributes
from pandaeval_collector.store import Store
from pandaeval_collector.store.tally import OTHER

NAME = "pandaeval.failure_groups"
MOST = 200
"""Groups with a series of their own: those with the newest failures."""
_FRESH_S = 5.0


class GroupGauges:
    """The number of failures in each group, read from the store at most every few seconds. Any thread."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._read_at = float("-inf")
        self._values: Mapping[tuple[str, Attributes], float] = {}

    def values(self) -> Mapping[tuple[str, Attributes], float]:
        """Returns the gauges by name and attributes; those of the last reading where the store cannot be read."""
        if time.monotonic() - self._read_at >= _FRESH_S:
            try:
                counts = self._store.reads.failure_counts()
            except sqlite3.Error:  # the store counts and logs its own errors
                return self._values
            values: Counter[tuple[str, Attributes]] = Counter()
            for place, (id_, severity, count) in enumerate(counts):
                group = id_ if place < MOST else OTHER
                values[NAME, (("pandaeval.failure.group", group), ("pandaeval.failure.severity", severity))] += count
            self._values = {key: float(count) for key, count in values.items()}
            self._read_at = time.monotonic()
        return self._values
