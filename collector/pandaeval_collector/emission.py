"""What a decision sends out: encoded once, counted once, in the transaction that stores its results."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import orjson

from pandaeval_collector.exporters.encode import log_record, said, spans
from pandaeval_collector.result import Result
from pandaeval_collector.series import Increment, Labels, increments
from pandaeval_collector.store import SeriesRow, WriteSet, parcels


class Emitter:
    """Turns results into outbox rows and series rows. ``signals``: those of ``logs`` and ``traces`` that have somewhere
    to go. One thread."""

    def __init__(self, signals: Collection[str] = (), labels: Labels | None = None) -> None:
        self._signals = frozenset(signals)
        self._labels = labels or Labels()

    def add(self, results: Sequence[Result], counted: Collection[str], changes: WriteSet) -> None:
        """Adds to ``changes`` what these results send. ``counted``: ids of results whose unit has entered the score
        histogram before."""
        encoded = [said(result) for result in results] if self._signals else []
        if "logs" in self._signals:
            changes.outbox.extend(parcels("logs", [log_record(each) for each in encoded]))
        if "traces" in self._signals:
            changes.outbox.extend(parcels("traces", spans(encoded)))
        changes.series.extend(_row(each) for each in increments(results, counted, self._labels))
        changes.labels.extend(self._labels.take_new())

    def count(self, results: Sequence[Result], changes: WriteSet) -> None:
        """Adds results that are counted and not emitted one by one."""
        changes.series.extend(_row(each) for each in increments(results, (), self._labels))
        changes.labels.extend(self._labels.take_new())


def _row(added: Increment) -> SeriesRow:
    return SeriesRow(
        name=added.instrument.name,
        attributes=orjson.dumps(added.attributes).decode(),
        width=len(added.instrument.bounds) + 1,
        count=added.count,
        total=added.total,
        buckets=added.buckets,
        exemplars={
            index: (found.value, found.trace_id, found.span_id, found.time_ns)
            for index, found in added.exemplars.items()
        },
    )
