"""Limited reads on threads, skipped if the client has the newest answer."""

from __future__ import annotations

import asyncio
import functools
import hashlib
import inspect
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakValueDictionary

from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from pandaeval_collector.store.connection import TooSlowError
from pandaeval_collector.store.finding import Finder

if TYPE_CHECKING:
    from fastapi import FastAPI

T = TypeVar("T")

_THREADS = 2
"""Maximum concurrent reads. More reads would slow down scoring."""

_LARGE_WAITING = 16


class Reads:
    """Runs store reads on threads, for one event loop."""

    def __init__(self, finder: Finder) -> None:
        self.finder = finder
        self._renderings: WeakValueDictionary[str, asyncio.Future[bytes]] = WeakValueDictionary()
        self._one_large, self.large_waiting = asyncio.Semaphore(1), 0
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="pandaeval-api")

    async def run(self, read: Callable[[], T]) -> T:
        """Run ``read`` on a thread; return its result or raise its error."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, read)

    def operation(
        self, app: FastAPI, path: str, summary: str, *, large: bool = False, tagged: bool = True
    ) -> Callable[[Callable[..., BaseModel]], object]:
        """Return a decorator that answers GET at ``path`` with a function, on a thread.

        ``tagged``: see :meth:`answer`, else :meth:`fresh`.
        """

        def added(read: Callable[..., BaseModel]) -> object:
            async def answer(request: Request, **given: Any) -> Response:
                asked = functools.partial(read, **given)
                return await (self.answer(request, asked, large=large) if tagged else self.fresh(asked))

            own, keyword = inspect.signature(read, eval_str=True), inspect.Parameter.KEYWORD_ONLY
            request = inspect.Parameter("request", keyword, annotation=Request)
            parameters = [request, *(each.replace(kind=keyword) for each in own.parameters.values())]
            answer.__name__, answer.__signature__ = read.__name__, inspect.Signature(parameters)  # type: ignore[attr-defined]
            return app.get(path, response_model=own.return_annotation, summary=summary)(answer)

        return added

    async def answer(
        self, request: Request, read: Callable[[], BaseModel], beside: object = "", large: bool = False
    ) -> Response:
        """Return the result as JSON with an entity tag, or 304.

        Equal concurrent requests share an answer. ``beside``: data that changes without the store. ``large``: make one
        such answer at a time.
        """
        state = await self.run(self.finder.change)
        path = f"{request.url.path}?{request.url.query}"
        asked = hashlib.blake2b(f"{state} {path} {beside}".encode(), digest_size=12).hexdigest()
        headers = {"etag": f'W/"{asked}"', "cache-control": "no-cache, private", "x-content-type-options": "nosniff"}
        if headers["etag"] in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers=headers)
        rendering = self._renderings.get(asked)
        if rendering is None:
            rendering = self._renderings[asked] = asyncio.ensure_future(self._rendered(read, large))
            rendering.add_done_callback(
                lambda made: made.cancelled() or made.exception()
            )  # perhaps no caller waits for it
        return Response(await asyncio.shield(rendering), headers=headers, media_type="application/json")

    async def _rendered(self, read: Callable[[], BaseModel], large: bool) -> bytes:
        if not large:
            return await self.run(lambda: _json(read))
        if self.large_waiting >= _LARGE_WAITING:
            raise TooSlowError("too many large requests: try again in a few seconds")
        self.large_waiting += 1
        try:
            async with self._one_large:
                return await self.run(lambda: _json(read))
        finally:
            self.large_waiting -= 1

    async def fresh(self, read: Callable[[], BaseModel]) -> Response:
        """Return the result as uncacheable JSON."""
        body = await self.run(lambda: _json(read))
        return Response(body, headers={"cache-control": "no-store"}, media_type="application/json")

    async def stream(self, pieces: Iterator[bytes], media: str, name: str) -> Response:
        """Return a file of ``pieces``, which are read one by one as the client takes them."""
        first = await self.run(lambda: next(pieces, b""))  # its errors are the answer

        async def body() -> AsyncIterator[bytes]:
            piece = first
            while piece:
                yield piece
                piece = await self.run(lambda: next(pieces, b""))

        headers = {"cache-control": "no-store", "x-content-type-options": "nosniff"}
        headers["content-disposition"] = f'attachment; filename="{name}"'
        return StreamingResponse(body(), headers=headers, media_type=media)

    def close(self) -> None:
        self._threads.shutdown(cancel_futures=True)
        self.finder.close()


def _json(read: Callable[[], BaseModel]) -> bytes:
    return read().model_dump_json().encode()
