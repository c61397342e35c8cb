"""Encodes a decision's results for exporters and counts them, in the transaction that stores them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Sequence

from pandaeval_collector.base.result import Result
from pandaeval_collector.exporters._evaluation_spans import spans
from pandaeval_collector.exporters.encode import encode_attributes, log_record
from pandaeval_collector.store import ListedRow, WriteSet, outbox_batches
from pandaeval_collector.store.series import SeriesLabels, increments, series_rows, spent

_log = logging.getLogger(__name__)


class Emitter:
    """Converts results to outbox and series rows.

    ``signals``: in use. ``folded``: called with the number of results beyond the series limit. ``page``: base address
    of result links. ``shows_failed``: failing spans have status ERROR. Single-threaded.
    """

    def __init__(
        self,
        signals: Collection[str] = (),
        labels: SeriesLabels | None = None,
        folded: Callable[[int], None] = lambda _: None,
        *,
        page: str | None = None,
        shows_failed: bool = True,
    ) -> None:
        self._signals = frozenset(signals)
        self._labels = labels or SeriesLabels()
        self._folded, self._has_warned = folded, False
        self._page, self._shows_failed = (page or "").rstrip("/"), shows_failed

    def add(
        self,
        results: Sequence[Result],
        counted: Collection[str],
        changes: WriteSet,
        first: Collection[str] = (),
        later: Collection[str] = (),
        judged: Collection[str] = (),
        undecided: Collection[str] = (),
    ) -> None:
        """Add outbox rows and series increments for ``results`` to ``changes``.

        ``counted``: result IDs of counted units. ``first``: result IDs that replace interim results. Others: see
        :func:`pandaeval_collector.exporters._evaluation_spans.spans`.
        """
        encoded = encode_attributes(results, self._page) if self._signals else []
        if "logs" in self._signals:
            changes.outbox.extend(outbox_batches("logs", [log_record(each) for each in encoded]))
        if "traces" in self._signals:
            changes.outbox.extend(
                outbox_batches("traces", spans(encoded, self._shows_failed, later, judged, undecided))
            )
        self.count(results, changes, counted, first)

    def add_interim(self, results: Sequence[Result], changes: WriteSet) -> None:
        """Add log records of interim results, without series and spans."""
        if "logs" in self._signals:
            encoded = [log_record(each) for each in encode_attributes(results, self._page)]
            changes.outbox.extend(outbox_batches("logs", encoded))

    def add_spent(self, rows: Sequence[ListedRow], changes: WriteSet) -> None:
        changes.series.extend(series_rows(spent(rows, self._labels)))
        changes.labels.extend(self._labels.take_new())

    def count(
        self, results: Sequence[Result], changes: WriteSet, counted: Collection[str] = (), first: Collection[str] = ()
    ) -> None:
        """Add series increments as :meth:`add`, without outbox rows."""
        labels = self._labels
        before = labels.folded
        changes.series.extend(series_rows(increments(results, counted, labels, first)))
        changes.labels.extend(labels.take_new())
        if labels.folded == before:
            return
        self._folded(labels.folded - before)
        if not self._has_warned:
            self._has_warned = True
            _log.warning(
                "the limit of %d score series is reached: new series are counted under agent, service and "
                "environment __other__",
                labels.series,
            )
