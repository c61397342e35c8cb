"""What the collector counts about itself: one table of names, and one place where the numbers are.

Names are the contract's instruments. A count is made where a thing happens; rendering is the exporters' business.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from threading import Lock


@dataclass(frozen=True, slots=True)
class Instrument:
    """One instrument of our own: ``kind`` is ``counter`` or ``gauge``."""

    name: str
    kind: str
    unit: str
    description: str


INSTRUMENTS = (
    Instrument("pandaeval.spans", "counter", "{span}", "Spans decoded, by what became of them"),
    Instrument("pandaeval.logs", "counter", "{record}", "Log records decoded, by what became of them"),
    Instrument("pandaeval.traces", "counter", "{trace}", "Traces decided, by why they were closed"),
    Instrument("pandaeval.requests", "counter", "{request}", "Requests received, by door and answer"),
    Instrument("pandaeval.traces.open", "gauge", "{trace}", "Traces that are not decided yet"),
    Instrument("pandaeval.queue.size", "gauge", "{item}", "Work that waits, by queue"),
    Instrument("pandaeval.store.size", "gauge", "By", "Bytes in use in the store's file"),
    Instrument("pandaeval.lag", "gauge", "s", "How long the oldest due trace has been waiting"),
)

Key = tuple[str, str, str]


class Telemetry:
    """Counts by (instrument, outcome, reason). Safe from any thread; adding is a dictionary update under a lock."""

    def __init__(self) -> None:
        self._counts: Counter[Key] = Counter()
        self._lock = Lock()

    def add(self, name: str, outcome: str, value: int = 1, reason: str = "") -> None:
        """Adds to a counter; nothing for ``value`` 0."""
        if value:
            with self._lock:
                self._counts[name, outcome, reason] += value

    def request(self, door: str, outcome: str) -> None:
        """One request came through ``door``."""
        self.add("pandaeval.requests", outcome, 1, door)

    def counts(self) -> dict[Key, int]:
        """A copy of all counts."""
        with self._lock:
            return dict(self._counts)

    def total(self, name: str, outcome: str = "") -> int:
        """The sum of a counter, of one outcome if given."""
        return sum(n for (key, o, _), n in self.counts().items() if key == name and outcome in ("", o))
