"""Shares one forwarder among processors with equal settings, and handles forks for all of them."""

from __future__ import annotations

import os
import threading
import time
from weakref import WeakSet, finalize

from pandaeval_otel.processor.context import SESSION_LISTENERS
from pandaeval_otel.processor.forwarder import Forwarder
from pandaeval_otel.processor.settings import Settings

_PAUSE_S = 0.5
"""Seconds that a fork waits for workers that are talking to their collectors."""

_lock = threading.RLock()  # garbage collection may return a processor's lease at any point
_by_settings: dict[Settings, Forwarder] = {}
_leases: dict[Forwarder, WeakSet[Lease]] = {}
_everyone: WeakSet[Forwarder] = WeakSet()
_not_ours: list[object] = []


class Lease:
    """A processor's hold on the forwarder of its settings.

    It ends in one atomic step, and the last holder is found by looking at all leases rather than by counting: a fork
    may interrupt a thread that ends a lease at any point, and the child has to be right about the remaining ones.
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
        """Whether the processor exists and has not ended it."""
        return self._finalizer.alive

    def end(self) -> None:
        """Returns the forwarder; the last lease shuts it down, and others flush it. Blocks for at most
        ``shutdown_timeout`` seconds, and only the first time."""
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
    """Returns whether no lease of the forwarder is alive; ``True`` to one caller only."""
    with _lock:
        if any(lease.alive for lease in _leases.get(forwarder, ())):
            return False
        if _leases.pop(forwarder, None) is None:
            return False
        _by_settings.pop(forwarder.settings, None)
        return True


def _before_fork() -> None:
    deadline = time.monotonic() + _PAUSE_S
    time.sleep(max((each.before_fork(max(0.0, deadline - time.monotonic())) for each in list(_everyone)), default=0.0))


def _after_fork_in_parent() -> None:
    for forwarder in list(_everyone):
        forwarder.after_fork_in_parent()


def _after_fork_in_child() -> None:
    global _lock
    _lock = threading.RLock()
    _not_ours.extend([forwarder.after_fork() for forwarder in list(_everyone)])


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child)
