"""Refuses requests that a web page of somebody else sends: a page whose name suddenly resolves to this machine (DNS
rebinding) could otherwise read what a listener without a token shows."""

from __future__ import annotations

from collections.abc import Collection

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from pandaeval_collector.base.untrusted.foreign_pages import HOSTS_TOLD, is_known_host


class KnownHosts:
    """Lets requests through whose ``Host`` cannot be another's: an IP address, ``localhost``, or one of ``allowed``."""

    def __init__(self, app: ASGIApp, allowed: Collection[str] = ()) -> None:
        self._app, self._allowed = app, frozenset(name.lower() for name in allowed)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and not is_known_host(Headers(scope=scope).get("host", ""), self._allowed):
            await PlainTextResponse(f"{HOSTS_TOLD}\n", 421)(scope, receive, send)
            return
        await self._app(scope, receive, send)
