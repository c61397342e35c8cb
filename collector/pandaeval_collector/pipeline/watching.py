"""Serves a store's results to watching clients."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

from pandaeval_collector.store import DamagedError, Store


class Watching:
    """Implements :class:`pandaeval_collector.receivers.own_grpc.ResultSource`, on one event loop with
    executor threads.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._change = asyncio.Event()
        self.closing = False

    def wake(self) -> None:
        change, self._change = self._change, asyncio.Event()
        change.set()

    async def close(self) -> None:
        """End all watches; clients resume by cursor."""
        self.closing = True
        self.wake()

    async def changed(self) -> AsyncIterator[None]:
        while not self.closing:
            change = self._change  # taken before the store is read, so that later commits are noticed
            yield
            await change.wait()

    async def newest(self) -> int:
        return await asyncio.to_thread(self._store.reads.newest_seq)

    async def after(self, cursor: int, limit: int) -> Sequence[tuple[int, bytes]]:
        try:
            rows = await asyncio.to_thread(self._store.reads.results_after, cursor, limit)
        except DamagedError as error:  # the outboxes log it; a watcher continues after the damage
            return await self.after(error.seq, limit)
        return [(row.seq, row.body) for row in rows]
