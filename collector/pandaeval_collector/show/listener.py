"""HTTP routes besides ingestion, with a memory limit on answers.

It runs in the main process, so it imports no content code.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.routing import BaseRoute, Match, Mount, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pandaeval_collector.base.untrusted.foreign_pages import HOSTS_TOLD, is_known_host
from pandaeval_collector.show import API, MCP, PAGE, RUNBOOK
from pandaeval_collector.show.api.refusals import refusal
from pandaeval_collector.show.api.writing import OwnWrites

_BYTES = 64 << 20
_AT_ONCE = 256
_PIECE = 64 << 10
_SMALL = 256 << 10
"""Maximum size of uncounted bodies. :data:`_AT_ONCE` bodies of this size need at most :data:`_BYTES`."""
_LONGEST_S = 120.0
_BUSY = refusal(503, "too many open responses: try again in a few seconds", {"retry-after": "5"})


class BoundedAnswers:
    """Sends bodies in pieces from a memory budget, and answers 503 above it. On one event loop."""

    def __init__(self, most_bytes: int = _BYTES, at_once: int = _AT_ONCE, longest_s: float = _LONGEST_S) -> None:
        """``longest_s``: limit for sending a body."""
        self._most_bytes, self._at_once, self._longest_s = most_bytes, at_once, longest_s
        self._under_way, self._held = 0, 0

    def bound(self, app: ASGIApp) -> ASGIApp:
        async def bounded(scope: Scope, receive: Receive, send: Send) -> None:
            if self._under_way >= self._at_once:
                await _BUSY(scope, receive, send)
                return
            self._under_way += 1
            try:
                await app(scope, receive, self._sending(scope, receive, send))
            finally:
                self._under_way -= 1

        return bounded

    def _sending(self, scope: Scope, receive: Receive, send: Send) -> Send:
        heads: list[Message] = []
        ended = False

        async def sending(message: Message) -> None:
            nonlocal ended
            if message["type"] == "http.response.start":
                heads.append(message)
                return
            body = message.get("body", b"")
            if ended or (heads and not self._fits(body)):
                if not ended:
                    await _BUSY(scope, receive, send)
                ended = True
                return
            try:
                with self._holding(body):
                    async with asyncio.timeout(self._longest_s):
                        if heads:
                            await send(heads.pop())
                        for start in range(0, max(1, len(body)), _PIECE):
                            more = message.get("more_body", False) or start + _PIECE < len(body)
                            piece = body[start : start + _PIECE]
                            await send({"type": "http.response.body", "body": piece, "more_body": more})
            except TimeoutError:  # the server hangs up on a client whose answer was not finished
                ended = True

        return sending

    def _fits(self, body: bytes) -> bool:
        size = len(body)
        return size <= _SMALL or not self._held or self._held + size <= self._most_bytes

    @contextmanager
    def _holding(self, body: bytes) -> Iterator[None]:
        if len(body) <= _SMALL:
            yield
            return
        self._held += len(body)
        try:
            yield
        finally:
            self._held -= len(body)


def shown(reader: ASGIApp, hosts: Collection[str] | None, has_page: bool) -> list[BaseRoute]:
    """Return the routes of API, MCP and, with ``has_page``, page and runbook.

    ``hosts``: allowed names besides addresses and localhost; ``None``: any, with a token.
    """
    bounded: ASGIApp = OwnWrites(BoundedAnswers().bound(reader), hosts or ())
    guarded = bounded if hosts is None else KnownHosts(bounded, hosts)
    routes = [_All(API, guarded), Route(MCP, guarded)]
    return [*routes, _Page(PAGE, guarded), Route(RUNBOOK, bounded, methods=["GET"])] if has_page else routes


class _All(Mount):
    """Matches every path below a path, including line breaks."""

    def __init__(self, path: str, app: ASGIApp) -> None:
        super().__init__(path, app)
        self.path_regex = re.compile(self.path_regex.pattern, re.DOTALL)


class _Page(Route):
    """Matches GET and HEAD."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        return super().matches(scope) if scope.get("method") in ("GET", "HEAD") else (Match.NONE, {})


class KnownHosts:
    """Passes requests whose ``Host`` is an IP address, ``localhost`` or ``allowed``, against DNS rebinding.

    ``refusal_text``: for requests with other names.
    """

    def __init__(self, app: ASGIApp, allowed: Collection[str], refusal_text: str = HOSTS_TOLD) -> None:
        self._app, self._allowed, self._told = app, frozenset(name.lower() for name in allowed), refusal_text

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and not is_known_host(Headers(scope=scope).get("host", ""), self._allowed):
            await PlainTextResponse(f"{self._told}\n", 421)(scope, receive, send)
            return
        await self._app(scope, receive, send)
