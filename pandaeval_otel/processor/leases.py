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
"""How long a fork waits for workers that are in the midst of talking to their collectors."""

_lock = threading.RLock()  # a collected processor gives its lease back in the midst of anything
_by_settings: dict[Settings, Forwarder] = {}
_leases: dict[Forwarder, WeakSet[Lease]] = {}
_everyone: WeakSet[Forwarder] = WeakSet()
_not_ours: list[object] = []


class Lease:
    """A processor's hold on the forwarder of its settings.

    It ends at one stroke, and who is the last is found by looking and not by counting: a thread that ends it may be cut
    off by a fork at any point, and the child has to be right about those that are left.
    """

    def __init__(self, holder: object, settings: Settings) -> None:
        with _lock:
            forwarder = _by_settings.get(settings)
            if forwarder is None:
                forwarder = _by_settings[settings] = Forwarder(settings)
                _everyone.add(forwarder)
                SESSION_LISTENERS.add(forwarder)
            self.forwarder = forwarder
            # An application that lets go of its provider without a shutdown must not be left with our thread.
            self._finalizer = finalize(holder, _let_go, forwarder)
            self._finalizer.atexit = False  # at exit the provider shuts down in its own time
            _leases.setdefault(forwarder, WeakSet()).add(self)

    @property
    def alive(self) -> bool:
        """Whether the processor neither ended it nor is gone."""
        return self._finalizer.alive

    def end(self) -> None:
        """Gives the forwarder back; the last one shuts it down. Takes as long as the settings allow, once."""
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
    """Whether nobody has it any more; says so to one caller only."""
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
