"""Manual event loop, threads and store writer."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import Context, ContextVar
from typing import Any

from pandaeval_collector.store.commits import Writer

LIFE: ContextVar[Any] = ContextVar("LIFE", default=None)
"""The life that the running code belongs to."""
_ENDLESS = 100_000


class SteppedLoop(asyncio.SelectorEventLoop):
    """An event loop with manual time. Records each task's life."""

    def __init__(self) -> None:
        super().__init__()
        self._now = 0.0
        self.tasks: dict[asyncio.Task[Any], Any] = {}
        self.set_default_executor(InlineExecutor())
        self.set_task_factory(self._begin)

    def time(self) -> float:
        return self._now

    def advance(self, seconds: float) -> None:
        self._now += seconds
        self.settle()

    def settle(self) -> None:
        """Run until every task waits."""
        for _ in range(_ENDLESS):
            self.call_soon(self.stop)
            self.run_forever()
            if not self._ready and not self._is_due():  # type: ignore[attr-defined]
                return
        raise AssertionError("the tasks of the event loop wake each other for ever")

    def _is_due(self) -> bool:
        timers = self._scheduled  # type: ignore[attr-defined]
        return any(not each.cancelled() and each.when() <= self._now for each in timers)

    def _begin(self, loop: Any, coro: Any, context: Context | None = None) -> asyncio.Task[Any]:
        task: asyncio.Task[Any] = asyncio.Task(coro, loop=loop, context=context)
        self.tasks[task] = LIFE.get() if context is None else context.get(LIFE)
        task.add_done_callback(self.tasks.pop)
        return task


class InlineExecutor(ThreadPoolExecutor):
    """Runs work immediately on the caller's thread."""

    def __init__(self, *_: Any, **__: Any) -> None:
        super().__init__(1)

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        done: Future[Any] = Future()
        try:
            done.set_result(fn(*args, **kwargs))
        except Exception as error:
            done.set_exception(error)
        return done


class SteppedWriter(Writer):
    """The store's writer without a thread; :meth:`step` commits one group.

    ``at_once``: commit immediately, as constructors need.
    """

    _connection: sqlite3.Connection
    at_once = True

    def start(self) -> None:
        self._connection = self._connect()

    def _submit(self, job: Any) -> Future[Any]:
        future = super()._submit(job)
        if self.at_once and not self._closed:
            self.step()
        return future

    def step(self) -> None:
        """Commit waiting work in one transaction."""
        group = self._next_group() if self._queue.qsize() else None
        if jobs := [job for job in group or () if job.future.set_running_or_notify_cancel()]:
            self._commit(self._connection, jobs)

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._connection.close()
