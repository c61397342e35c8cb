"""Operations for the page: what it shows, in the form in which its scripts draw it."""

from __future__ import annotations

import time
from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request, Response

from pandaeval_collector.api.cursors import cursor_of, position_of
from pandaeval_collector.api.filters import CursorText, Filters, Limit, Window, within
from pandaeval_collector.api.problems import NO_SESSION, NO_TRACE, ProblemError, trace_id_of
from pandaeval_collector.api.reading import Reads
from pandaeval_collector.api.shapes import Order, PageIndex, PageSession, PageTrace
from pandaeval_collector.api.understood import drawn, plain
from pandaeval_collector.api.work import Work
from pandaeval_collector.report.index import About
from pandaeval_collector.report.live import LiveIndex
from pandaeval_collector.report.told import told

_MOST_TRACES = 300
Of = Annotated[Literal["sessions", "traces"], Query(description="What a row of the list is.")]
SessionId = Annotated[str, Query(max_length=10_000, description="Id of the session.")]


def pages(reads: Reads, work: Work, version: str) -> APIRouter:
    """The operations."""
    router = APIRouter(prefix="/page")
    finder = reads.finder
    about = About(version=version, judge=work.judge, modules=work.modules)

    @router.get("/index", response_model=PageIndex, summary="Sessions or traces of a window, as the page lists them")
    async def index(
        request: Request,
        wanted: Filters,
        of: Of = "sessions",
        window: Window = "24h",
        order: Order = "worst",
        cursor: CursorText = None,
        limit: Limit = 50,
    ) -> Response:
        after = position_of(cursor)

        def read() -> PageIndex:
            here = within(wanted, window, int(time.time() * 1000))
            made = LiveIndex()
            if of == "sessions":
                page = finder.sessions(here, after=after, limit=limit)
                for unit in page.rows:
                    made.unit(unit)
            else:
                page = finder.traces(here, worst_first=order == "worst", after=after, limit=limit)
                for row in page.rows:
                    made.trace(row, brief=True)
            traces, failed = finder.counts(here) or (None, None)
            return PageIndex(
                index=plain(made.made(about)),
                traces=traces,
                failed=failed,
                newest=finder.newest(),
                next=cursor_of(page.next),
            )

        return await reads.answer(request, read)

    @router.get("/session", response_model=PageSession, summary="A session, as the page shows it")
    async def session(request: Request, id: SessionId) -> Response:
        def read() -> PageSession:
            found = finder.session(id, _MOST_TRACES)
            if found is None:
                raise ProblemError(404, NO_SESSION)
            made = LiveIndex()
            made.session(*found)
            return PageSession(index=plain(made.made(about, {id: finder.members(id)})))

        return await reads.answer(request, read)

    @router.get("/traces/{trace_id}", response_model=PageTrace, summary="A trace, as the page shows it")
    async def trace(request: Request, trace_id: str) -> Response:
        id_ = trace_id_of(trace_id)

        def read() -> PageTrace:
            row = finder.trace(id_)
            if row is None:
                raise ProblemError(404, NO_TRACE)
            made = LiveIndex()
            shown = made.trace(row)
            members = {} if row.session is None else {row.session: finder.members(row.session)}
            spans = drawn(finder.contents(id_))
            found = told(spans or {"spans": []}, shown.results.values())
            return PageTrace(
                index=plain(made.made(about, members)),
                detail=None if spans is None else plain(found),
                results=plain(found)["results"] if spans is None else [],
            )

        return await reads.answer(request, read)

    return router
