"""Periodic background work and retry delays."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import sqlite3
from collections.abc import Awaitable, Callable

from pandaeval_collector.base.errors import UserError

_log = logging.getLogger(__name__)

_FAILED_S = 2.0
"""The shortest pause after a round that failed."""


class Backoff:
    """Computes delays in seconds with full jitter: random, below a ceiling that doubles with every failure."""

    def __init__(self, first: float = 0.5, longest: float = 30.0) -> None:
        self._first, self._longest, self._ceiling = first, longest, first

    def succeeded(self) -> None:
        self._ceiling = self._first

    def failed(self, asked: float | None = None) -> float:
        """Record a failure and return the delay, at least ``asked``."""
        jitter = random.uniform(0.0, self._ceiling)
        self._ceiling = min(2 * self._ceiling, self._longest)
        return (asked or 0.0) + jitter


class Every:
    """Runs ``work`` now, and ``interval`` or the returned seconds after each end.

    Logs exceptions. For a single event loop.
    """

    def __init__(
        self,
        interval: float,
        work: Callable[[], Awaitable[float | None]],
        name: str,
        *,
        last: bool = False,
        grace: float | None = None,
    ) -> None:
        """``last``: run once more at the stop. ``grace``: seconds until a stop cancels; ``None``: never."""
        self._interval, self._work, self._name, self._last, self._grace = interval, work, name, last, grace
        self._rung = asyncio.Event()
        self.is_last = False
        """Whether the current or next round is the last."""
        self._task = asyncio.create_task(self._run(), name=name)

    def ring(self) -> None:
        """Begin the next round now, or right after the current round."""
        self._rung.set()

    async def stop(self) -> None:
        self.is_last = True
        self._rung.set()
        _, pending = await asyncio.wait({self._task}, timeout=self._grace)
        if pending:
            self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task

    async def _run(self) -> None:
        while not (is_last := self.is_last) or self._last:
            self._rung.clear()
            wait = self._interval
            try:
                asked = await self._work()
                wait = wait if asked is None else asked
            except Exception as error:  # noqa: BLE001 - the next round can succeed, and other work continues
                is_known = isinstance(error, sqlite3.Error | OSError | UserError)
                _log.error("%s: %s; trying again", self._name, error, exc_info=not is_known)
                wait = max(wait, _FAILED_S)
            if is_last:
                return
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._rung.wait(), wait)
