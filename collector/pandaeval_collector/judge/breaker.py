"""Leaves a provider alone after a run of failures, and then calls it once to see whether it is back."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

_FAILS, _WINDOW_S = 3, 60.0
_PROBING_S = 1.0
"""The wait, in seconds, for calls that come while one call tests the provider."""


class Breaker:
    """Decides whether a provider may be asked. *Closed*: it may. *Open*, for ``rest`` seconds after three failures
    in a row within a minute: it may not. *Half open*, after that: one call may, whose success closes the breaker and
    whose failure opens it again. ``clock``: seconds. On one event loop."""

    def __init__(self, rest: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._rest, self._clock = rest, clock
        self._failures: deque[float] = deque(maxlen=_FAILS)
        self._open_until: float | None = None
        self._probing = False

    @property
    def is_closed(self) -> bool:
        return self._open_until is None

    def closed_in(self) -> float:
        """Asks to make a call. Returns 0 if it may be made, also as the one test of an open breaker; its outcome must
        be reported. Else returns the seconds after which to ask again."""
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
        """Reports that the provider answered, whatever it said."""
        self._failures.clear()
        self._open_until, self._probing = None, False

    def failed(self, rest: float | None = None) -> None:
        """Reports a call that failed over the provider. ``rest``: seconds that the provider asked to wait, if any."""
        now = self._clock()
        self._failures.append(now)
        whole = len(self._failures) == self._failures.maxlen and now - self._failures[0] <= _WINDOW_S
        if self._probing or whole:
            self._open_until = now + max(self._rest, rest or 0.0)
        self._probing = False

    def left(self) -> None:
        """Reports a call that ended without saying anything about the provider: cancelled, or not allowed."""
        self._probing = False
