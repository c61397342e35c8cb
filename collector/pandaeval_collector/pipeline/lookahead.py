"""Has batches of due traces understood ahead of time, while earlier batches are filed: in order, and only as many as
memory allows."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from pandaeval_collector.pipeline.line.understanding import Ready, Understanding, Understands
from pandaeval_collector.pipeline.underway import UnderWay
from pandaeval_otel.assembly import DueTrace


class InProcess:
    """Implements :class:`Understands` in this process: it understands a batch when the batch is filed, nothing
    ahead."""

    room = 1

    def __init__(self, understanding: Understanding) -> None:
        self._understanding = understanding

    async def of(self, due: Sequence[DueTrace]) -> Ready:
        """See :class:`Understands`."""
        return lambda: self._understanding.of(due)

    def stop(self) -> None:
        """See :class:`Understands`."""


@dataclass(frozen=True, slots=True)
class DueBatch:
    """A batch of due traces; ``ready`` is done when they can be filed."""

    due: Sequence[DueTrace]
    ready: asyncio.Task[Ready]


class Ahead:
    """The batches that are being understood, oldest first. On one event loop."""

    def __init__(
        self,
        understands: Understands,
        patiently: Callable[[Callable[[], Awaitable[Ready]]], Awaitable[Ready]],
        under_way: UnderWay,
    ) -> None:
        """``patiently`` repeats work while the store fails; ``under_way`` is told which traces begin."""
        self._understands, self._patiently, self._under_way = understands, patiently, under_way
        self._batches: deque[DueBatch] = deque()

    def fill(self, take: Callable[[], Sequence[DueTrace]]) -> None:
        """Begins batches of the traces that ``take`` returns until ``understands`` has no room or ``take`` returns
        none."""
        while len(self._batches) < self._understands.room and (due := take()):
            self._batches.append(self.begin(due))

    def next(self) -> DueBatch | None:
        """Removes and returns the oldest batch, to be filed now; ``None`` when there is none."""
        return self._batches.popleft() if self._batches else None

    def begin(self, due: Sequence[DueTrace]) -> DueBatch:
        """Begins a batch outside of the queue, for the caller to file."""
        self._under_way.begin(each.trace_id for each in due)
        return DueBatch(due, asyncio.ensure_future(self._understand(due)))

    def stop(self) -> None:
        """Stops waiting for worker processes that may never answer."""
        self._understands.stop()

    async def drop(self) -> None:
        """Cancels and forgets all batches."""
        tasks = [batch.ready for batch in self._batches]
        self._batches.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _understand(self, due: Sequence[DueTrace]) -> Ready:
        return await self._patiently(lambda: self._understands.of(due))
