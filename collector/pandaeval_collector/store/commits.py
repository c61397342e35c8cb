"""A writer thread with group commit: waiting work shares a transaction and an fsync.

Failed work is undone alone.
"""

from __future__ import annotations

import itertools
import logging
import queue
import sqlite3
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, TypeVar

from pandaeval_collector.base.runtime import failpoints

_log = logging.getLogger(__name__)

T = TypeVar("T")
Work = Callable[[sqlite3.Connection], Any]
Together = Callable[[sqlite3.Connection, Sequence[Any]], None]

_MAX_GROUP = 512
_NOT_WRITTEN = (sqlite3.OperationalError, sqlite3.DatabaseError)
"""Only these exact classes mean a full or failing disk, or a damaged file. Subclasses are errors of the work."""


@dataclass(slots=True)
class _Job:
    future: Future[Any]
    work: Work | None = None
    together: Together | None = None
    item: Any = None


class Writer:
    """Runs work in order on the store's only writing connection. Any thread."""

    def __init__(
        self,
        connect: Callable[[], sqlite3.Connection],
        on_error: Callable[[Exception], object] = lambda _: None,
    ) -> None:
        """Call ``on_error`` on the writer's thread with every error."""
        self._connect, self._on_error = connect, on_error
        self._queue: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="pandaeval-store", daemon=True)
        self._started: Future[None] = Future()
        self._closed = False
        self._lock = threading.Lock()
        self.commits = 0
        self.failing = ""
        """What kept the last transaction from being written, as SQLite says it; empty after one that was."""

    def start(self) -> None:
        """Open the connection on the writer's thread; raise its errors."""
        self._thread.start()
        self._started.result()

    def submit(self, work: Work) -> Future[Any]:
        """Queue ``work(connection)``.

        The future is done after the commit; it can be cancelled while it waits. After :meth:`close`, it fails.
        """
        return self._submit(_Job(Future(), work))

    def write(
        self, work: Callable[..., T], table: object, arguments: Sequence[Any], options: Mapping[str, Any]
    ) -> Future[T]:
        return self.submit(lambda connection: work(table, connection, *arguments, **options))

    def submit_item(self, together: Callable[[sqlite3.Connection, Sequence[T]], None], item: T) -> Future[None]:
        """Queue an item. Adjacent items with the same ``together`` share a call, or get single calls if it fails."""
        return self._submit(_Job(Future(), together=together, item=item))

    def waiting(self) -> int:
        return self._queue.qsize()

    def close(self) -> None:
        """Finish queued work, then close the connection. Idempotent."""
        with self._lock:
            if not self._closed:
                self._closed = True
                self._queue.put(None)
        if self._thread.is_alive():
            self._thread.join()

    def _submit(self, job: _Job) -> Future[Any]:
        with self._lock:
            if self._closed:
                job.future.set_exception(RuntimeError("the store is closed"))
            else:
                self._queue.put(job)
        return job.future

    def _run(self) -> None:
        try:
            connection = self._connect()
        except Exception as error:  # noqa: BLE001 - start() raises it, not this thread
            self._started.set_exception(error)
            return
        self._started.set_result(None)
        try:
            while (group := self._next_group()) is not None:
                if jobs := [job for job in group if job.future.set_running_or_notify_cancel()]:
                    self._commit(connection, jobs)
        finally:
            connection.close()

    def _next_group(self) -> list[_Job] | None:
        first = self._queue.get()
        if first is None:
            return None
        group = [first]
        while len(group) < _MAX_GROUP:
            try:
                job = self._queue.get_nowait()
            except queue.Empty:
                break
            if job is None:
                self._queue.put(None)  # ends the thread after the queued work
                break
            group.append(job)
        return group

    def _commit(self, connection: sqlite3.Connection, jobs: list[_Job]) -> None:
        try:
            connection.execute("BEGIN IMMEDIATE")
            values = [*_done(connection, jobs)]
            failpoints.reach("before_commit")
            connection.execute("COMMIT")
        except Exception as error:  # noqa: BLE001 - the callers get the error
            if connection.in_transaction:
                try:
                    connection.execute("ROLLBACK")
                except sqlite3.Error:  # the next BEGIN reports it; this thread must survive a failing disk
                    _log.exception("a transaction could not be rolled back")
            if type(error) in _NOT_WRITTEN:
                self.failing = str(error)
            if len(jobs) == 1:
                self._on_error(error)
                jobs[0].future.set_exception(error)
            else:
                half = len(jobs) // 2  # finds a failing job with a few commits, not one per job
                self._commit(connection, jobs[:half])
                self._commit(connection, jobs[half:])
            return
        self.failing = ""
        failpoints.reach("after_commit")
        self.commits += 1
        for job, value in zip(jobs, values, strict=True):
            job.future.set_result(value)


def _done(connection: sqlite3.Connection, jobs: Sequence[_Job]) -> Iterator[Any]:
    for together, alike in itertools.groupby(jobs, attrgetter("together")):
        if together is None:
            yield from (job.work(connection) for job in alike if job.work is not None)
        else:
            items = [job.item for job in alike]
            together(connection, items)
            yield from (None for _ in items)
