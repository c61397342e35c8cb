"""What a collector's HTTP listener shows beside taking spans in."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Collection
from pathlib import Path

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.routing import BaseRoute, Match, Mount, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from pandaeval_collector.base.runtime.version import installed_version
from pandaeval_collector.base.untrusted.foreign_pages import HOSTS_TOLD, is_known_host
from pandaeval_collector.runs.manager import Runs
from pandaeval_collector.show import API
from pandaeval_collector.show.api.bounded_answers import BoundedAnswers
from pandaeval_collector.show.api.page import RUNBOOK as PATH
from pandaeval_collector.show.api.page import runbook
from pandaeval_collector.show.api.read_threads import Reads
from pandaeval_collector.show.api.work import Work
from pandaeval_collector.show.api.writing import READING, OwnWrites
from pandaeval_collector.store.finding import Finder

VERSION = installed_version() or "0"
"""FastAPI takes no empty one."""


class Lookouts:
    """The routes, and the reads behind them. On one event loop."""

    def __init__(
        self,
        path: Path,
        work: Work,
        hosts: Collection[str] | None,
        runs: Runs | None = None,
        reader: ASGIApp | None = None,
    ) -> None:
        """``path``: the data directory. ``hosts``: names under which it may be asked beside addresses and localhost;
        ``None``: any, where a token is demanded. ``reader``: answers what is read of the API; ``None``: it is answered
        here."""
        self._reads = Reads(Finder(path))
        self._work, self._runs = work, runs
        self._hosts, self._bounds = hosts, BoundedAnswers()
        here = Lazy(self._api)
        self.api: ASGIApp = here if reader is None else _apart(reader, here)
        self.routes: list[BaseRoute] = [_All(API, self._guarded(self.api))]
        if work.page is not None:
            self.routes.append(_Page("/", self._guarded(Lazy(_page))))
            self.routes.append(Route(PATH, runbook))

    def add(self, path: str, app: ASGIApp) -> None:
        """Another application, at exactly ``path``, behind the same checks."""
        self.routes.append(Route(path, self._guarded(app)))

    def close(self) -> None:
        """Ends the reads."""
        self._reads.close()

    def _guarded(self, app: ASGIApp) -> ASGIApp:
        app = OwnWrites(self._bounds.bound(app), self._hosts or ())
        return app if self._hosts is None else KnownHosts(app, self._hosts)

    def _api(self) -> ASGIApp:
        from pandaeval_collector.show.api.app import api_app  # FastAPI: see Lazy

        runs = self._runs
        return api_app(self._reads, self._work, VERSION, None if runs is None else lambda: runs)


def _apart(reads: ASGIApp, writes: ASGIApp) -> ASGIApp:
    """Two applications as one: the first answers what only reads."""

    async def apart(scope: Scope, receive: Receive, send: Send) -> None:
        await (reads if scope["method"] in READING else writes)(scope, receive, send)

    return apart


class _All(Mount):
    """Whatever stands below a path, also where there is a line break in it."""

    def __init__(self, path: str, app: ASGIApp) -> None:
        super().__init__(path, app)
        self.path_regex = re.compile(self.path_regex.pattern, re.DOTALL)


class _Page(Route):
    """What is looked at and nothing else: OTLP that is sent here is told where it belongs, as on any other path."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        return super().matches(scope) if scope.get("method") in ("GET", "HEAD") else (Match.NONE, {})


def _page() -> ASGIApp:
    from pandaeval_collector.show.api.page import page_app  # its scripts are read when somebody opens it

    return page_app()


class KnownHosts:
    """Lets requests through whose ``Host`` cannot be another's: an IP address, ``localhost``, or one of ``allowed``. A
    page of somebody else, whose name suddenly resolves to this machine (DNS rebinding), could otherwise read what a
    listener without a token shows."""

    def __init__(self, app: ASGIApp, allowed: Collection[str] = ()) -> None:
        self._app, self._allowed = app, frozenset(name.lower() for name in allowed)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and not is_known_host(Headers(scope=scope).get("host", ""), self._allowed):
            await PlainTextResponse(f"{HOSTS_TOLD}\n", 421)(scope, receive, send)
            return
        await self._app(scope, receive, send)


class Lazy:
    """Has ``make`` make the application on a thread when the first request comes: a collector that nobody asks starts
    faster and smaller without FastAPI. On one event loop."""

    def __init__(self, make: Callable[[], ASGIApp]) -> None:
        self._make = make
        self._made: ASGIApp | None = None
        self._making = asyncio.Lock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._made is None:
            async with self._making:
                if self._made is None:
                    self._made = await asyncio.to_thread(self._make)
        await self._made(scope, receive, send)
