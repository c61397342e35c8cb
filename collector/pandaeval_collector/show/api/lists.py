"""Operations that list and show: traces, sessions, results."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import orjson
from fastapi import FastAPI, Request, Response

from pandaeval_collector.show.api.filters import CursorText, Filters, Limit, cursor_of, number_of, position_of
from pandaeval_collector.show.api.names import Names
from pandaeval_collector.show.api.problems import NO_SESSION, NO_TRACE, ProblemError
from pandaeval_collector.show.api.read_threads import Reads
from pandaeval_collector.show.api.shapes import (
    Order,
    Results,
    SessionDetail,
    SessionRow,
    Sessions,
    TraceDetail,
    TraceRow,
    Traces,
)
from pandaeval_collector.show.api.work import Work
from pandaeval_collector.show.report.detail import ROOM, detail, stored_trace
from pandaeval_collector.show.report.inspection import describe
from pandaeval_collector.show.report.text import plain

_PATIENCE_S = 30.0
"""How long to wait for the line, which scores an open session between two batches."""


def lists(app: FastAPI, reads: Reads, names: Names, work: Work) -> None:
    """Adds the operations on traces, sessions and results."""
    finder = reads.finder

    @reads.operation(app, "/traces", "Agents' traces, worst or newest first")
    def traces(wanted: Filters, cursor: CursorText = None, limit: Limit = 50, order: Order = "worst") -> Traces:
        after, worst_first = position_of(cursor), order == "worst"
        page = finder.traces(names.wanted(wanted), worst_first=worst_first, after=after, limit=limit)
        return Traces(items=[*map(TraceRow.of, page.rows)], next=cursor_of(page.next))

    @reads.operation(app, "/traces/{trace_id}", "A trace with all that was understood", large=True)
    def trace(trace_id: str) -> TraceDetail:
        id_ = names.trace(trace_id)
        row = finder.trace(id_)
        if row is None:
            raise ProblemError(404, NO_TRACE)
        held = stored_trace(finder.contents(id_))
        if held is None:
            return TraceDetail.of(row, understood=None, detail=None)
        return TraceDetail.of(row, understood=plain(describe(held)), detail=plain(detail(held, ROOM)))

    @reads.operation(app, "/sessions", "Sessions and traces without one, worst first")
    def sessions(wanted: Filters, cursor: CursorText = None, limit: Limit = 50) -> Sessions:
        page = finder.sessions(names.wanted(wanted), after=position_of(cursor), limit=limit)
        return Sessions(items=[*map(SessionRow.of, page.rows)], next=cursor_of(page.next))

    @app.get("/sessions/{session_id:path}", response_model=SessionDetail, summary="A session with its traces")
    async def session(request: Request, session_id: str) -> Response:
        loop = asyncio.get_running_loop()

        def now(id_: str) -> Sequence[bytes] | None:
            if work.session_now is None:
                return None
            return asyncio.run_coroutine_threadsafe(work.session_now(id_), loop).result(_PATIENCE_S)

        def read() -> SessionDetail:
            id_ = names.session(session_id)
            found = finder.session(id_)
            if found is None:
                raise ProblemError(404, NO_SESSION)
            row, members = found
            so_far = now(id_)  # None for a session that is not open
            results = [orjson.loads(body) for body in so_far or ()]
            return SessionDetail.of(row, open=so_far is not None, now=results, members=[*map(TraceRow.of, members)])

        return await reads.answer(request, read)

    @reads.operation(app, "/results", "Results, newest first, with all revisions")
    def results(wanted: Filters, cursor: CursorText = None, limit: Limit = 100) -> Results:
        page = finder.results(names.wanted(wanted), before=number_of(cursor), limit=limit)
        return Results(items=list(page.rows), next=cursor_of(page.next))
