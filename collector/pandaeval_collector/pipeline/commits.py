"""Decisions, one after the other: made on the line's own thread, committed, told to whoever has to know."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol, TypeVar

from pandaeval_collector.base.runtime import failpoints
from pandaeval_collector.pipeline.line.decision import Decision
from pandaeval_collector.store import ResultRow, Store

T = TypeVar("T")


class Patiently(Protocol):
    """Repeats work while the store fails."""

    async def __call__(self, work: Callable[[], Awaitable[T]], /) -> T: ...


class Committer:
    """Makes and commits decisions. On one event loop, with a thread of its own for the line."""

    def __init__(
        self,
        store: Store,
        patiently: Patiently,
        on_committed: Callable[[Decision, Sequence[ResultRow]], None],
    ) -> None:
        """``on_committed`` is called after each commit, in order, with the results that are new."""
        self._store, self._patiently, self._on_committed = store, patiently, on_committed
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="pandaeval-line")
        self._turn = asyncio.Lock()
        self._under_way: set[asyncio.Task[None]] = set()

    async def commit(self, decide: Callable[[], Decision]) -> None:
        """Has a decision made and committed, in the order of asking; each is made on what those before left behind.
        What was begun is finished even if the caller is gone. Raises what ``decide`` and the commit raise."""
        task = asyncio.create_task(self._commit(decide))
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)
        await asyncio.shield(task)

    async def on_thread(self, work: Callable[[], T]) -> T:
        """Runs ``work`` on the line's thread."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    async def close(self) -> None:
        """Waits for the decisions that are being made, then ends the line's thread."""
        await asyncio.gather(*self._under_way, return_exceptions=True)
        self._thread.shutdown()

    async def _commit(self, decide: Callable[[], Decision]) -> None:
        async with self._turn:
            decision = await self._patiently(lambda: self.on_thread(decide))
            failpoints.reach("after_decide")
            rows = await self._patiently(lambda: asyncio.wrap_future(self._store.commit(decision.changes)))
            failpoints.reach("after_decision_commit")
            self._on_committed(decision, rows)
