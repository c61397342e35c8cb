"""Passes spans from application threads to the process's worker.

Application threads only append, unless the inbox is full, closed or new in this process.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from typing import Any
from weakref import WeakSet, finalize, ref

from pandaeval_otel.processor.collecting import SessionEnd
from pandaeval_otel.processor.context import SESSION_LISTENERS
from pandaeval_otel.processor.settings import Settings
from pandaeval_otel.processor.telemetry import BUFFERED, DROPPED, ENDED, HELD, QUEUE, telemetry_by_environment
from pandaeval_otel.processor.worker import Flush, Inbox, Worker, signal_of, trace_of

_log = logging.getLogger(__name__)

_WAKE_AT = 2
"""Divisor of the queue's size: the worker wakes early from that many items on. Waking sooner costs more."""
_LATE_S = 0.5
_PAUSE_S = 0.5
"""Maximum seconds that a fork waits for active workers."""

_lock = threading.RLock()  # garbage collection can return a processor's lease at any time
_by_settings: dict[Settings, Forwarder] = {}
_leases: dict[Forwarder, WeakSet[Lease]] = {}
_everyone: WeakSet[Forwarder] = WeakSet()
_not_ours: list[object] = []


class Forwarder:
    """Passes a process's items to its worker. Never raises. Only :meth:`flush` and :meth:`shutdown` block."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.inbox = Inbox(self._full)
        self._telemetry = settings.telemetry or telemetry_by_environment()
        self._begin()
        me = ref(self)  # gauges must not keep it alive
        if self._telemetry is not None:
            self._telemetry.watch(QUEUE, lambda: len(found.inbox) if (found := me()) else 0)
            self._telemetry.watch(HELD, lambda: found.worker.collecting.held_bytes if (found := me()) else 0)
            self._telemetry.watch(BUFFERED, lambda: found.worker.submission.buffer.size if (found := me()) else 0)

    def _begin(self, inherited: tuple[int, ...] = ()) -> None:
        self._starting = threading.Lock()
        self.worker = Worker(self.settings, self.inbox, self._count, inherited)
        self.inbox.room = 0

    def session_ended(self, session: str, trace_id: int) -> None:
        """Queue the end of ``session``. ``trace_id``: the surrounding trace, 0 for none."""
        self._full(SessionEnd(session, trace_id))

    def flush(self, timeout: float) -> bool:
        """Wait up to ``timeout`` seconds until the collector has all ended spans. Returns whether it has."""
        return self._finish(Flush(timeout), timeout)

    def shutdown(self, timeout: float) -> None:
        """Send within ``timeout`` seconds, drop the rest, and end the thread."""
        self._close()
        self._finish(Flush(timeout, shutting=True), timeout)
        self.worker.join(_LATE_S)

    def shutdown_soon(self) -> None:
        self._close()
        self.worker.ask(Flush(self.settings.shutdown_timeout, shutting=True))

    def _close(self) -> None:
        self.worker.closed, self.inbox.room = True, -1

    def _finish(self, flush: Flush, timeout: float) -> bool:
        if not (self.worker.runs() or (self.inbox and self._start())):
            return not self.worker.closed or flush.shutting
        self.worker.ask(flush)
        return flush.done.wait(timeout) and flush.ok

    def _full(self, item: Any) -> None:
        try:
            if self.worker.closed:
                self.refuse(item)
            elif len(self.inbox) >= self.settings.queue_size or not (self.worker.runs() or self._start()):
                self.worker.losses.add(item)
            else:
                self.inbox.append(item)
            if len(self.inbox) >= self.settings.queue_size // _WAKE_AT and not self.worker.wake.is_set():
                self.worker.wake.set()
        except Exception:  # noqa: BLE001, S110 - telemetry must not break the application, or fill its log
            pass

    def refuse(self, item: Any) -> None:
        signal = signal_of(item)
        if signal:
            self._count(signal, ENDED, 1)
            self._count(signal, DROPPED, 1, "already_shutdown")

    def _start(self) -> bool:
        if not self._starting.acquire(blocking=False):
            return True  # another thread starts it; the item waits in the inbox
        try:
            started = self.worker.start()
            if started and not self.worker.closed:
                self.inbox.room = max(1, self.settings.queue_size // _WAKE_AT)
            return started
        finally:
            self._starting.release()

    def after_fork(self) -> tuple[object, ...]:
        """Restart in a forked child.

        Keep the returned objects alive: destroying them affects the parent's connection.
        """
        before = self.worker
        traces = {*before.collecting.trace_ids(), *map(trace_of, self.inbox)}
        self.inbox.clear()
        self._begin(tuple(traces))
        if before.closed:
            self._close()
        return before.abandon()

    def _count(self, signal: str, outcome: str, number: int, reason: str = "") -> None:
        try:
            if self._telemetry is not None:
                self._telemetry.count(signal, outcome, number, reason)
        except Exception:  # noqa: BLE001 - an error of the user's telemetry must not lose traces
            _log.debug("telemetry failed", exc_info=True)


class Lease:
    """A processor's lease of the shared forwarder. Ends atomically.

    The last holder is found by checking all leases, because a fork could leave a counter wrong.
    """

    def __init__(self, holder: object, settings: Settings) -> None:
        with _lock:
            forwarder = _by_settings.get(settings)
            if forwarder is None:
                forwarder = _by_settings[settings] = Forwarder(settings)
                _everyone.add(forwarder)
                SESSION_LISTENERS.add(forwarder)
            self.forwarder = forwarder
            # An application that drops its provider without a shutdown must not keep our thread.
            self._finalizer = finalize(holder, _let_go, forwarder)
            self._finalizer.atexit = False  # at exit the provider shuts down in its own time
            _leases.setdefault(forwarder, WeakSet()).add(self)

    @property
    def alive(self) -> bool:
        return self._finalizer.alive

    def end(self) -> None:
        """Release the forwarder; the last lease shuts it down, others flush it.

        Blocks at most ``shutdown_timeout`` seconds.
        """
        timeout = self.forwarder.settings.shutdown_timeout
        if self._finalizer.detach() is None:
            return
        if _is_last(self.forwarder):
            self.forwarder.shutdown(timeout)
        else:
            self.forwarder.flush(timeout)


def _let_go(forwarder: Forwarder) -> None:
    if _is_last(forwarder):
        forwarder.shutdown_soon()


def _is_last(forwarder: Forwarder) -> bool:
    """Return whether no lease is alive; ``True`` to the first caller only."""
    with _lock:
        if any(lease.alive for lease in _leases.get(forwarder, ())) or _leases.pop(forwarder, None) is None:
            return False
        _by_settings.pop(forwarder.settings, None)
        return True


def _before_fork() -> None:
    deadline = time.monotonic() + _PAUSE_S
    waits = [each.worker.submission.pause(max(0.0, deadline - time.monotonic())) for each in list(_everyone)]
    time.sleep(max(waits, default=0.0))


def _after_fork_in_parent() -> None:
    for forwarder in list(_everyone):
        forwarder.worker.submission.resume()


def _after_fork_in_child() -> None:
    global _lock
    _lock = threading.RLock()
    _not_ours.extend([forwarder.after_fork() for forwarder in list(_everyone)])


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child)
