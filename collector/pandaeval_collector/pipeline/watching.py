"""Serves the results of a store to clients that watch for new ones."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

from pandaeval_collector.store import DamagedError, Store


class Watching:
    """Implements :class:`pandaeval_collector.receivers.own_grpc.ResultSource`. One event loop; the store is read on
    threads of the loop's executor."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._change = asyncio.Event()
        self.closing = False

    def wake(self) -> None:
        """Notify the watchers that results were committed."""
        change, self._change = self._change, asyncio.Event()
        change.set()

    async def close(self) -> None:
        """End all watches; the clients know the cursor to come back with."""
        self.closing = True
        self.wake()

    async def changed(self) -> AsyncIterator[None]:
        """See :class:`ResultSource`."""
        while not self.closing:
            change = self._change  # taken before the store is read: what is committed meanwhile is not missed
            yield
            await change.wait()

    async def newest(self) -> int:
        """See :class:`ResultSource`."""
        return await asyncio.to_thread(self._store.reads.newest_seq)

    async def after(self, cursor: int, limit: int) -> Sequence[tuple[int, bytes]]:
        """See :class:`ResultSource`."""
        try:
            rows = await asyncio.to_thread(self._store.reads.results_after, cursor, limit)
        except DamagedError as error:  # the outboxes log it; a watcher goes on behind it
            return await self.after(error.seq, limit)
        return [(row.seq, row.body) for row in rows]
