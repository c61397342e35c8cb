"""Operations for the live page."""

from __future__ import annotations

import time
from typing import Annotated, Any, Literal

from fastapi import FastAPI, Query
from pydantic import BaseModel, Field

from pandaeval_collector.show.api.cursors import CursorText, Limit, cursor_of, position_of
from pandaeval_collector.show.api.filters import Filters, Window, limited_to_window
from pandaeval_collector.show.api.names import Names
from pandaeval_collector.show.api.problems import NO_SESSION, NO_TRACE, ProblemError
from pandaeval_collector.show.api.read_threads import Reads
from pandaeval_collector.show.api.work import Work
from pandaeval_collector.show.report.detail import ROOM, content, outline, readable_trace
from pandaeval_collector.show.report.index import LiveIndex
from pandaeval_collector.show.report.text import plain
from pandaeval_collector.show.view.rows import Cursor, Order

_MOST_TRACES = 300
_PART = 30
Of = Annotated[Literal["sessions", "traces"], Query(description="Kind of the rows.")]
SessionId = Annotated[str, Query(max_length=10_000, description="Id of the session.")]
Start = Annotated[int, Query(ge=0, le=2000, description="Position of the first trace, from 0.")]
PageContent = Annotated[
    dict[str, Any],
    Field(
        description="Data of the page: `metrics`, `sessions` and `traces` with their results, which refer "
        "to each other by position, and their `order`. It can change with each release."
    ),
]


class PageIndex(BaseModel):
    """Sessions or traces of a window.

    ``traces``, ``failed``: totals, null for a search by text or result. ``newest``: grows with every result.
    """

    index: PageContent
    traces: int | None
    failed: int | None
    newest: int
    next: Cursor


class PageSession(BaseModel):
    """A session with its worst 300 traces."""

    index: PageContent


class PageTrace(BaseModel):
    """A trace for the page. ``detail``: results and, if spans are kept, conversation and spans."""

    index: PageContent
    detail: PageContent


class PageConversation(BaseModel):
    """Turns and steps of at most 30 traces of a session, in order.

    ``traces``: by position. A trace without spans has only its ``id``. ``next``: start of the next part.
    """

    traces: list[PageContent]
    next: int | None


def page_routes(app: FastAPI, reads: Reads, names: Names, work: Work) -> None:
    """Add the operations."""
    finder = reads.finder

    def made(index: LiveIndex) -> dict[str, Any]:
        return plain(index.made(work.judge, work.modules))

    @reads.operation(app, "/page/index", "Sessions or traces of a window, as the page lists them")
    def index(
        wanted: Filters,
        of: Of = "sessions",
        window: Window = "24h",
        order: Order = "worst",
        cursor: CursorText = None,
        limit: Limit = 50,
    ) -> PageIndex:
        wanted = limited_to_window(names.wanted(wanted), window, int(time.time() * 1000))
        index, after = LiveIndex(), position_of(cursor)
        if of == "traces":
            page = finder.traces(wanted, worst_first=order == "worst", after=after, limit=limit)
            for row in page.rows:
                index.trace(row, brief=True)
        else:
            page = finder.sessions(wanted, after=after, limit=limit)
            for unit in page.rows:
                index.unit(unit, filter(None, [unit.worst]))
        traces, failed = finder.counts(wanted) or (None, None)
        newest = finder.newest()
        return PageIndex(index=made(index), traces=traces, failed=failed, newest=newest, next=cursor_of(page.next))

    @reads.operation(app, "/page/session", "A session, as the page shows it")
    def session(id: SessionId) -> PageSession:
        session_id = names.session(id)
        found = finder.session(session_id, _MOST_TRACES)
        if found is None:
            raise ProblemError(404, NO_SESSION)
        index = LiveIndex({session_id: finder.members(session_id)})
        index.unit(*found)
        return PageSession(index=made(index))

    @reads.operation(app, "/page/conversation", "Messages of a session's users and agents", large=True)
    def conversation(id: SessionId, start: Start = 0) -> PageConversation:
        members = finder.members(names.session(id))
        end = start + _PART
        traces = []
        for trace_id in members[start:end]:
            stored = readable_trace(finder, bytes.fromhex(trace_id))
            traces.append(plain({"id": trace_id} if stored is None else outline(stored, ROOM // _PART)))
        return PageConversation(traces=traces, next=end if end < len(members) else None)

    @reads.operation(app, "/page/traces/{trace_id}", "A trace, as the page shows it", large=True)
    def trace(trace_id: str) -> PageTrace:
        id_ = names.trace(trace_id)
        row = finder.trace(id_)
        if row is None:
            raise ProblemError(404, NO_TRACE)
        index, of_session = LiveIndex(), []
        if row.session is not None:
            index = LiveIndex({row.session: finder.members(row.session)})
            of_session = [*finder.of_sessions([row.session])[row.session].values()]
        results = index.trace(row, of_session=of_session)
        stored = readable_trace(finder, id_)
        return PageTrace(index=made(index), detail=plain(content(stored, ROOM, results)))
