"""CSRF protection: a write needs JSON, and no foreign page may send it."""

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
    """A refused request, with status and text."""


class OwnWrites:
    """Passes reads, and JSON writes up to ``most_bytes`` from our origin or ``allowed`` names.

    ``refusal_text``: for requests from other pages.
    """

    def __init__(
        self, app: ASGIApp, allowed: Collection[str], most_bytes: int = MOST_BYTES, refusal_text: str = ORIGIN_TOLD
    ) -> None:
        self._app, self._allowed = app, frozenset(name.lower() for name in allowed)
        self._most_bytes, self._told = most_bytes, refusal_text

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] in READING:
            await self._app(scope, receive, send)
            return
        try:
            headers = Headers(scope=scope)
            site, length = headers.get("sec-fetch-site"), headers.get("content-length", "0")
            if not is_own_origin(headers.getlist("origin"), headers.get("host", ""), site, self._allowed):
                raise _RefusedError(403, self._told)
            if headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
                raise _RefusedError(415, "send JSON, with the header content-type: application/json")
            if length.isdecimal() and int(length) > self._most_bytes:
                raise _too_large(self._most_bytes)
            body = await asyncio.wait_for(_body(receive, self._most_bytes), _BODY_S)
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


async def _body(receive: Receive, most_bytes: int) -> bytes:
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] != "http.request":
            raise _RefusedError(400, "the request ended before the end of its body")
        body += message.get("body", b"")
        if len(body) > most_bytes:
            raise _too_large(most_bytes)
        if not message.get("more_body", False):
            return bytes(body)


def _too_large(most_bytes: int) -> _RefusedError:
    return _RefusedError(413, f"the body is larger than {most_bytes // 1024} KiB")
