"""Decisions, one after the other: made on the line's own thread, committed, told to whoever has to know.

While one is being committed the next is made already, on the store as it will be then: a commit is mostly waiting for
the disk. Nothing leaves this place before it is committed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol, TypeVar

from pandaeval_collector.line.line import Decision, Line
from pandaeval_collector.runtime import failpoints
from pandaeval_collector.store import ResultRow, Store, WriteSet

T = TypeVar("T")


class Patiently(Protocol):
    """Does something again while the store fails."""

    async def __call__(self, work: Callable[[], Awaitable[T]], /) -> T: ...


class Committer:
    """Makes and commits decisions. On one event loop, with a thread of its own for the line."""

    def __init__(
        self,
        store: Store,
        line: Line,
        patiently: Patiently,
        on_committed: Callable[[Decision, Sequence[ResultRow]], None],
    ) -> None:
        """``on_committed`` is called after each commit, in order, with the results that are new."""
        self._store, self._line, self._patiently, self._on_committed = store, line, patiently, on_committed
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="pandaeval-line")
        self._deciding, self._committing = asyncio.Lock(), asyncio.Lock()
        self._coming: WriteSet | None = None
        """What is being committed."""
        self._failed = 0
        """Decisions that were made and could not be committed."""
        self._under_way: set[asyncio.Task[None]] = set()

    async def commit(self, decide: Callable[[], Decision], decided: Callable[[], None] = lambda: None) -> None:
        """Has a decision made and committed, in the order of asking; each is made on what those before leave behind.
        ``decided`` is called when only the commit is left, and the next decision can be made. What was begun is
        finished even if the caller is gone. Raises what ``decide`` and the commit raise."""
        task = asyncio.create_task(self._commit(decide, decided))
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)
        await asyncio.shield(task)

    async def on_thread(self, work: Callable[[], T]) -> T:
        """Does something on the line's thread."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    async def close(self) -> None:
        """Waits for what is under way."""
        await asyncio.gather(*self._under_way, return_exceptions=True)
        self._thread.shutdown()

    async def _commit(self, decide: Callable[[], Decision], decided: Callable[[], None]) -> None:
        async with self._deciding:
            failed = self._failed
            decision = await self._decide(decide)
            failpoints.reach("after_decide")
            await self._committing.acquire()
            try:
                if self._failed != failed:  # it may rest on one that did not come to be
                    admitted, decision = decision.changes.labels, await self._decide(decide)
                    decision.changes.labels[:0] = admitted  # those are taken up once
                self._coming = decision.changes
            except BaseException:
                self._committing.release()
                raise
        decided()
        try:
            rows = await self._patiently(lambda: asyncio.wrap_future(self._store.commit(decision.changes)))
            failpoints.reach("after_decision_commit")
            self._on_committed(decision, rows)
        except BaseException:
            self._failed += 1
            raise
        finally:
            self._coming = None
            self._committing.release()

    async def _decide(self, decide: Callable[[], Decision]) -> Decision:
        def work() -> Decision:
            coming = self._coming
            if coming is None:
                return decide()
            with self._line.after(coming):
                return decide()

        return await self._patiently(lambda: self.on_thread(work))


class Turns:
    """Pieces of work that begin in order, two of them under way at most. On one event loop."""

    def __init__(self) -> None:
        self._latest: asyncio.Task[None] | None = None

    async def begin(self, work: Coroutine[Any, Any, None]) -> None:
        """Returns when all that was begun before is done. Raises what the one before raised."""
        before, self._latest = self._latest, asyncio.create_task(work)
        if before is not None:
            await before

    async def rest(self) -> None:
        """Returns when all is done. Raises what the last one raised."""
        latest, self._latest = self._latest, None
        if latest is not None:
            await latest
