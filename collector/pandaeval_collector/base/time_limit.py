"""Limits the time per trace: a slow trace only loses its own results.

A timer interrupts between Python instructions. The parent kills a process that hangs in C.
"""

from __future__ import annotations

import ctypes
import math
import signal
import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

SECONDS_PER_BYTE = 2e-6
"""Extra seconds per byte of a trace's spans: fifty times the usual time on a free core."""
TRACE_SECONDS = 20.0
"""Default seconds per trace."""
T = TypeVar("T")


class OverTimeError(BaseException):
    """A trace takes too long. Not an ``Exception``, so that error handlers do not swallow it."""

    def __str__(self) -> str:
        return LIMIT.reason


class TimeLimit:
    """Limits one call at a time, on the main thread, and elsewhere after :meth:`listen`."""

    def __init__(self) -> None:
        self.reason = ""
        """What the last limited call took too long over; ``""`` if it did not."""
        self.step = ""
        """What the limited call is doing."""
        self._thread, self._listens = 0, False

    @property
    def is_over(self) -> bool:
        return bool(self._thread and self.reason)

    @property
    def left(self) -> float:
        return signal.getitimer(signal.ITIMER_REAL)[0] if self._thread else math.inf

    def listen(self) -> None:
        """Receive the timer for calls on all threads. Call it on the main thread."""
        signal.signal(signal.SIGALRM, self._end)
        self._listens = True

    def run(self, seconds: float, work: Callable[..., T], *arguments: Any) -> T:
        """Return ``work(*arguments)``.

        Raises :class:`OverTimeError` in it after ``seconds``, and again after each further period.
        """
        self.reason = ""
        if not self._listens and threading.current_thread() is not threading.main_thread():
            return work(*arguments)
        handler = None if self._listens else signal.signal(signal.SIGALRM, self._end)
        self.step, self._thread, since = "", threading.get_ident(), time.monotonic()
        others, again = signal.setitimer(signal.ITIMER_REAL, max(seconds, 1e-3), max(seconds, 1.0))
        try:
            return work(*arguments)
        finally:
            self._thread = 0
            signal.setitimer(signal.ITIMER_REAL, others and max(others - time.monotonic() + since, 1e-3), again)
            if handler is not None:
                signal.signal(signal.SIGALRM, handler)

    def _end(self, *_: object) -> None:
        thread = self._thread
        if not thread:
            return
        step = self.step or "reading it"
        self.reason = self.reason or f"the trace took too long (line.timeout): {step} was under way"
        if thread == threading.get_ident():
            raise OverTimeError
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(OverTimeError))


LIMIT = TimeLimit()
"""The limit of this process."""
