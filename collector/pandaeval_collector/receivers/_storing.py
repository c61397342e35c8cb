"""Storing goes on when the sender of a request hangs up."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class Storing:
    """What a door is storing. On one event loop."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()

    async def whole(self, work: Coroutine[Any, Any, T]) -> T:
        """What ``work`` returns or raises, as a task of its own: a sender that hangs up, and so cancels this call, must
        neither cut a commit short nor free the bytes of its request before."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        try:
            return await asyncio.shield(task)
        finally:
            del task  # its error knows this frame: together they would keep the request until the garbage is collected

    async def finish(self, timeout_s: float) -> None:
        """Returns when all is stored, or after so many seconds."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=timeout_s)
