"""Operations that list and show: traces, sessions, results."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

import orjson
from fastapi import APIRouter, Request, Response

from pandaeval_collector.show.api.cursors import cursor_of, position_of
from pandaeval_collector.show.api.filters import CursorText, Filters, Limit
from pandaeval_collector.show.api.names import Names
from pandaeval_collector.show.api.problems import NO_SESSION, NO_TRACE, ProblemError
from pandaeval_collector.show.api.read_threads import Reads
from pandaeval_collector.show.api.rows import session_fields, session_row, trace_fields, trace_row
from pandaeval_collector.show.api.shapes import (
    Order,
    Results,
    SessionDetail,
    Sessions,
    TraceDetail,
    Traces,
)
from pandaeval_collector.show.api.understood import understood
from pandaeval_collector.show.api.work import Work
from pandaeval_collector.store.finding import Finder

_PATIENCE_S = 30.0
"""For the line, which scores an open session between two batches."""


def lists(reads: Reads, work: Work) -> APIRouter:
    """The operations."""
    router = APIRouter()
    finder, names = reads.finder, Names(reads.finder, work.modules)

    @router.get("/traces", response_model=Traces, summary="Agents' traces, worst or newest first")
    async def traces(
        request: Request, wanted: Filters, cursor: CursorText = None, limit: Limit = 50, order: Order = "worst"
    ) -> Response:
        after = position_of(cursor)

        def read() -> Traces:
            page = finder.traces(names.wanted(wanted), worst_first=order == "worst", after=after, limit=limit)
            return Traces(items=[trace_row(row) for row in page.rows], next=cursor_of(page.next))

        return await reads.answer(request, read)

    @router.get("/traces/{trace_id}", response_model=TraceDetail, summary="A trace with all that was understood")
    async def trace(request: Request, trace_id: str) -> Response:
        def read() -> TraceDetail:
            id_ = names.trace(trace_id)
            row = finder.trace(id_)
            if row is None:
                raise ProblemError(404, NO_TRACE)
            told, detail = understood(finder.contents(id_))
            return TraceDetail(**trace_fields(row), understood=told, detail=detail)

        return await reads.answer(request, read, large=True)

    @router.get("/sessions", response_model=Sessions, summary="Sessions and traces without one, worst first")
    async def sessions(request: Request, wanted: Filters, cursor: CursorText = None, limit: Limit = 50) -> Response:
        after = position_of(cursor)

        def read() -> Sessions:
            page = finder.sessions(names.wanted(wanted), after=after, limit=limit)
            return Sessions(items=[session_row(row) for row in page.rows], next=cursor_of(page.next))

        return await reads.answer(request, read)

    @router.get("/sessions/{session_id:path}", response_model=SessionDetail, summary="A session with its traces")
    async def session(request: Request, session_id: str) -> Response:
        loop = asyncio.get_running_loop()

        def now(id_: str) -> Sequence[bytes] | None:
            if work.session_now is None:
                return None
            return asyncio.run_coroutine_threadsafe(work.session_now(id_), loop).result(_PATIENCE_S)

        return await reads.answer(request, lambda: _session(finder, names.session(session_id), now))

    @router.get("/results", response_model=Results, summary="Results, newest first, with all revisions")
    async def results(request: Request, wanted: Filters, cursor: CursorText = None, limit: Limit = 100) -> Response:
        after = position_of(cursor)

        def read() -> Results:
            page = finder.results(names.wanted(wanted), before=None if after is None else after[1], limit=limit)
            return Results(items=list(page.rows), next=cursor_of(page.next))

        return await reads.answer(request, read)

    return router


def _session(finder: Finder, session_id: str, now: Callable[[str], Sequence[bytes] | None]) -> SessionDetail:
    """``now``: gives the results that the session would have if it ended now, ``None`` if it is not open."""
    found = finder.session(session_id)
    if found is None:
        raise ProblemError(404, NO_SESSION)
    row, members = found
    so_far = now(session_id)
    return SessionDetail(
        **session_fields(row),
        open=so_far is not None,
        now=[orjson.loads(body) for body in so_far or ()],
        members=[trace_row(each) for each in members],
    )
