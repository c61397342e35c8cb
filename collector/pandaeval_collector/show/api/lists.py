"""Operations on traces, sessions and results."""

from __future__ import annotations

from fastapi import FastAPI

from pandaeval_collector.show.api.cursors import CursorText, Limit, cursor_of, position_of
from pandaeval_collector.show.api.filters import Filters
from pandaeval_collector.show.api.names import Names
from pandaeval_collector.show.api.problems import NO_SESSION, NO_TRACE, ProblemError
from pandaeval_collector.show.api.read_threads import Reads
from pandaeval_collector.show.api.work import Work
from pandaeval_collector.show.report.detail import ROOM, describe, detail, readable_trace
from pandaeval_collector.show.report.text import plain
from pandaeval_collector.show.view.rows import (
    Order,
    Results,
    SessionDetail,
    SessionRow,
    Sessions,
    TraceDetail,
    TraceRow,
    Traces,
)


def list_routes(app: FastAPI, reads: Reads, names: Names, work: Work) -> None:
    """Add the operations."""
    finder = reads.finder

    @reads.operation(app, "/traces", "Agents' traces, worst or newest first")
    def traces(wanted: Filters, cursor: CursorText = None, limit: Limit = 50, order: Order = "worst") -> Traces:
        after, worst_first = position_of(cursor), order == "worst"
        page = finder.traces(names.wanted(wanted), worst_first=worst_first, after=after, limit=limit)
        return Traces(items=[*map(TraceRow.of, page.rows)], next=cursor_of(page.next))

    @reads.operation(app, "/traces/{trace_id:path}", "A trace with its normalised spans", large=True)
    def trace(trace_id: str) -> TraceDetail:
        id_ = names.trace(trace_id)
        row = finder.trace(id_)
        if row is None:
            raise ProblemError(404, NO_TRACE)
        stored = readable_trace(finder, id_)
        if stored is None:
            return TraceDetail.of(row, understood=None, detail=None)
        return TraceDetail.of(row, understood=plain(describe(stored)), detail=plain(detail(stored, ROOM)))

    @reads.operation(app, "/sessions", "Sessions, and traces without a session, worst first")
    def sessions(wanted: Filters, cursor: CursorText = None, limit: Limit = 50) -> Sessions:
        page = finder.sessions(names.wanted(wanted), after=position_of(cursor), limit=limit)
        return Sessions(items=[*map(SessionRow.of, page.rows)], next=cursor_of(page.next))

    @reads.operation(app, "/sessions/{session_id:path}", "A session with its traces")
    def session(session_id: str) -> SessionDetail:
        session_id = names.session(session_id)
        found = finder.session(session_id)
        if found is None:
            raise ProblemError(404, NO_SESSION)
        row, members = found
        is_open = work.store is not None and bool(work.store.reads.session_is_open(session_id))
        return SessionDetail.of(row, open=is_open, members=[*map(TraceRow.of, members)])

    @reads.operation(app, "/results", "Results, newest first, with all revisions")
    def results(wanted: Filters, cursor: CursorText = None, limit: Limit = 100) -> Results:
        page = finder.results(names.wanted(wanted), after=position_of(cursor), limit=limit)
        return Results(items=list(page.rows), next=cursor_of(page.next))
