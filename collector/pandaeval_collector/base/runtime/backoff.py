"""Waiting: how long before trying again, until somebody calls, and for a task that was told to end."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Callable


class Backoff:
    """Computes waiting times with full jitter: a random time below a ceiling that doubles with every failure, so that
    many collectors do not come back at the same moment. Seconds."""

    def __init__(
        self, first: float = 0.5, longest: float = 30.0, uniform: Callable[[float, float], float] = random.uniform
    ) -> None:
        self._first, self._longest, self._uniform = first, longest, uniform
        self._ceiling = first

    def succeeded(self) -> None:
        self._ceiling = self._first

    def failed(self, asked: float | None = None) -> float:
        """Notes a failure and returns how long to wait now, no less than what was ``asked`` for."""
        jitter = self._uniform(0.0, self._ceiling)
        self._ceiling = min(2 * self._ceiling, self._longest)
        return (asked or 0.0) + jitter


class Bell:
    """A sleep that another task can end early."""

    def __init__(self) -> None:
        self._rung = asyncio.Event()

    def ring(self) -> None:
        self._rung.set()

    async def sleep(self, seconds: float) -> None:
        """Sleeps until the bell is rung, at most ``seconds``."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._rung.wait(), seconds)
        self._rung.clear()


async def finish(task: asyncio.Task[None], seconds: float) -> None:
    """Waits for a task that was told to end, and cancels it if it does not end in time."""
    _, pending = await asyncio.wait({task}, timeout=seconds)
    if pending:
        task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
