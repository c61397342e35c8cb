"""What a collector's HTTP listener shows beside taking spans in."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Collection
from html import escape
from pathlib import Path

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.routing import BaseRoute, Match, Mount, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from pandaeval_collector.base.runtime.version import installed_version
from pandaeval_collector.base.untrusted.foreign_pages import HOSTS_TOLD, is_known_host
from pandaeval_collector.runs.manager import Runs
from pandaeval_collector.show import API
from pandaeval_collector.show.api.bounded_answers import BoundedAnswers
from pandaeval_collector.show.api.read_threads import Reads
from pandaeval_collector.show.api.work import Work
from pandaeval_collector.show.api.writing import READING, OwnWrites
from pandaeval_collector.show.report.shell import live_shell
from pandaeval_collector.store.finding import Finder

# The live page, one file that draws itself from what the API says; and the runbook, to which alerts link.
RUNBOOK = "/runbook"
_SECTION = re.compile(r"^### (alert-[a-z-]+)$", re.MULTILINE)
_RUNBOOK_HEAD = (
    "<!doctype html><meta charset=utf-8><title>pandaeval: what to do about an alert</title>"
    "<style>body{font:16px/1.5 system-ui;max-width:46rem;margin:2rem auto;padding:0 1rem;color-scheme:light dark}"
    "p{white-space:pre-line}:target{background:#fd03}</style>"
)


def page_app() -> ASGIApp:
    """Returns the application that answers GET and HEAD with the page. Its policy lets it run its own script and ask
    its own collector, and nothing else; no other page may hold it in a frame."""
    html, policy = live_shell()
    headers = {
        "content-security-policy": f"{policy}; frame-ancestors 'none'",
        "x-frame-options": "DENY",
        "x-content-type-options": "nosniff",
        "referrer-policy": "no-referrer",
        "cross-origin-opener-policy": "same-origin",
        "cache-control": "no-cache, private",
    }
    body = html.encode()

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        response = Response(body, headers=headers, media_type="text/html")
        if Request(scope).method not in ("GET", "HEAD"):
            response = Response("the page is read with GET\n", 405, {"allow": "GET, HEAD"})
        await response(scope, receive, send)

    return answer


async def runbook(_: Request) -> HTMLResponse:
    """Answers with the page on alerts: for each a heading with an anchor, and what to do about it."""
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    return HTMLResponse(runbook_page(), headers={"content-security-policy": policy})


def runbook_page() -> str:
    """Returns ``runbook.md``, the only text about alerts, as HTML."""
    text = Path(__file__).with_name("runbook.md").read_text(encoding="utf-8")
    _, *parts = _SECTION.split(text)
    sections = zip(parts[::2], parts[1::2], strict=True)
    return _RUNBOOK_HEAD + "".join(f"<h2 id={name}>{name}</h2><p>{escape(said.strip())}</p>" for name, said in sections)


VERSION = installed_version() or "0"
"""Our version; ``0`` if unknown, since FastAPI takes no empty one."""


class Lookouts:
    """The HTTP routes of API and page, and the reads behind them. On one event loop."""

    def __init__(
        self,
        path: Path,
        work: Work,
        hosts: Collection[str] | None,
        runs: Runs | None = None,
        reader: ASGIApp | None = None,
    ) -> None:
        """``path``: the data directory. ``hosts``: host names that requests may have beside addresses and localhost;
        ``None``: any, where a token is demanded. ``reader``: the application that answers reads of the API; ``None``:
        this process does."""
        self._reads = Reads(Finder(path))
        self._hosts, self._bounds = hosts, BoundedAnswers()

        def make() -> ASGIApp:
            from pandaeval_collector.show.api.app import api_app  # FastAPI: see Lazy

            return api_app(self._reads, work, VERSION, None if runs is None else lambda: runs)

        here = Lazy(make)

        async def apart(scope: Scope, receive: Receive, send: Send) -> None:
            await (here if reader is None or scope["method"] not in READING else reader)(scope, receive, send)

        self.api: ASGIApp = apart
        self.routes: list[BaseRoute] = [_All(API, self._guarded(self.api))]
        if work.page is not None:
            self.routes.append(_Page("/", self._guarded(Lazy(page_app))))
            self.routes.append(Route(RUNBOOK, runbook))

    def add(self, path: str, app: ASGIApp) -> None:
        """Adds a route to another application, at exactly ``path``, behind the same checks."""
        self.routes.append(Route(path, self._guarded(app)))

    def close(self) -> None:
        """Ends the reads and closes their connections."""
        self._reads.close()

    def _guarded(self, app: ASGIApp) -> ASGIApp:
        app = OwnWrites(self._bounds.bound(app), self._hosts or ())
        return app if self._hosts is None else KnownHosts(app, self._hosts)


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


class Lazy:
    """Makes the application with ``make``, on a thread, when the first request comes: a collector that nobody asks
    starts faster and smaller without FastAPI. On one event loop."""

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
