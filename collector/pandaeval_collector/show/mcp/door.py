"""``/mcp`` on the collector's HTTP listener: streamable HTTP without sessions, made when the first request comes."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from starlette.types import ASGIApp, Receive, Scope, Send

from pandaeval_collector.show.api.refusals import refusal

if TYPE_CHECKING:
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

    from pandaeval_collector.show.api.client import Asker

_MISSING = 'the extra for this is not installed here: pip install "pandaeval-collector[mcp]"'
_NO_STREAM = "send POST requests: there are no sessions, and nothing is sent unasked"


class McpDoor:
    """The ASGI application at ``/mcp``. On one event loop; close it before the API that it asks."""

    def __init__(self, api: ASGIApp, page: str | None) -> None:
        """``api``: the application at ``/api/v1``; ``page``: where people reach the collector."""
        self._api, self._page = api, page
        self._asker: Asker | None = None
        self._app: ASGIApp | None = None
        self._running: asyncio.Task[None] | None = None
        self._opening, self._closing = asyncio.Lock(), asyncio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] != "POST":
            await refusal(405, _NO_STREAM, {"allow": "POST"})(scope, receive, send)
            return
        try:
            app = await self._opened()
        except ImportError:
            await refusal(501, _MISSING)(scope, receive, send)
            return
        await app(scope, receive, send)

    async def close(self) -> None:
        """Ends the requests under way."""
        self._closing.set()
        if self._running is not None:
            await self._running
        if self._asker is not None:
            await self._asker.close()

    async def _opened(self) -> ASGIApp:
        async with self._opening:
            if self._app is None:
                self._asker, manager = await asyncio.to_thread(_made, self._api, self._page)
                up: asyncio.Future[None] = asyncio.get_running_loop().create_future()
                self._running = asyncio.create_task(self._run(manager, up))
                await up
                self._app = manager.handle_request
            return self._app

    async def _run(self, manager: StreamableHTTPSessionManager, up: asyncio.Future[None]) -> None:
        """Runs the manager in a task that outlives requests: the manager's tasks end with the task that enters it."""
        async with manager.run():
            up.set_result(None)
            await self._closing.wait()


def _made(api: ASGIApp, page: str | None) -> tuple[Asker, StreamableHTTPSessionManager]:
    """Returns client and manager. Imports the SDK, which is large; raises ``ImportError`` where it is missing."""
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

    from pandaeval_collector.show.api.client import Asker
    from pandaeval_collector.show.mcp.server import server

    asker = Asker.within(api)
    return asker, StreamableHTTPSessionManager(server(asker, page)._lowlevel_server, json_response=True, stateless=True)
