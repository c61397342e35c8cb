"""Decides due traces in batches: a worker scores them, and this process commits without reading content.

If a worker fails on a batch, each trace is retried alone. A trace that fails alone is quarantined.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from functools import partial
from typing import Any, TypeVar

from pandaeval_collector.base.isolated import Isolated
from pandaeval_collector.base.runtime import failpoints
from pandaeval_collector.base.runtime.peer import ChildEndedError
from pandaeval_collector.base.telemetry import Telemetry
from pandaeval_collector.pipeline.decision import Decision
from pandaeval_collector.pipeline.line_processes import MOST_DEATHS, HeldBatch, LineProcesses
from pandaeval_collector.store import ResultRow, Store
from pandaeval_otel.assembly import DueTrace

_log = logging.getLogger(__name__)

BATCH_TRACES = 256
"""Maximum traces in a batch. Large batches save time for long sessions, but need memory."""
BATCH_BYTES = 4 << 20
"""Bytes of spans after which a batch takes no more traces."""
RETRY_SECONDS = 1.0
T = TypeVar("T")


class Committer:
    """Makes and commits decisions in order on an event loop. After ``stopping``, it does not retry store errors."""

    def __init__(
        self, store: Store, telemetry: Telemetry, on_committed: Callable[[Decision, Sequence[ResultRow]], None]
    ) -> None:
        """``on_committed`` gets the new results of each commit, in order."""
        self._store, self._telemetry, self._on_committed = store, telemetry, on_committed
        self._turn = asyncio.Lock()
        self._under_way: set[asyncio.Task[None]] = set()
        self.stopping = False

    async def commit(self, decide: Callable[[], Awaitable[Decision]]) -> None:
        """Make and commit a decision, in call order, even if cancelled. Raises errors of ``decide`` and the commit."""
        await asyncio.shield(self.begin(self._commit(decide)))

    def begin(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)
        return task

    async def _commit(self, decide: Callable[[], Awaitable[Decision]]) -> None:
        async with self._turn:
            decision = await self.patiently(decide)
            failpoints.reach("after_decide")
            rows = await self.patiently(lambda: asyncio.wrap_future(self._store.commit(decision.changes)))
            failpoints.reach("after_decision_commit")
            self._on_committed(decision, rows)

    async def together(
        self,
        items: Sequence[T],
        decide: Callable[[Sequence[T]], Awaitable[Decision]],
        failed: Callable[[T, Exception], None],
    ) -> list[T]:
        """Decide ``items`` together, or singly if that raises.

        Calls ``failed`` for items that raise alone, and returns them.
        """
        parts, raising = Isolated(items), list[T]()
        for part in parts:
            try:
                await self.commit(partial(decide, part))
            except Exception as error:
                if self.stopping:
                    raise
                if not parts.split():
                    failed(part[0], error)
                    raising += part
        return raising

    async def patiently(self, work: Callable[[], Awaitable[T]]) -> T:
        """Repeat ``work`` every second until the store works."""
        while True:
            try:
                return await work()
            except sqlite3.OperationalError as error:
                _log.error("the store fails (%s); trying again in %.0f s", error, RETRY_SECONDS)
                self._telemetry.add("pandaeval.store.errors", "retried")
                if self.stopping:
                    raise
                await asyncio.sleep(RETRY_SECONDS)

    async def or_left(self, work: Awaitable[None], what: str) -> None:
        """Await ``work``. If it fails, log the exception; the next start repeats the work."""
        try:
            await work
        except Exception:  # any exception: the pipeline must continue with other traces
            if self.stopping:
                raise
            _log.exception("%s could not be dealt with before the next start", what)
            self._telemetry.add("pandaeval.store.errors", "left")

    async def close(self) -> None:
        await asyncio.gather(*self._under_way, return_exceptions=True)


class TraceDecider:
    """Decides the due traces of a pipeline, on one event loop."""

    def __init__(
        self,
        line: LineProcesses,
        committer: Committer,
        telemetry: Telemetry,
        on_decided: Callable[[DueTrace], None],
    ) -> None:
        self._line, self._committer, self._telemetry, self._on_decided = line, committer, telemetry, on_decided
        self._ahead: deque[tuple[Sequence[DueTrace], asyncio.Task[HeldBatch]]] = deque()

    async def step(self, take: Callable[[int, int], Sequence[DueTrace]]) -> int:
        """Start as many batches from ``take`` as possible, and decide the oldest. Returns its number of traces."""
        while len(self._ahead) < self._line.room and (due := take(BATCH_TRACES, BATCH_BYTES)):
            self._ahead.append((due, asyncio.create_task(self._understood(due))))
        if not self._ahead:
            return 0
        due, understood = self._ahead.popleft()
        await self._committer.or_left(self._decide(due, understood), f"{len(due)} traces")
        return len(due)

    async def drop(self) -> None:
        tasks = [understood for _, understood in self._ahead]
        self._ahead.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _understood(self, due: Sequence[DueTrace]) -> HeldBatch:
        return await self._committer.patiently(lambda: self._line.understand(due))

    async def _decide(self, due: Sequence[DueTrace], understood: Awaitable[HeldBatch]) -> None:
        parts = Isolated(due)
        for part in parts:
            error = await self._attempt(part, understood if part is due else self._understood(part))
            if error is not None:
                if parts.split():
                    continue
                await self._set_aside(part[0], error)
            self._note(part)

    async def _attempt(self, due: Sequence[DueTrace], understood: Awaitable[HeldBatch]) -> Exception | None:
        """Decide traces; return the error, if any.

        Repeats a single trace until a process hangs, or :data:`MOST_DEATHS` processes ended because of the trace.
        """
        deaths = 0
        while True:
            failpoints.reach("before_decide")
            try:
                held = await understood
                await self._committer.commit(partial(self._line.file, due, held))
            except ChildEndedError as error:
                if self._committer.stopping:
                    raise
                deaths += error.over_it
                if error.over_it and (len(due) > 1 or error.hung or deaths == MOST_DEATHS):
                    return error
                understood = self._understood(due)
            except Exception as error:
                if self._committer.stopping:
                    raise
                return error
            else:
                return None

    async def _set_aside(self, trace: DueTrace, error: Exception) -> None:
        _log.error("trace %s could not be decided", trace.trace_id.hex(), exc_info=error)
        kind, why = type(error).__name__, str(error).partition("\n")[0]
        if isinstance(error, ChildEndedError):
            kind, why = "worker_hung" if error.hung else "worker_ended", str(error)
        await self._committer.commit(lambda: self._line.decide("set_aside", trace, kind, why))

    def _note(self, due: Sequence[DueTrace]) -> None:
        for trace in due:
            self._on_decided(trace)
        for trigger, number in Counter(trace.trigger.value for trace in due).items():
            self._telemetry.add("pandaeval.traces", "decided", number, trigger)
        self._telemetry.add("pandaeval.items", "decided", sum(trace.new_items for trace in due))
