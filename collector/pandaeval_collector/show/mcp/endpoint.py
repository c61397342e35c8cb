"""``/mcp`` on the HTTP listener: streamable HTTP without sessions."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from starlette.types import ASGIApp, Receive, Scope, Send

from pandaeval_collector.show.api.refusals import refusal

if TYPE_CHECKING:
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

_MISSING = 'the mcp extra is not installed: pip install "pandaeval-collector[mcp]"'
_NO_STREAM = "use POST: this server has no sessions and sends no events"


class McpEndpoint:
    """The ASGI application at ``/mcp``, on one event loop."""

    def __init__(self, api: ASGIApp, page: str | None) -> None:
        """``api``: the application at ``/api/v1``. ``page``: the collector's public address."""
        self._api, self._page = api, page
        self._app: ASGIApp | None = None
        self._running: asyncio.Task[None] | None = None
        self._opening = asyncio.Lock()

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

    async def _opened(self) -> ASGIApp:
        async with self._opening:
            if self._app is None:
                manager = await asyncio.to_thread(_made, self._api, self._page)
                up: asyncio.Future[None] = asyncio.get_running_loop().create_future()
                self._running = asyncio.create_task(self._run(manager, up))
                await up
                self._app = manager.handle_request
            return self._app

    async def _run(self, manager: StreamableHTTPSessionManager, up: asyncio.Future[None]) -> None:
        """Run the manager in a task that outlives requests."""
        async with manager.run():
            up.set_result(None)
            await asyncio.Event().wait()


def _made(api: ASGIApp, page: str | None) -> StreamableHTTPSessionManager:
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

    from pandaeval_collector.show.api.client import AsyncApiClient
    from pandaeval_collector.show.mcp.server import server

    lowlevel = server(AsyncApiClient.within(api), page)._lowlevel_server
    return StreamableHTTPSessionManager(lowlevel, json_response=True, stateless=True)
