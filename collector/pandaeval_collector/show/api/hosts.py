"""Refuses requests that a web page of somebody else sends: a page whose name suddenly resolves to this machine (DNS
rebinding) could otherwise read what a listener without a token shows."""

from __future__ import annotations

import ipaddress
from collections.abc import Collection

from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

_TOLD = (
    "this collector answers under the name localhost, under IP addresses and under the names in server.allowed_hosts; "
    "or protect it with server.token_env\n"
)


class KnownHosts:
    """Lets requests through whose ``Host`` cannot be another's: an IP address, ``localhost``, or one of ``allowed``."""

    def __init__(self, app: ASGIApp, allowed: Collection[str] = ()) -> None:
        self._app, self._allowed = app, frozenset(name.lower() for name in allowed)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and not self._knows(dict(scope["headers"]).get(b"host", b"").decode("latin-1")):
            await PlainTextResponse(_TOLD, 421)(scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _knows(self, host: str) -> bool:
        name = host.lower()
        if name.startswith("["):
            return "]" in name and _is_address(name[1 : name.index("]")])
        name = name.partition(":")[0].rstrip(".")
        return name == "localhost" or name.endswith(".localhost") or name in self._allowed or _is_address(name)


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
