"""The daemon thread of a process: empties the inbox, assembles traces and submits them."""

from __future__ import annotations

import itertools
import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from opentelemetry import context as context_api
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace import SpanContext

from pandaeval_otel.processor.collecting import Collecting, SessionEnd
from pandaeval_otel.processor.settings import Settings
from pandaeval_otel.processor.submission import Submission
from pandaeval_otel.processor.telemetry import DROPPED, ENDED

_log = logging.getLogger(__name__)
_INTERVAL_S = 0.2
"""Seconds between two looks at the queue."""
_MOST_LOST = 65_536
"""Number of traces remembered as having lost an item. Beyond it, every open trace counts as lost."""


class Inbox(deque[Any]):
    """The application's item queue. Below ``room`` items callers append, else they call ``full``."""

    __slots__ = ("full", "room")

    def __init__(self, full: Callable[[Any], None]) -> None:
        super().__init__()
        self.room = 0
        self.full = full


NOWHERE = Inbox(lambda item: None)
"""An inbox that discards everything."""


class Losses:
    """Counts items dropped by a full queue. Exact, because ``itertools.count`` is atomic."""

    def __init__(self) -> None:
        self._traces: set[int] = set()
        self._counters = {"spans": itertools.count(), "logs": itertools.count()}
        self._told = {"spans": 0, "logs": 0}

    def add(self, item: Any) -> None:
        if isinstance(item, SessionEnd):
            return
        signal = signal_of(item)
        if signal:
            next(self._counters[signal])
        if len(self._traces) < _MOST_LOST:
            self._traces.add(trace_of(item))

    def traces(self) -> set[int]:
        """Return and reset the traces that lost an item. Worker thread."""
        lost, self._traces = self._traces, set()
        return lost

    def items(self, signal: str) -> int:
        """Return and reset the number of lost ``spans`` or ``logs``. Worker thread."""
        lost = next(self._counters[signal])  # reading increments the counter, which the next reading subtracts
        since, self._told[signal] = lost - self._told[signal], lost + 1
        return since


def signal_of(item: Any) -> str:
    """Return ``spans`` or ``logs``; ``""`` for a started span."""
    if isinstance(item, ReadableSpan):
        return "spans"
    if isinstance(item, tuple):
        return ""
    return "logs"


def trace_of(item: Any) -> int:
    if isinstance(item, (SpanContext, SessionEnd)):
        return item.trace_id
    if isinstance(item, tuple):
        return trace_of(item[0])
    return int(item.context.trace_id if isinstance(item, ReadableSpan) else item.log_record.trace_id)


class Flush:
    """A wait until all ended spans are settled, at most ``timeout`` seconds."""

    def __init__(self, timeout: float, shutting: bool = False) -> None:
        self.deadline, self.shutting = time.monotonic() + timeout, shutting
        self.done = threading.Event()
        self.ok = False
        self.up_to: int | None = None
        self.lost = 0


class Worker:
    """Owns a process's sending thread.

    ``inherited``: traces open at the fork. Ends when ``closed`` is set and no work is left.
    """

    def __init__(
        self, settings: Settings, inbox: Inbox, count: Callable[..., None], inherited: tuple[int, ...]
    ) -> None:
        self._inbox, self._count = inbox, count
        self.losses = Losses()
        self.wake = threading.Event()
        self.closed = False
        self._flushes: deque[Flush] = deque()
        self._thread: threading.Thread | None = None
        self.collecting = Collecting(settings, count, inherited)
        self.submission = Submission(settings, count, self.wake.set)

    def start(self) -> bool:
        """Start the thread. Returns ``False`` if the system has no threads left."""
        if self.runs():
            return True
        thread = threading.Thread(target=self._run, name="pandaeval-forwarder", daemon=True)
        try:
            thread.start()
        except RuntimeError:  # too many threads, or the interpreter goes down
            return False
        self._thread = thread
        return True

    def runs(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def ask(self, flush: Flush) -> None:
        self._flushes.append(flush)
        self.wake.set()

    def join(self, timeout: float) -> None:
        """Wait at most ``timeout`` seconds for the end, unless on the thread itself."""
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(timeout)

    def abandon(self) -> tuple[object, ...]:
        """Release everything in a forked child. Keep the returned objects alive."""
        kept = (*self.submission.abandon(), self.wake)
        self.__dict__.clear()
        return kept

    def _run(self) -> None:
        suppressed = context_api.set_value(context_api._SUPPRESS_INSTRUMENTATION_KEY, True)
        context_api.attach(context_api.set_value("suppress_instrumentation", True, suppressed))
        while not (self.closed and not self._flushes and not self._inbox):
            waiting = self.submission.wait_s()
            self.wake.wait(_INTERVAL_S if waiting is None else min(waiting, _INTERVAL_S))
            self.wake.clear()
            try:
                self._turn()
            except Exception:  # noqa: BLE001 - a bad item must not end the thread
                _log.exception("internal error; incomplete traces are dropped")
                self.collecting.drop_all("internal_error")
        self._take()
        self.collecting.drop_all("shutdown")
        self.submission.close()

    def _turn(self) -> None:
        flushes = list(self._flushes)
        self._take()
        now = time.monotonic()
        for part in self.collecting.complete(now):
            self.submission.buffer.put(part)
        for flush in flushes:
            if flush.up_to is None:
                for part in self.collecting.flush(flush.shutting):
                    self.submission.buffer.put(part)
                flush.up_to, flush.lost = self.submission.buffer.newest, self.submission.buffer.lost
        self.submission.step(hurry=bool(flushes))
        for flush in flushes:
            settled = flush.up_to is not None and self.submission.buffer.settled >= flush.up_to
            if settled or now >= flush.deadline:
                flush.ok = settled and self.submission.buffer.lost == flush.lost
                if flush.shutting:
                    self.submission.close()
                self._flushes.remove(flush)
                flush.done.set()

    def _take(self) -> None:
        lost = self.losses.traces()
        items = [self._inbox.popleft() for _ in range(len(self._inbox))]
        self.collecting.take(items, time.monotonic())
        for trace_id in lost:
            self.collecting.drop(trace_id, "queue_full")
        if len(lost) >= _MOST_LOST:
            self.collecting.drop_all("queue_full")
        for signal in ("spans", "logs"):
            if number := self.losses.items(signal):
                self._count(signal, ENDED, number)
                self._count(signal, DROPPED, number, "queue_full")
