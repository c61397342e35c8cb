"""Operations on traces, sessions and results."""

from __future__ import annotations

from fastapi import FastAPI

from pandaeval_collector.show.api.cursors import CursorText, Limit, cursor_of, number_of, position_of
from pandaeval_collector.show.api.filters import Filters
from pandaeval_collector.show.api.names import Names
from pandaeval_collector.show.api.problems import NO_SESSION, NO_TRACE, ProblemError
from pandaeval_collector.show.api.read_threads import Reads
from pandaeval_collector.show.api.work import Work
from pandaeval_collector.show.report.detail import ROOM, describe, detail, stored_trace
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
from pandaeval_collector.store.finding import Finder


class ListReads:
    def __init__(self, finder: Finder, names: Names, work: Work) -> None:
        self._finder, self._names, self._work = finder, names, work

    def traces(self, wanted: Filters, cursor: CursorText = None, limit: Limit = 50, order: Order = "worst") -> Traces:
        after, worst_first = position_of(cursor), order == "worst"
        page = self._finder.traces(self._names.wanted(wanted), worst_first=worst_first, after=after, limit=limit)
        return Traces(items=[*map(TraceRow.of, page.rows)], next=cursor_of(page.next))

    def trace(self, trace_id: str) -> TraceDetail:
        id_ = self._names.trace(trace_id)
        row = self._finder.trace(id_)
        if row is None:
            raise ProblemError(404, NO_TRACE)
        trace = stored_trace(self._finder.contents(id_))
        if trace is None:
            return TraceDetail.of(row, understood=None, detail=None)
        return TraceDetail.of(row, understood=plain(describe(trace)), detail=plain(detail(trace, ROOM)))

    def sessions(self, wanted: Filters, cursor: CursorText = None, limit: Limit = 50) -> Sessions:
        page = self._finder.sessions(self._names.wanted(wanted), after=position_of(cursor), limit=limit)
        return Sessions(items=[*map(SessionRow.of, page.rows)], next=cursor_of(page.next))

    def session(self, session_id: str) -> SessionDetail:
        session_id = self._names.session(session_id)
        found = self._finder.session(session_id)
        if found is None:
            raise ProblemError(404, NO_SESSION)
        row, members = found
        store = self._work.store
        is_open = store is not None and bool(store.reads.session_is_open(session_id))
        return SessionDetail.of(row, open=is_open, members=[*map(TraceRow.of, members)])

    def results(self, wanted: Filters, cursor: CursorText = None, limit: Limit = 100) -> Results:
        page = self._finder.results(self._names.wanted(wanted), before=number_of(cursor), limit=limit)
        return Results(items=list(page.rows), next=cursor_of(page.next))


def list_routes(app: FastAPI, reads: Reads, names: Names, work: Work) -> None:
    read = ListReads(reads.finder, names, work)
    reads.operation(app, "/traces", "Agents' traces, worst or newest first")(read.traces)
    reads.operation(app, "/traces/{trace_id:path}", "A trace with its spans, as PandaEval read the spans", large=True)(
        read.trace
    )
    reads.operation(app, "/sessions", "Sessions, and traces without a session, worst first")(read.sessions)

    reads.operation(app, "/sessions/{session_id:path}", "A session with its traces")(read.session)
    reads.operation(app, "/results", "Results, newest first, with all revisions")(read.results)
