"""Leaves a provider alone after a run of failures, and then asks it once to see whether it is back."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

_WINDOW_S = 60.0
_PROBING_S = 1.0
"""How long whoever comes while the provider is being tried again is told to wait."""


class Breaker:
    """Says whether a provider may be asked. *Closed*: it may. *Open*, for ``rest`` seconds after ``fails`` failures in
    a row within a minute: it may not. *Half open*, after that: one call may; if it succeeds the breaker closes, if it
    fails the breaker opens again. ``clock``: seconds. On one event loop."""

    def __init__(self, fails: int, rest: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._rest, self._clock = rest, clock
        self._failures: deque[float] = deque(maxlen=fails)
        self._open_until: float | None = None
        self._probing = False

    @property
    def is_closed(self) -> bool:
        return self._open_until is None

    def closed_in(self) -> float:
        """Asks to make a call, and takes the place of the one that tries an open breaker again if there is none. 0: go
        ahead, and say what came of it; else the seconds after which to ask again."""
        if self._open_until is None:
            return 0.0
        left = self._open_until - self._clock()
        if left > 0.0:
            return left
        if self._probing:
            return _PROBING_S
        self._probing = True
        return 0.0

    def succeeded(self) -> None:
        """The provider answered, whatever it said."""
        self._failures.clear()
        self._open_until, self._probing = None, False

    def failed(self, rest: float | None = None) -> None:
        """A call failed over the provider. ``rest``: seconds for which it asked to be left alone, if it did."""
        now = self._clock()
        self._failures.append(now)
        whole = len(self._failures) == self._failures.maxlen and now - self._failures[0] <= _WINDOW_S
        if self._probing or whole:
            self._open_until = now + max(self._rest, rest or 0.0)
        self._probing = False

    def left(self) -> None:
        """A call ended and says nothing about the provider: nobody waited for it, or it was not allowed."""
        self._probing = False
