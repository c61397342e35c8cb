"""Lets the first call of those that begin alike go ahead of the others, so that they find its beginning cached.

A provider has a beginning in its cache once a call with it was read. Calls about one trace that are made at the same
time would all miss it.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

_REMEMBER = 1024
"""Beginnings that were sent; providers forget them after some minutes."""


class FirstCalls:
    """Beginnings that are under way, and those that were. On one event loop."""

    def __init__(self) -> None:
        self._under_way: dict[str, asyncio.Event] = {}
        self._sent: OrderedDict[str, None] = OrderedDict()

    @asynccontextmanager
    async def behind(self, beginning: str) -> AsyncIterator[None]:
        """Waits while the first call with this beginning is under way, however that ends."""
        if beginning in self._sent:
            yield
        elif (first := self._under_way.get(beginning)) is not None:
            await first.wait()
            yield
        else:
            async with self._first(beginning):
                yield

    @asynccontextmanager
    async def _first(self, beginning: str) -> AsyncIterator[None]:
        done = self._under_way[beginning] = asyncio.Event()
        try:
            yield
        finally:
            del self._under_way[beginning]
            self._sent[beginning] = None
            while len(self._sent) > _REMEMBER:
                self._sent.popitem(last=False)
            done.set()
