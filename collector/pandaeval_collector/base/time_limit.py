"""Ends what is done for one trace when it takes too long: it may cost its own results, and nobody's time.

A timer of the system interrupts the thread between two instructions of Python. Within one call into C (a search of
``re``, say) it does so only where that looks for signals: what does not is left to whoever can kill the process.
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
"""What a trace may take longer for each byte of its spans: fifty times what that takes on a free core."""
TRACE_SECONDS = 20.0
"""What it may take besides, where nobody says otherwise."""
T = TypeVar("T")


class OverTimeError(BaseException):
    """What is done for a trace takes too long. No ``Exception``: whoever passes over what metrics and dialects raise
    must not go on with the trace."""

    def __str__(self) -> str:
        return LIMIT.reason


class TimeLimit:
    """Limits one call at a time: on the main thread, and on others once :meth:`serve_threads` was called. Elsewhere,
    and where the system has no such timer, nothing is limited."""

    def __init__(self) -> None:
        self.reason = ""
        """What the last limited call took too long over; ``""`` if it did not."""
        self.on_step: Callable[[str], None] | None = None
        """Is told of each step."""
        self._step, self._seconds, self._thread = "", 0.0, 0

    @property
    def is_over(self) -> bool:
        """Whether the call that is under way has used up its time, and should come to its end."""
        return bool(self._thread and self.reason)

    @property
    def left(self) -> float:
        """The seconds that are left to the call that is under way."""
        return signal.getitimer(signal.ITIMER_REAL)[0] if self._thread else math.inf

    def serve_threads(self) -> None:
        """Lets calls on other threads be limited, too. On the main thread."""
        if hasattr(signal, "setitimer"):
            signal.signal(signal.SIGALRM, self._end)

    def run(self, seconds: float, work: Callable[..., T], *arguments: Any) -> T:
        """Returns ``work(*arguments)``. After ``seconds`` it is interrupted by :class:`OverTimeError`; if it goes on,
        with what it has by then, again after as many."""
        is_main = threading.current_thread() is threading.main_thread()
        self.reason = ""
        if not hasattr(signal, "setitimer") or not (is_main or signal.getsignal(signal.SIGALRM) == self._end):
            return work(*arguments)
        handler = signal.signal(signal.SIGALRM, self._end) if is_main else None
        self._step, self._seconds, self._thread = "", seconds, threading.get_ident()
        since, seconds = time.monotonic(), min(seconds, 1e6)
        others, again = signal.setitimer(signal.ITIMER_REAL, max(seconds, 1e-3), max(seconds, 1.0))
        try:
            return work(*arguments)
        finally:
            self._thread = 0
            signal.setitimer(signal.ITIMER_REAL, others and max(others - time.monotonic() + since, 1e-3), again)
            if is_main:
                signal.signal(signal.SIGALRM, handler)

    def step(self, name: str) -> None:
        """Notes what is done next."""
        self._step = name
        if self.on_step is not None:
            # What is sent must not break off.
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM})
            try:
                self.on_step(name)
            finally:
                signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGALRM})

    def _end(self, *_: object) -> None:
        thread = self._thread
        if not thread:
            return
        step = self._step or "reading it"
        self.reason = self.reason or f"the trace took too long (line.trace_timeout): {step} was under way"
        if thread == threading.get_ident():
            raise OverTimeError
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(OverTimeError))


LIMIT = TimeLimit()
"""The limit of this process."""
