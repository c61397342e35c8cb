"""The live page, one file that draws itself from what the API says; operations for it, in the form in which its scripts
draw; and the runbook, to which alerts link."""

from __future__ import annotations

import re
import time
from html import escape
from pathlib import Path
from typing import Annotated, Any, Literal

from fastapi import FastAPI, Query
from pydantic import BaseModel, Field
from starlette.responses import HTMLResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from pandaeval_collector.show.api.filters import (
    CursorText,
    Filters,
    Limit,
    Names,
    Window,
    cursor_of,
    position_of,
    within,
)
from pandaeval_collector.show.api.problems import NO_SESSION, NO_TRACE, ProblemError
from pandaeval_collector.show.api.read_threads import Reads
from pandaeval_collector.show.api.work import Work
from pandaeval_collector.show.report.detail import ROOM, detail, stored_trace, with_results
from pandaeval_collector.show.report.index import LiveIndex
from pandaeval_collector.show.report.text import live_shell, plain
from pandaeval_collector.show.view.rows import Cursor, Order

_MOST_TRACES = 300
_MOST_PAGES, _ENOUGH = 6, 10
"""At most how many pages are read where sessions that failed alike share a row, and how many rows suffice."""
Of = Annotated[Literal["sessions", "traces"], Query(description="What a row of the list is.")]
Together = Annotated[bool, Query(description="Sessions that failed alike as one row, with how many they are.")]
SessionId = Annotated[str, Query(max_length=10_000, description="Id of the session.")]


PageContent = Annotated[
    dict[str, Any],
    Field(
        description="What the page is drawn from: `metrics`, `sessions` and `traces` with their results, which refer "
        "to each other by position, and their `order`. It may change from release to release."
    ),
]


class PageIndex(BaseModel):
    """Sessions or traces of a window for the page. ``traces`` and ``failed``: how many there are of all that is wanted,
    null where a text or a result is looked for; ``newest``: grows with every result."""

    index: PageContent
    traces: int | None
    failed: int | None
    newest: int
    next: Cursor


class PageSession(BaseModel):
    """A session with its traces, the worst 300, for the page."""

    index: PageContent


class PageTrace(BaseModel):
    """A trace for the page. ``detail``: conversation, spans and results; null where its spans are not kept any more,
    ``results`` are there then, too."""

    index: PageContent
    detail: PageContent | None
    results: list[dict[str, Any]]


def pages(app: FastAPI, reads: Reads, names: Names, work: Work) -> None:
    """Adds the page's operations."""
    find = reads.finder

    @reads.operation(app, "/page/index", "Sessions or traces of a window, as the page lists them")
    def index(
        wanted: Filters,
        of: Of = "sessions",
        window: Window = "24h",
        order: Order = "worst",
        together: Together = False,
        cursor: CursorText = None,
        limit: Limit = 50,
    ) -> PageIndex:
        here, after = within(names.wanted(wanted), window, int(time.time() * 1000)), position_of(cursor)
        made = LiveIndex()
        if of == "traces":
            page = find.traces(here, worst_first=order == "worst", after=after, limit=limit)
            for row in page.rows:
                made.trace(row, brief=True)
            after = page.next
        else:
            for _ in range(_MOST_PAGES if together else 1):
                listed = find.sessions(here, after=after, limit=limit)
                for unit in listed.rows:
                    made.unit(unit, together)
                after = listed.next
                if after is None or len(made) >= _ENOUGH:
                    break
        traces, failed = find.counts(here) or (None, None)
        shown = plain(made.made(work.judge, work.modules))
        return PageIndex(index=shown, traces=traces, failed=failed, newest=find.newest(), next=cursor_of(after))

    @reads.operation(app, "/page/session", "A session, as the page shows it")
    def session(id: SessionId) -> PageSession:
        id_ = names.session(id)
        found = find.session(id_, _MOST_TRACES)
        if found is None:
            raise ProblemError(404, NO_SESSION)
        made = LiveIndex({id_: find.members(id_)})
        made.session(*found)
        return PageSession(index=plain(made.made(work.judge, work.modules)))

    @reads.operation(app, "/page/traces/{trace_id}", "A trace, as the page shows it", large=True)
    def trace(trace_id: str) -> PageTrace:
        id_ = names.trace(trace_id)
        row = find.trace(id_)
        if row is None:
            raise ProblemError(404, NO_TRACE)
        ids = [] if row.session is None else [row.session]
        made = LiveIndex({session: find.members(session) for session in ids})
        told = find.of_sessions(ids)
        results = made.trace(row, of_session=[said for session in ids for said in told[session].values()])
        page, held = plain(made.made(work.judge, work.modules)), stored_trace(find.contents(id_))
        shown = plain(with_results({"spans": []} if held is None else detail(held, ROOM), results))
        if held is None:
            return PageTrace(index=page, detail=None, results=shown["results"])
        return PageTrace(index=page, detail=shown, results=[])


_SECTION = re.compile(r"^### (alert-[a-z-]+)$", re.MULTILINE)
_RUNBOOK_HEAD = (
    "<!doctype html><meta charset=utf-8><title>pandaeval: what to do about an alert</title>"
    "<style>body{font:16px/1.5 system-ui;max-width:46rem;margin:2rem auto;padding:0 1rem;color-scheme:light dark}"
    "p{margin:.3rem 0}:target{background:#fd03}</style>"
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
    page = Response(html, headers=headers, media_type="text/html")
    refused = Response("the page is read with GET\n", 405, {"allow": "GET, HEAD"})

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        await (page if scope["method"] in ("GET", "HEAD") else refused)(scope, receive, send)

    return answer


async def runbook(scope: Scope, receive: Receive, send: Send) -> None:
    """Answers with the page on alerts: for each a heading with an anchor, and what to do about it."""
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    await HTMLResponse(runbook_page(), headers={"content-security-policy": policy})(scope, receive, send)


def runbook_page() -> str:
    """Return the sections of ``runbook.md`` as HTML. docs/operate/runbook.md is the same file."""
    text = Path(__file__).with_name("runbook.md").read_text(encoding="utf-8")
    _, *parts = _SECTION.split(text)
    sections = zip(parts[::2], parts[1::2], strict=True)
    return _RUNBOOK_HEAD + "".join(f"<h2 id={name}>{name}</h2>{_advice(text)}" for name, text in sections)


def _advice(text: str) -> str:
    """Return a list of the runbook as paragraphs, with its bold words and code."""
    items = [" ".join(item.split()) for item in text.strip().removeprefix("- ").split("\n- ")]
    html = "".join(f"<p>{escape(item)}</p>" for item in items)
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", re.sub(r"\*\*([^*]+)\*\*", r"<b>\1</b>", html))
