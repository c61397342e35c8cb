"""Processors with equal settings share one forwarder; and what happens to all of them around a fork."""

from __future__ import annotations

import os
import threading
from collections import Counter
from weakref import WeakSet

from pandaeval_otel.context import SESSION_LISTENERS
from pandaeval_otel.forwarder import Forwarder
from pandaeval_otel.settings import Settings

_lock = threading.RLock()  # a collected processor gives its lease back in the midst of anything
_by_settings: dict[Settings, Forwarder] = {}
_leases: Counter[int] = Counter()
_everyone: WeakSet[Forwarder] = WeakSet()
_not_ours: list[object] = []


def lease(settings: Settings) -> Forwarder:
    """The forwarder of these settings; give it back with :func:`give_back`."""
    with _lock:
        forwarder = _by_settings.get(settings)
        if forwarder is None:
            forwarder = _by_settings[settings] = Forwarder(settings)
            _everyone.add(forwarder)
            SESSION_LISTENERS.add(forwarder)
        _leases[id(forwarder)] += 1
        return forwarder


def give_back(forwarder: Forwarder, timeout: float | None) -> bool:
    """One processor is done with it; the last one shuts it down. ``None``: without waiting for that."""
    with _lock:
        _leases[id(forwarder)] -= 1
        last = not _leases[id(forwarder)]
        if last:
            del _leases[id(forwarder)]
            _by_settings.pop(forwarder.settings, None)
    if timeout is None:
        if last:
            forwarder.shutdown_soon()
        return True
    return forwarder.shutdown(timeout) if last else forwarder.flush(timeout)


def _before_fork() -> None:
    for forwarder in list(_everyone):
        forwarder.before_fork()


def _after_fork_in_parent() -> None:
    for forwarder in list(_everyone):
        forwarder.after_fork_in_parent()


def _after_fork_in_child() -> None:
    global _lock
    _lock = threading.RLock()
    _not_ours.extend([forwarder.after_fork() for forwarder in list(_everyone)])


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child)
