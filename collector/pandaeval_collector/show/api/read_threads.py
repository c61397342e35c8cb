"""Reads for the API: on a few threads of their own, at most so many at a time, and not at all where the asker has the
newest answer already."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import Response

from pandaeval_collector.store.finding import Finder

T = TypeVar("T")

_THREADS = 2
"""Reads at a time: more would take the interpreter from the line."""


class Reads:
    """Runs reads. On one event loop; the reads themselves on threads."""

    def __init__(self, finder: Finder) -> None:
        self.finder = finder
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="pandaeval-api")

    async def run(self, read: Callable[[], T]) -> T:
        """What ``read`` returns or raises."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, read)

    async def answer(self, request: Request, read: Callable[[], BaseModel], beside: object = "") -> Response:
        """The JSON of what ``read`` returns, under an entity tag of the store's state and the question; 304 without a
        read where the asker has it. ``beside``: what the answer tells besides, which changes without the store."""
        state = await self.run(self.finder.change)
        asked = hashlib.blake2b(f"{state} {request.url} {beside}".encode(), digest_size=12).hexdigest()
        headers = {"etag": f'W/"{asked}"', "cache-control": "no-cache, private", "x-content-type-options": "nosniff"}
        if headers["etag"] in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers=headers)
        body = await self.run(lambda: read().model_dump_json().encode())
        return Response(body, headers=headers, media_type="application/json")

    async def fresh(self, read: Callable[[], BaseModel]) -> Response:
        """The JSON of what ``read`` returns, which is not to be kept."""
        body = await self.run(lambda: read().model_dump_json().encode())
        return Response(body, headers={"cache-control": "no-store"}, media_type="application/json")

    def close(self) -> None:
        """Ends the threads and closes their connections."""
        self._threads.shutdown(cancel_futures=True)
        self.finder.close()
