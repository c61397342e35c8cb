"""One daemon thread per collector: it takes what applications' threads put into an inbox, and forwards complete traces.

An application's thread appends to a deque, and does more only when that is full, closed, or used for the first time in
this process: then it starts the thread, wakes it, or marks a trace as lost. Processors with equal settings share one.
"""

from __future__ import annotations

import itertools
import logging
import os
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any
from weakref import WeakSet, ref

from opentelemetry import context as context_api
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace import SpanContext

from pandaeval_otel.collecting import Collecting, Part, SessionEnd
from pandaeval_otel.context import SESSION_LISTENERS
from pandaeval_otel.settings import Settings
from pandaeval_otel.submission import Submission
from pandaeval_otel.telemetry import BUFFERED, DROPPED, ENDED, HELD, QUEUE, telemetry_by_environment

_log = logging.getLogger(__name__)

_WAKE_AT = 2
"""The worker is woken before its time when one part in so many of the queue is used. Not earlier: a worker that runs
beside the application costs it more than the spans that wait."""
_MOST_LOST = 65_536
_LATE_S = 0.5
_PAUSE_S = 0.5


class Inbox(deque[Any]):
    """What the application has handed over. While it is shorter than ``room``, appending is all there is to do."""

    __slots__ = ("full", "room")

    def __init__(self, full: Callable[[Any], None]) -> None:
        super().__init__()
        self.room = 0
        self.full = full


class _Flush:
    """Somebody waits until everything that was ended is settled, until ``deadline``."""

    def __init__(self, deadline: float, shutting: bool) -> None:
        self.deadline, self.shutting = deadline, shutting
        self.done = threading.Event()
        self.ok = False
        self.up_to: int | None = None
        self.lost = 0


class Forwarder:
    """Made by :func:`lease` and given back by :meth:`release`. Nothing of it raises or blocks but :meth:`flush` and
    :meth:`shutdown`, which take as long as they are told."""

    def __init__(self, settings: Settings, submission: Callable[..., Submission] = Submission) -> None:
        self.settings = settings
        self.inbox = Inbox(self._full)
        self._make_submission = submission
        self._telemetry = settings.telemetry or telemetry_by_environment()
        self._leases = 0
        self._closed = False
        self._begin()
        me = ref(self)  # whoever reads gauges must not keep it alive
        self._telemetry.watch(QUEUE, lambda: len(found.inbox) if (found := me()) else 0)
        self._telemetry.watch(HELD, lambda: found._collecting.held_bytes if (found := me()) else 0)
        self._telemetry.watch(BUFFERED, lambda: found._submission.buffered_bytes if (found := me()) else 0)

    def _begin(self, inherited: tuple[int, ...] = ()) -> None:
        """Everything that a process has for itself; again in a forked child."""
        self._starting = threading.Lock()
        self._wake = threading.Event()
        self._thread: threading.Thread | None = None
        self._flushes: deque[_Flush] = deque()
        self._lost_traces: set[int] = set()
        self._lost_all = False
        self._lost_spans, self._lost_records = itertools.count(), itertools.count()
        self._told_spans = self._told_records = 0
        self._collecting = Collecting(self.settings, self._count, inherited)
        self._submission = self._make_submission(self.settings, self._count, self._wake.set)
        self.inbox.room = 0

    # -- the application's threads -------------------------------------------------------------------------------

    def session_ended(self, session: str, trace_id: int) -> None:
        """See :func:`pandaeval_otel.context.session_end`."""
        self._full(SessionEnd(session, trace_id))

    def flush(self, timeout: float) -> bool:
        """Whether everything that ended before, of open traces too, was taken by the collector within ``timeout`` s."""
        return self._finish(_Flush(time.monotonic() + timeout, shutting=False), timeout)

    def shutdown(self, timeout: float) -> bool:
        """Sends what there is within ``timeout`` seconds, counts the rest as dropped, and ends the thread."""
        self._closed, self.inbox.room = True, -1
        finished = self._finish(_Flush(time.monotonic() + timeout, shutting=True), timeout)
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(_LATE_S)
        return finished

    def _finish(self, flush: _Flush, timeout: float) -> bool:
        if not (self._thread_runs() or (self.inbox and self._start_thread())):
            return not self._closed or flush.shutting
        self._flushes.append(flush)
        self._wake.set()
        return flush.done.wait(timeout) and flush.ok

    def _full(self, item: Any) -> None:
        """Where an append is not enough. Never raises, never blocks."""
        try:
            if self._closed:
                self.refuse(item)
            elif len(self.inbox) >= self.settings.queue_size or not (self._thread_runs() or self._start_thread()):
                self._lose(item)
            else:
                self.inbox.append(item)
            if len(self.inbox) >= self.settings.queue_size // _WAKE_AT and not self._wake.is_set():
                self._wake.set()
        except Exception:  # noqa: BLE001, S110 - telemetry must not break what it watches, nor fill its log
            pass

    def refuse(self, item: Any) -> None:
        """Counts what comes after the shutdown."""
        signal = _signal(item)
        if signal:
            self._count(signal, ENDED, 1)
            self._count(signal, DROPPED, 1, "already_shutdown")

    def _lose(self, item: Any) -> None:
        """One item of a trace is lost, so the trace is. Exact under any number of threads: counters are atomic."""
        if isinstance(item, SessionEnd):
            return
        signal = _signal(item)
        if signal:
            next(self._lost_spans if signal == "spans" else self._lost_records)
        if len(self._lost_traces) < _MOST_LOST:
            self._lost_traces.add(_trace_id(item))
        else:
            self._lost_all = True

    def _thread_runs(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def _start_thread(self) -> bool:
        if not self._starting.acquire(blocking=False):
            return True  # another thread is at it; the item waits in the inbox meanwhile
        try:
            if not self._thread_runs():
                thread = threading.Thread(target=self._run, name="pandaeval-forwarder", daemon=True)
                thread.start()
                self._thread = thread
            if not self._closed:
                self.inbox.room = max(1, self.settings.queue_size // _WAKE_AT)
        except RuntimeError:  # no more threads may be started: too many, or the interpreter goes down
            return False
        finally:
            self._starting.release()
        return True

    # -- leases --------------------------------------------------------------------------------------------------

    def add_lease(self) -> None:
        """One more processor uses it."""
        self._leases += 1

    def release(self, timeout: float | None) -> bool:
        """One processor is done; the last one shuts it down. ``None``: without waiting for that."""
        with _registry_lock:
            self._leases -= 1
            last = self._leases <= 0 and not self._closed
            if last and _registry.get(self.settings) is self:
                del _registry[self.settings]
        if not last:
            return True if timeout is None else self.flush(timeout)
        if timeout is not None:
            return self.shutdown(timeout)
        self._closed, self.inbox.room = True, -1
        self._flushes.append(_Flush(time.monotonic() + self.settings.shutdown_timeout, shutting=True))
        self._wake.set()
        return True

    def before_fork(self) -> None:
        """On the forking thread."""
        self._submission.pause(_PAUSE_S)

    def after_fork_in_parent(self) -> None:
        """On the forking thread."""
        self._submission.resume()

    def after_fork(self) -> None:
        """In a forked child: what was collected so far is the parent's to send."""
        traces = {*self._collecting.trace_ids()}
        traces |= {_trace_id(item) for item in self.inbox}
        _not_ours.append((self._submission.abandon(), self._wake))
        self.inbox.clear()
        self._begin(tuple(traces))
        if self._closed:
            self.inbox.room = -1

    # -- the worker ----------------------------------------------------------------------------------------------

    def _run(self) -> None:
        suppressed = context_api.set_value(context_api._SUPPRESS_INSTRUMENTATION_KEY, True)
        context_api.attach(context_api.set_value("suppress_instrumentation", True, suppressed))
        while not (self._closed and not self._flushes and not self.inbox):
            waiting = self._submission.wait_s()
            self._wake.wait(self.settings.interval if waiting is None else min(waiting, self.settings.interval))
            self._wake.clear()
            try:
                self._turn()
            except Exception:  # noqa: BLE001 - one bad item must not end the thread
                _log.exception("a mistake of ours; open traces are dropped")
                self._collecting.drop_all("internal_error")
        self._take()
        self._collecting.drop_all("shutdown")
        self._submission.give_up("shutdown")
        self._submission.close()

    def _turn(self) -> None:
        flushes = list(self._flushes)
        self._take()
        now = time.monotonic()
        self._put(self._collecting.complete(now))
        for flush in flushes:
            if flush.up_to is None:
                self._put(self._collecting.flush(flush.shutting))
                flush.up_to, flush.lost = self._submission.newest, self._submission.lost
        self._submission.step(hurry=bool(flushes))
        for flush in flushes:
            self._settle(flush, now)

    def _take(self) -> None:
        inbox = self.inbox
        lost, self._lost_traces = self._lost_traces, set()
        items = [inbox.popleft() for _ in range(len(inbox))]
        self._collecting.take(items, time.monotonic())
        for trace_id in lost:
            self._collecting.drop(trace_id, "queue_full")
        if self._lost_all:
            self._lost_all = False
            self._collecting.drop_all("queue_full")
        self._told_spans = self._tell_lost("spans", self._lost_spans, self._told_spans)
        self._told_records = self._tell_lost("logs", self._lost_records, self._told_records)

    def _tell_lost(self, signal: str, counter: itertools.count[int], told: int) -> int:
        """Counts what was lost since. Reading an ``itertools.count`` takes a number of it, which is accounted for."""
        lost = next(counter)
        if lost > told:
            self._count(signal, ENDED, lost - told)
            self._count(signal, DROPPED, lost - told, "queue_full")
        return lost + 1

    def _put(self, parts: list[Part]) -> None:
        for part in parts:
            self._submission.put(part)

    def _settle(self, flush: _Flush, now: float) -> None:
        settled = flush.up_to is not None and self._submission.settled >= flush.up_to
        if settled or now >= flush.deadline:
            flush.ok = settled and self._submission.lost == flush.lost
            if flush.shutting:
                self._submission.give_up("shutdown")
            self._flushes.remove(flush)
            flush.done.set()

    def _count(self, signal: str, outcome: str, number: int, reason: str = "") -> None:
        try:
            self._telemetry.count(signal, outcome, number, reason)
        except Exception:  # noqa: BLE001 - the user's own telemetry must not cost traces
            _log.debug("telemetry failed", exc_info=True)


def _signal(item: Any) -> str:
    """Which signal an item counts for; none for a started span."""
    if isinstance(item, ReadableSpan):
        return "spans"
    return "" if isinstance(item, tuple) else "logs"


def _trace_id(item: Any) -> int:
    """Of anything that lies in an inbox."""
    if isinstance(item, (SpanContext, SessionEnd)):
        return item.trace_id
    if isinstance(item, tuple):
        return _trace_id(item[0])
    return int(item.context.trace_id if isinstance(item, ReadableSpan) else item.log_record.trace_id)


_registry: dict[Settings, Forwarder] = {}
_registry_lock = threading.RLock()  # a collected processor gives its lease back in the midst of anything
_everyone: WeakSet[Forwarder] = WeakSet()
_not_ours: list[object] = []


def lease(settings: Settings) -> Forwarder:
    """The forwarder of these settings; give it back with :meth:`Forwarder.release`."""
    with _registry_lock:
        forwarder = _registry.get(settings)
        if forwarder is None:
            forwarder = _registry[settings] = Forwarder(settings)
            _everyone.add(forwarder)
            SESSION_LISTENERS.add(forwarder)
        forwarder.add_lease()
        return forwarder


def _before_fork() -> None:
    for forwarder in list(_everyone):
        forwarder.before_fork()


def _after_fork_in_parent() -> None:
    for forwarder in list(_everyone):
        forwarder.after_fork_in_parent()


def _after_fork() -> None:
    global _registry_lock
    _registry_lock = threading.RLock()
    for forwarder in list(_everyone):
        forwarder.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork)
