"""A queue from an application's threads to the worker, which costs them one append, and a count of items that did not
fit."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable
from typing import Any

from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace import SpanContext

from pandaeval_otel.processor.collecting import SessionEnd

_MOST_LOST = 65_536


class Inbox(deque[Any]):
    """Items from the application. While it is shorter than ``room`` callers append; else they call ``full``."""

    __slots__ = ("full", "room")

    def __init__(self, full: Callable[[Any], None]) -> None:
        super().__init__()
        self.room = 0
        self.full = full


NOWHERE = Inbox(lambda item: None)
"""An inbox that discards everything."""


class Losses:
    """Counts items that were dropped because the queue was full. Exact under any number of threads, since
    ``itertools.count`` is atomic."""

    def __init__(self) -> None:
        self._traces: set[int] = set()
        self._all = False
        self._counters = {"spans": itertools.count(), "logs": itertools.count()}
        self._told = {"spans": 0, "logs": 0}

    def add(self, item: Any) -> None:
        """Counts an item as lost, and with it its trace. On any thread."""
        if isinstance(item, SessionEnd):
            return
        signal = signal_of(item)
        if signal:
            next(self._counters[signal])
        if len(self._traces) < _MOST_LOST:
            self._traces.add(trace_of(item))
        else:
            self._all = True

    def traces(self) -> set[int]:
        """Returns the traces that lost an item since the last call. On the worker."""
        lost, self._traces = self._traces, set()
        return lost

    def everything(self) -> bool:
        """Returns whether more traces than can be remembered lost an item since the last call. On the worker."""
        found, self._all = self._all, False
        return found

    def items(self, signal: str) -> int:
        """Returns how many ``spans`` or ``logs`` were lost since the last call. On the worker."""
        lost = next(self._counters[signal])  # reading increments the counter, which the next reading subtracts
        since, self._told[signal] = lost - self._told[signal], lost + 1
        return since


def signal_of(item: Any) -> str:
    """Returns whether an item counts as ``spans`` or ``logs``; ``""`` for a started span."""
    if isinstance(item, ReadableSpan):
        return "spans"
    return "" if isinstance(item, tuple) else "logs"


def trace_of(item: Any) -> int:
    """Returns the trace id of any item of an inbox."""
    if isinstance(item, (SpanContext, SessionEnd)):
        return item.trace_id
    if isinstance(item, tuple):
        return trace_of(item[0])
    return int(item.context.trace_id if isinstance(item, ReadableSpan) else item.log_record.trace_id)
