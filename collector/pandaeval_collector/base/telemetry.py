"""The collector's own counters and gauges: the table of their names, and the place of their values.

Names are the contract's instruments. Each part counts where a thing happens; exporters render.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from threading import Lock

from pandaeval_collector.base.instrument import Attributes, Instrument, attributes, instruments
from pandaeval_otel.base.component_errors import ERRORS, Component

_COMPONENT_ERRORS = "pandaeval.component.errors"
_TABLE = """
pandaeval.spans counter {span} Spans decoded, by what became of them
pandaeval.logs counter {record} Log records decoded, by what became of them
pandaeval.claims counter {item} Spans and log records that claim to be the collector's own output and are not: taken
  like all others
pandaeval.pass_rate gauge {share} Share of judged runs that people would pass, corrected by their labels; none below
  50 labels
pandaeval.pass_rate.low gauge {share} Lower end of its 95 % interval
pandaeval.pass_rate.high gauge {share} Upper end of its 95 % interval
pandaeval.pass_rate.labels gauge {run} Judged runs with a label, which it rests on
pandaeval.failure_groups gauge {failure} Failures by the group of their root cause; the 200 with the newest ones, the
  others together
pandaeval.items counter {item} Spans and log records taken up again, decided, or let go for another collector
pandaeval.members counter {trace} Traces that other collectors decided and whose sessions are scored here, by what
  became of them
pandaeval.log.messages counter {message} Messages of Kafka, by what became of them
pandaeval.log.partitions counter {partition} Partitions taken and released
pandaeval.log.errors counter {error} Failures of reading from Kafka
pandaeval.log.lag gauge {message} Messages of the own partitions that were not read yet
pandaeval.log.silence gauge s Time since messages of Kafka were last asked for
pandaeval.traces counter {trace} Traces decided, by why they were closed
pandaeval.sessions counter {session} Sessions that could not be scored
pandaeval.workers counter {process} Processes of the line, started and ended
pandaeval.judges counter {process} Processes of the judge, started and ended
pandaeval.readers counter {process} Processes that answer reads, started and ended
pandaeval.jobs counter {job} Judge jobs, by what became of them
pandaeval.runs counter {run} Evaluation runs, by what became of them
pandaeval.requests counter {request} Requests received, by answer and door
pandaeval.exporter.items counter {item} Results sent or dropped, by exporter and signal
pandaeval.series gauge {series} Series of scores and counters in the store
pandaeval.series.folded counter {result} Results counted under agent, service and environment __other__, for want of a
  series of their own
pandaeval.component.errors counter {error} Errors that components raised; what they should have given is missing
pandaeval.store.errors counter {error} Failures of the disk, by what was done about them
pandaeval.traces.open gauge {trace} Traces that are not decided yet
pandaeval.queue.size gauge {item} Work that waits, by queue
pandaeval.store.size gauge By Bytes in use in the store's file
pandaeval.memory gauge By Resident memory of the collector's own process, not of its others
pandaeval.judge.answers counter {answer} Judge's verdicts: asked for, or remembered
pandaeval.judge.budget.spent gauge {USD} US dollars of the day (UTC), calls under way too
pandaeval.judge.budget.limit gauge {USD} US dollars that a day (UTC) may cost
pandaeval.lag gauge s How long the oldest due trace has been waiting
pandaeval.accounting.residual gauge {item} Items that no count accounts for; 0, or there is a bug
pandaeval.exporter.state gauge {state} 1 up, 0 down, -1 off because the sink does not take it
"""
INSTRUMENTS = instruments(_TABLE)
_FATES = tuple((outcome, "") for outcome in ("decoded", "stored", "duplicate", "own_output"))
_FATES += (("rejected", "invalid"), ("rejected", "late"))
_FROM_THE_START = tuple((name, *fate) for name in ("pandaeval.spans", "pandaeval.logs") for fate in _FATES)
"""Counters that are shown as 0 before they count, so that an alert on their increase sees the first one too."""

Key = tuple[str, str, str]
Relayed = tuple[Sequence[tuple[str, Attributes, int]], Mapping[tuple[str, Attributes], float]]
"""What one process tells another that it counted, and its gauges."""


@dataclass(frozen=True, slots=True)
class Measure:
    """One value of the collector's own metrics."""

    instrument: Instrument
    attributes: Attributes
    value: float


class Telemetry:
    """Counters by outcome and reason, and gauges. Counting is safe from any thread: a dictionary update under a lock.

    ``start_ns``: since when counters count, Unix nanoseconds.
    """

    def __init__(self) -> None:
        self.start_ns = time.time_ns()
        self._counts: Counter[tuple[str, Attributes]] = Counter()
        self._gauges: dict[tuple[str, Attributes], Callable[[], float]] = {}
        self._families: list[Callable[[], Mapping[tuple[str, Attributes], float]]] = []
        self._relayed: dict[str, Mapping[tuple[str, Attributes], float]] = {}
        self._lock = Lock()
        self._raised_before = ERRORS.counts()
        for name, outcome, reason in _FROM_THE_START:
            self._counts[name, attributes(outcome=outcome, reason=reason)] = 0

    def add(self, name: str, outcome: str, value: int = 1, reason: str = "", **about: str) -> None:
        """Adds to a counter; nothing for ``value`` 0. ``about``: further attributes (``exporter``, ``signal``)."""
        if value:
            with self._lock:
                self._counts[name, attributes(outcome=outcome, reason=reason, **about)] += value

    def relay(self) -> Relayed:
        """Returns what was counted since the last call and the gauges as they stand, for :meth:`take_in` of the process
        that this one works for."""
        with self._lock:
            counted = [(name, pairs, value) for (name, pairs), value in self._counts.items() if value]
            self._counts.clear()
        return counted, self._own_gauges()

    def take_in(self, source: str, relayed: Relayed) -> None:
        """Adds what another process counted; its gauges stand as it told them last. ``source``: its name."""
        counted, self._relayed[source] = relayed
        with self._lock:
            for name, pairs, value in counted:
                self._counts[name, pairs] += value

    def request(self, door: str, outcome: str) -> None:
        """Counts one request that came through ``door``."""
        self.add("pandaeval.requests", outcome, 1, door)

    def gauge(self, name: str, read: Callable[[], float], **about: str) -> None:
        """Registers a gauge: calls ``read`` whenever it is looked at, on the event loop; ``read`` must not block."""
        self._gauges[name, attributes(**about)] = read

    def family(self, read: Callable[[], Mapping[tuple[str, Attributes], float]]) -> None:
        """Registers gauges whose number varies: ``read`` returns their values by name and attributes."""
        self._families.append(read)

    def counts(self) -> dict[Key, int]:
        """Returns what was counted, by name, outcome and reason."""
        counts: Counter[Key] = Counter()
        for (name, pairs), value in self._copy().items():
            about = dict(pairs)
            counts[name, about.get("pandaeval.outcome", ""), about.get("pandaeval.reason", "")] += value
        return {key: value for key, value in counts.items() if value}

    def component_errors(self) -> Counter[Component]:
        """Returns how often each component, by kind and name, raised since this object was made, in this process and in
        those that work for it. Any thread."""
        return ERRORS.counts() - self._raised_before

    def total(self, name: str, *outcomes: str) -> int:
        """Returns the sum of a counter, of some outcomes if given."""
        counts = self.counts().items()
        return sum(n for (key, outcome, _), n in counts if key == name and (not outcomes or outcome in outcomes))

    def measures(self) -> list[Measure]:
        """Returns all counters and gauges as they stand, sorted by name, without gauges that have no value now (NaN).
        On the event loop."""
        values: dict[tuple[str, Attributes], float] = dict(self._copy())
        values.update(self._own_gauges())
        for gauges in self._relayed.values():
            values.update(gauges)
        return [
            # A counter that is not in the table is still worth showing.
            Measure(INSTRUMENTS.get(name) or Instrument(name, "counter", "{item}", name), pairs, value)
            for (name, pairs), value in sorted(values.items())
        ]

    def _own_gauges(self) -> dict[tuple[str, Attributes], float]:
        values = {key: value for key, read in self._gauges.items() if not math.isnan(value := read())}
        for family in self._families:
            values.update(family())
        return values

    def _copy(self) -> dict[tuple[str, Attributes], int]:
        with self._lock:
            counts = dict(self._counts)
        raised = self.component_errors().items()
        return counts | {
            (_COMPONENT_ERRORS, attributes(kind=kind, component=name)): times for (kind, name), times in raised
        }
