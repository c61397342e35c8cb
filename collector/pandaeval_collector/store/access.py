"""Access to the store: each process reads directly, and writes through the main process."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from concurrent.futures import Future
from typing import Any, TypeVar

from pandaeval_collector.base.runtime.peer import Peer
from pandaeval_collector.store.clock import StoreClock
from pandaeval_collector.store.deleting import Deletions
from pandaeval_collector.store.jobs import Jobs
from pandaeval_collector.store.people import People
from pandaeval_collector.store.reader import StoreReader
from pandaeval_collector.store.runs import RunTable
from pandaeval_collector.store.schedules import Schedules
from pandaeval_collector.store.spending import Spending
from pandaeval_collector.store.table import StoreTable, Writes, written
from pandaeval_collector.store.triage import TriageTable
from pandaeval_collector.store.verdicts import Verdicts

T = TypeVar("T")

JUDGE_TABLES = {"Jobs", "Spending", "StoreAccess", "Verdicts"}
"""Tables that the judge process may change, through the main process."""
READER_TABLES = {"Deletions", "People", "RunTable", "Schedules", "Spending", "TriageTable", "Verdicts"}
"""Tables that the reader may change, through the main process."""


class StoreAccess(StoreTable):
    def __init__(self, reads: StoreReader, writes: Writes, clock: StoreClock) -> None:
        super().__init__(reads.connection, writes, clock)
        self.path, self.reads, self.clock = reads.path, reads, clock
        parts = reads.connection, writes, clock
        self.jobs, self.runs, self.schedules = Jobs(*parts), RunTable(*parts), Schedules(*parts)
        self.verdicts, self.spending, self.people = Verdicts(*parts), Spending(*parts), People(*parts)
        self.triage, self.deletions = TriageTable(*parts), Deletions(*parts)

    @written
    def put(self, connection: sqlite3.Connection, key: str, value: str) -> None:
        connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))


class FrontWrites:
    """Implements :class:`Writes` in a child process. Create it on the event loop."""

    def __init__(self, front: Peer) -> None:
        self._front, self._loop = front, asyncio.get_running_loop()

    def write(
        self, work: Callable[..., T], table: StoreTable, arguments: Sequence[Any], options: Mapping[str, Any]
    ) -> Future[T]:
        asked = self._front.ask("write", work.__qualname__, arguments, options)
        return asyncio.run_coroutine_threadsafe(asked, self._loop)


def writing(store: StoreAccess, allowed: Collection[str]) -> Callable[..., Awaitable[Any]]:
    """Return the main process's handler of write requests. ``allowed``: the permitted tables."""
    parts = (store.jobs, store.runs, store.schedules, store.verdicts, store.spending, store.people, store.triage)
    tables: dict[str, StoreTable] = {type(table).__name__: table for table in (*parts, store.deletions)}
    tables[StoreAccess.__name__] = store

    async def write(_: Any, name: str, arguments: Sequence[Any], options: Mapping[str, Any]) -> Any:
        table, _, method = name.partition(".")
        if table not in allowed or not hasattr(getattr(type(tables[table]), method, None), "__wrapped__"):
            raise PermissionError(f"this process may not have {name} written")
        return await asyncio.wrap_future(getattr(tables[table], method)(*arguments, **options))

    return write
