"""The collector's own counters and gauges: names and values."""

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
EXPORTER_STATE = "pandaeval.exporter.state"
_TABLE = """
pandaeval.spans counter {span} Number of decoded spans, by outcome
pandaeval.logs counter {record} Number of decoded log records, by outcome
pandaeval.claims counter {item} Number of spans and log records that imitate the collector's own output. The collector
  treats them as ordinary spans and log records
pandaeval.pass_rate gauge {share} Corrected pass rate, the estimated share of judged runs that people would pass. The
  rate needs 50 labels
pandaeval.pass_rate.low gauge {share} Lower end of the 95 % interval of the corrected pass rate
pandaeval.pass_rate.high gauge {share} Upper end of the 95 % interval of the corrected pass rate
pandaeval.pass_rate.labels gauge {run} Number of labelled runs from which the corrected pass rate is computed
pandaeval.failure_groups gauge {failure} Number of failures of each incident, for the 200 incidents with the newest
  failures. All other incidents share a series
pandaeval.failure_groups.returned gauge {incident} 1 for each resolved incident that failed again, until somebody sets
  its state
pandaeval.items counter {item} Number of spans and log records that the collector loaded at a start (resumed), completed
  (decided), or left to another collector (moved)
pandaeval.members counter {trace} Number of traces that another collector completed, and whose sessions this collector
  scores
pandaeval.log.messages counter {message} Number of Kafka messages, by outcome
pandaeval.log.partitions counter {partition} Number of Kafka partitions that this collector took over or released
pandaeval.log.errors counter {error} Number of errors while reading from Kafka
pandaeval.log.lag gauge {message} Number of unread messages in the partitions of this collector
pandaeval.log.silence gauge s Time since the collector last polled Kafka
pandaeval.traces counter {trace} Number of completed traces, by the reason for their completion
pandaeval.sessions counter {session} Number of sessions that could not be scored
pandaeval.workers counter {process} Number of starts and ends of scoring workers
pandaeval.judges counter {process} Number of starts and ends of judge processes
pandaeval.readers counter {process} Number of starts and ends of the processes that serve the page and the API
pandaeval.jobs counter {job} Number of judge jobs, by outcome
pandaeval.runs counter {run} Number of evaluation runs, by outcome
pandaeval.requests counter {request} Number of received requests, by outcome and protocol
pandaeval.exporter.items counter {item} Number of results that were sent or dropped, by exporter and signal
pandaeval.series gauge {series} Number of stored series of scores and counters
pandaeval.series.folded counter {result} Number of results counted under `__other__`, because their agent, service or
  environment has no series of its own
pandaeval.component.errors counter {error} Number of exceptions that components raised. Each exception means that the
  output of the component is missing
pandaeval.store.errors counter {error} Number of disk errors, by reaction of the collector
pandaeval.traces.open gauge {trace} Number of traces that are incomplete, or that wait for their scores
pandaeval.queue.size gauge {item} Number of waiting items, by queue
pandaeval.store.size gauge By Size of the data in the store
pandaeval.memory gauge By Resident memory of the collector's main process, without its helper processes
pandaeval.judge.answers counter {answer} Number of the judge's answers, from a new call (asked) or from an earlier call
  (remembered)
pandaeval.judge.budget.spent gauge {USD} US dollars spent on the judge on this day (UTC), including calls in progress
pandaeval.judge.budget.limit gauge {USD} Maximum cost of the judge per day (UTC), in US dollars
pandaeval.lag gauge s Time for which the oldest complete trace has waited for its score
pandaeval.accounting.residual gauge {item} Number of items that no counter includes. If it is not 0, PandaEval has a bug
pandaeval.exporter.state gauge {state} State of an exporter: 1 means up, 0 down, and -1 off because the backend refuses
  this signal
"""
INSTRUMENTS = instruments(_TABLE)
_FATES = tuple((outcome, "") for outcome in ("decoded", "stored", "duplicate", "own_output"))
_FATES += (("rejected", "invalid"), ("rejected", "late"))
_FROM_THE_START = tuple((name, *fate) for name in ("pandaeval.spans", "pandaeval.logs") for fate in _FATES)
"""Counters that are shown as 0 before they count, so that an alert on their increase sees the first one too."""

Key = tuple[str, str, str]
Relayed = tuple[Sequence[tuple[str, Attributes, int]], Mapping[tuple[str, Attributes], float]]
"""Counters and gauges sent between processes."""


@dataclass(frozen=True, slots=True)
class Measure:
    instrument: Instrument
    attributes: Attributes
    value: float


class Telemetry:
    """Counters by outcome and reason, and gauges. Counting is thread-safe.

    ``start_ns``: start of counting, Unix nanoseconds.
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
        """Add to a counter; no effect for ``value`` 0. ``about``: further attributes (``exporter``, ``signal``)."""
        if value:
            with self._lock:
                self._counts[name, attributes(outcome=outcome, reason=reason, **about)] += value

    def relay(self) -> Relayed:
        """Return counts since the last call and current gauges, for the parent's :meth:`take_in`."""
        with self._lock:
            counted = [(name, pairs, value) for (name, pairs), value in self._counts.items() if value]
            self._counts.clear()
        return counted, self._own_gauges()

    def take_in(self, source: str, relayed: Relayed) -> None:
        """Add another process's counts and latest gauges. ``source``: its name."""
        counted, self._relayed[source] = relayed
        with self._lock:
            for name, pairs, value in counted:
                self._counts[name, pairs] += value

    def request(self, door: str, outcome: str) -> None:
        self.add("pandaeval.requests", outcome, 1, door)

    def gauge(self, name: str, read: Callable[[], float], **about: str) -> None:
        """Register a gauge. ``read`` runs on the event loop at each reading and must not block."""
        self._gauges[name, attributes(**about)] = read

    def family(self, read: Callable[[], Mapping[tuple[str, Attributes], float]]) -> None:
        """Register a variable number of gauges; ``read`` returns values by name and attributes."""
        self._families.append(read)

    def counts(self) -> dict[Key, int]:
        counts: Counter[Key] = Counter()
        for (name, pairs), value in self._copy().items():
            about = dict(pairs)
            counts[name, about.get("pandaeval.outcome", ""), about.get("pandaeval.reason", "")] += value
        return {key: value for key, value in counts.items() if value}

    def component_errors(self) -> Counter[Component]:
        """Return the number of exceptions per component (kind and name) since this object was made. Any thread.

        Counts this process and its children.
        """
        return ERRORS.counts() - self._raised_before

    def sinks_down(self) -> list[str]:
        """Return the exporters that cannot deliver now. On the event loop."""
        gauges = {key: read() for key, read in self._gauges.items()}
        for relayed in self._relayed.values():
            gauges.update(relayed)
        down = (dict(pairs) for (name, pairs), value in gauges.items() if name == EXPORTER_STATE and value == 0)
        return sorted({about["pandaeval.exporter"] for about in down})

    def total(self, name: str, *outcomes: str) -> int:
        counts = self.counts().items()
        return sum(n for (key, outcome, _), n in counts if key == name and (not outcomes or outcome in outcomes))

    def measures(self) -> list[Measure]:
        """Return all counters and gauges by name, without NaN gauges. On the event loop."""
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
