"""What a collector's HTTP listener shows beside taking spans in: routes, behind which the reader answers.

Imports nothing that looks into content: it is the front's.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.routing import BaseRoute, Match, Mount, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from pandaeval_collector.base.untrusted.foreign_pages import HOSTS_TOLD, is_known_host
from pandaeval_collector.show import API, MCP, PAGE, RUNBOOK
from pandaeval_collector.show.api.bounded_answers import BoundedAnswers
from pandaeval_collector.show.api.writing import OwnWrites


def shown(reader: ASGIApp, hosts: Collection[str] | None, has_page: bool) -> list[BaseRoute]:
    """Returns the routes of API, MCP and, with ``has_page``, page and runbook. ``reader`` answers; ``hosts``: host
    names that requests may have beside addresses and localhost; ``None``: any, where a token is demanded."""
    bounded: ASGIApp = OwnWrites(BoundedAnswers().bound(reader), hosts or ())
    guarded = bounded if hosts is None else KnownHosts(bounded, hosts)
    routes = [_All(API, guarded), Route(MCP, guarded)]
    return [*routes, _Page(PAGE, guarded), Route(RUNBOOK, bounded, methods=["GET"])] if has_page else routes


class _All(Mount):
    """Matches every path below a given one, also one with a line break in it."""

    def __init__(self, path: str, app: ASGIApp) -> None:
        super().__init__(path, app)
        self.path_regex = re.compile(self.path_regex.pattern, re.DOTALL)


class _Page(Route):
    """Matches GET and HEAD alone: OTLP that is sent here is told where it belongs, as on any other path."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        return super().matches(scope) if scope.get("method") in ("GET", "HEAD") else (Match.NONE, {})


class KnownHosts:
    """Passes on requests whose ``Host`` is an IP address, ``localhost``, or one of ``allowed``. Otherwise a foreign
    page whose name suddenly resolves to this machine (DNS rebinding) could read what a listener without a token
    shows."""

    def __init__(self, app: ASGIApp, allowed: Collection[str] = ()) -> None:
        self._app, self._allowed = app, frozenset(name.lower() for name in allowed)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and not is_known_host(Headers(scope=scope).get("host", ""), self._allowed):
            await PlainTextResponse(f"{HOSTS_TOLD}\n", 421)(scope, receive, send)
            return
        await self._app(scope, receive, send)
