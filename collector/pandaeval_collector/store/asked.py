"""The store as the child processes of a collector have it: they read it themselves, and have the front write."""

from __future__ import annotations

import asyncio
import functools
import operator
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any, cast

from pandaeval_collector.base.runtime.calls import Peer
from pandaeval_collector.store.clock import StoreClock
from pandaeval_collector.store.jobs import Jobs, Spending, Verdicts
from pandaeval_collector.store.people import People
from pandaeval_collector.store.reader import StoreReader
from pandaeval_collector.store.runs import RunTable, Schedules
from pandaeval_collector.store.store import Store

_CALLS = {"spending.reserve", "spending.settle", "verdicts.keep"}
JUDGE_WRITES = frozenset(
    {
        *_CALLS,
        "jobs.lease",
        "jobs.lease_old",
        "jobs.put_back",
        "jobs.release_all",
        "put",
        "runs.stand",
        "spending.settle_all",
    }
)
"""What the judge's process may have written, by the name of the store's method."""
READER_WRITES = frozenset(
    {
        *_CALLS,
        "people.keep_draws",
        "people.put",
        *(f"runs.{name}" for name in ("add", "begin", "cancel", "create", "end", "plan", "retry")),
        *(f"schedules.{name}" for name in ("add", "fire", "pause", "remove")),
    }
)
"""What the reader may have written."""


def writing(store: Store, allowed: frozenset[str]) -> Callable[..., Awaitable[Any]]:
    """Returns the front's handler of a child's requests to write; the child may ask for what ``allowed`` names."""

    async def write(_: Any, name: str, arguments: Any, options: Any) -> Any:
        if name not in allowed:
            raise PermissionError(f"this process may not have {name} written")
        return await asyncio.wrap_future(operator.attrgetter(name)(store)(*arguments, **options))

    return write


def asked_store(path: Path, clock: StoreClock, front: Peer, writes: frozenset[str]) -> Store:
    """Returns what stands in for the store in a child. ``writes``: what is asked of the front. On the event loop."""
    return cast(Store, _AskedStore(path, clock, front, writes))


_TABLES = {
    "jobs": Jobs,
    "people": People,
    "runs": RunTable,
    "schedules": Schedules,
    "spending": Spending,
    "verdicts": Verdicts,
}


class _AskedStore:
    def __init__(self, path: Path, clock: StoreClock, front: Peer, writes: frozenset[str]) -> None:
        self.path, self.clock, self.reads = path, clock, StoreReader(path)
        self.get = self.reads.get
        self._front, self._loop = front, asyncio.get_running_loop()
        for name, table in _TABLES.items():
            setattr(self, name, _AskedTable(name, table(self.reads.connection), writes, self._write))

    def put(self, key: str, value: str) -> Future[Any]:
        return self._write("put", key, value)

    def _write(self, name: str, *arguments: Any, **options: Any) -> Future[Any]:
        return asyncio.run_coroutine_threadsafe(self._front.ask("write", name, arguments, options), self._loop)


class _AskedTable:
    """The tables of one subject: what is read is read here, and what writes is asked of the front, by its name."""

    def __init__(self, name: str, reads: Any, writes: frozenset[str], write: Callable[..., Future[Any]]) -> None:
        self._name, self._reads, self._writes, self._write = name, reads, writes, write

    def __getattr__(self, name: str) -> Any:
        asked = f"{self._name}.{name}"
        if asked not in self._writes:
            return getattr(self._reads, name)
        return functools.partial(self._write, asked)
