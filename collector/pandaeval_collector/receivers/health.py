"""Health and own metrics on a separate listener without content."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable, Collection, Mapping

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from pandaeval_collector.base.untrusted.foreign_pages import HOSTS_TOLD, is_known_host

_LONGEST_S = 120.0
"""Maximum seconds for an answer, longer than any scrape waits. After it, the connection is closed."""

Answer = Callable[[str], tuple[str, AsyncGenerator[bytes, None]]]


class Streaming:
    """Streams answers of ``answer`` for the ``accept`` header. Above ``at_once`` requests, returns 503."""

    def __init__(self, answer: Answer, longest_s: float = _LONGEST_S, at_once: int = 16) -> None:
        self._answer, self.longest_s, self._at_once = answer, longest_s, at_once
        self.under_way = 0

    async def __call__(self, request: Request) -> ASGIApp:
        if self.under_way >= self._at_once:
            busy = "too many requests are in progress: try again in a moment\n"
            return PlainTextResponse(busy, 503, {"retry-after": "5"})
        content_type, body = self._answer(request.headers.get("accept", ""))
        if request.method == "HEAD":
            return Response(headers={"content-type": content_type})

        async def stream(_: Scope, __: Receive, send: Send) -> None:
            self.under_way += 1
            headers = [(b"content-type", content_type.encode("latin-1"))]
            try:
                async with asyncio.timeout(self.longest_s):
                    await send({"type": "http.response.start", "status": 200, "headers": headers})
                    async with contextlib.aclosing(body) as pieces:
                        async for piece in pieces:
                            if await request.is_disconnected():
                                return
                            await send({"type": "http.response.body", "body": piece, "more_body": True})
                    await send({"type": "http.response.body", "body": b"", "more_body": False})
            except TimeoutError:  # uvicorn logs and closes connections with unfinished answers
                return
            finally:
                self.under_way -= 1

        return stream


def health_app(
    ready: Callable[[], Mapping[str, bool]],
    metrics: Answer | None,
    why: Callable[[], str] = lambda: "",
    hosts: Collection[str] | None = None,
) -> Starlette:
    """Create the application for the event loop.

    ``GET /healthz``: 200. ``/readyz``: 200 if all stages of ``ready`` are ready, else 503 with stages and ``why``.
    ``/metrics``: streams ``metrics``. ``hosts``: allowed names besides addresses and localhost, against DNS rebinding;
    ``None``: any.
    """
    names = None if hosts is None else frozenset(name.lower() for name in hosts)

    async def healthz(_: Request) -> Response:
        return PlainTextResponse("ok\n")

    async def readyz(_: Request) -> Response:
        stages, reason = dict(ready()), why()
        body = {**stages, "reason": reason} if reason else stages
        return JSONResponse(body, 200 if stages and all(stages.values()) else 503)

    routes = [Route("/healthz", healthz), Route("/readyz", readyz)]
    if metrics is not None:
        streaming = Streaming(metrics)

        async def scrape(request: Request) -> ASGIApp:
            if names is not None and not is_known_host(request.headers.get("host", ""), names):
                return PlainTextResponse(f"{HOSTS_TOLD}\n", 421)
            return await streaming(request)

        routes.append(Route("/metrics", scrape))
    return Starlette(routes=routes)
