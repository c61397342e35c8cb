"""Refuses requests that change something where a web page of somebody else could have sent them: browsers send forms
and plain text anywhere, but no JSON, and say whose page it is."""

from __future__ import annotations

import asyncio
from collections.abc import Collection

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pandaeval_collector.base.untrusted.foreign_pages import ORIGIN_TOLD, is_own_origin
from pandaeval_collector.show.api.refusals import refusal

READING = frozenset({"GET", "HEAD", "OPTIONS"})
MOST_BYTES = 64 * 1024
"""The largest body of a request that changes something."""
_BODY_S = 30.0


class _RefusedError(Exception):
    """A request that is refused, with status and sentence."""


class OwnWrites:
    """Passes on requests that only read; of all others only those with a JSON body of at most :data:`MOST_BYTES` bytes,
    and with no ``Origin`` but our own or one of a name in ``allowed``."""

    def __init__(self, app: ASGIApp, allowed: Collection[str] = ()) -> None:
        self._app, self._allowed = app, frozenset(name.lower() for name in allowed)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] in READING:
            await self._app(scope, receive, send)
            return
        try:
            headers = Headers(scope=scope)
            site, length = headers.get("sec-fetch-site"), headers.get("content-length", "0")
            if not is_own_origin(headers.getlist("origin"), headers.get("host", ""), site, self._allowed):
                raise _RefusedError(403, ORIGIN_TOLD)
            if headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
                raise _RefusedError(415, "send JSON, with the header content-type: application/json")
            if length.isdecimal() and int(length) > MOST_BYTES:
                raise _RefusedError(413, _TOO_LARGE)
            body = await asyncio.wait_for(_body(receive), _BODY_S)
        except _RefusedError as problem:
            await refusal(*problem.args)(scope, receive, send)
            return
        except TimeoutError:
            await refusal(408, "the body did not arrive in time")(scope, receive, send)
            return
        messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

        async def again() -> Message:
            return messages.pop() if messages else await receive()

        await self._app(scope, again, send)


_TOO_LARGE = f"the body is larger than {MOST_BYTES // 1024} KiB"


async def _body(receive: Receive) -> bytes:
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] != "http.request":
            raise _RefusedError(400, "the request ended before the end of its body")
        body += message.get("body", b"")
        if len(body) > MOST_BYTES:
            raise _RefusedError(413, _TOO_LARGE)
        if not message.get("more_body", False):
            return bytes(body)
