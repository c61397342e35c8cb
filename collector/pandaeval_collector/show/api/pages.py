"""Operations for the page: what it shows, in the form in which its scripts draw it."""

from __future__ import annotations

import time
from typing import Annotated, Literal

from fastapi import FastAPI, Query, Request, Response

from pandaeval_collector.show.api.filters import CursorText, Filters, Limit, Window, cursor_of, position_of, within
from pandaeval_collector.show.api.names import Names
from pandaeval_collector.show.api.problems import NO_SESSION, NO_TRACE, ProblemError
from pandaeval_collector.show.api.read_threads import Reads
from pandaeval_collector.show.api.shapes import (
    Order,
    PageAgent,
    PageIncident,
    PageIncidents,
    PageIndex,
    PageSession,
    PageTrace,
)
from pandaeval_collector.show.api.work import Work
from pandaeval_collector.show.report.detail import ROOM, detail, stored_trace, with_results
from pandaeval_collector.show.report.incidents import TimeSpan, by_agent, incidents, over_time, shown_incident
from pandaeval_collector.show.report.index import LiveIndex
from pandaeval_collector.show.report.text import plain

_MOST_TRACES = 300
_MOST_PAGES, _ENOUGH = 6, 10
"""At most how many pages are read where sessions that failed alike share a row, and how many rows suffice."""
Of = Annotated[Literal["sessions", "traces"], Query(description="What a row of the list is.")]
Together = Annotated[bool, Query(description="Sessions that failed alike as one row, with how many they are.")]
Measured = Annotated[bool, Query(description="With latency, tokens and cost of each agent's runs.")]
SessionId = Annotated[str, Query(max_length=10_000, description="Id of the session.")]


def pages(app: FastAPI, reads: Reads, names: Names, work: Work) -> None:
    """Adds the page's operations."""
    find = reads.finder

    @app.get("/page/index", response_model=PageIndex, summary="Sessions or traces of a window, as the page lists them")
    async def index(
        request: Request,
        wanted: Filters,
        of: Of = "sessions",
        window: Window = "24h",
        order: Order = "worst",
        together: Together = False,
        cursor: CursorText = None,
        limit: Limit = 50,
    ) -> Response:
        start = position_of(cursor)

        def read() -> PageIndex:
            here = within(names.wanted(wanted), window, int(time.time() * 1000))
            made, after = LiveIndex(), start
            if of == "traces":
                page = find.traces(here, worst_first=order == "worst", after=after, limit=limit)
                for row in page.rows:
                    made.trace(row, brief=True)
                after = page.next
            else:
                for _ in range(_MOST_PAGES if together else 1):
                    page = find.sessions(here, after=after, limit=limit)
                    for unit in page.rows:
                        made.unit(unit, together)
                    after = page.next
                    if after is None or len(made) >= _ENOUGH:
                        break
            traces, failed = find.counts(here) or (None, None)
            shown, following = plain(made.made(work.judge, work.modules)), cursor_of(after)
            return PageIndex(index=shown, traces=traces, failed=failed, newest=find.newest(), next=following)

        return await reads.answer(request, read)

    @app.get("/page/incidents", response_model=PageIncidents, summary="What failed in a window, by cause and over time")
    async def failing(
        request: Request, wanted: Filters, window: Window = "24h", measured: Measured = False, limit: Limit = 50
    ) -> Response:
        def read() -> PageIncidents:
            now = int(time.time() * 1000)
            here = within(names.wanted(wanted), window, now)
            oldest = find.oldest(here)
            until = now if here.until_ms is None else here.until_ms
            since = here.since_ms if here.since_ms is not None else until - 3_600_000 if oldest is None else oldest
            span, begun = TimeSpan(since, until), TimeSpan(max(since, oldest or 0), until)
            found = sorted(incidents(*find.failing(here)), key=lambda each: each.rank(begun))
            shown = found[:limit]
            bodies = find.bodies([each.newest.seq for each in shown])
            over = find.over_time(here, span.since, span.step)
            runs, failed = over_time(over)
            return PageIncidents(
                since=span.since,
                until=span.until,
                step=span.step,
                runs=runs,
                failed=failed,
                total=len(found),
                incidents=[
                    PageIncident(**shown_incident(each, span, each.state(begun), bodies.get(each.newest.seq)))
                    for each in shown
                ],
                agents=[PageAgent(**row) for row in by_agent(over, find.measured(here) if measured else {})],
            )

        return await reads.answer(request, read)

    @app.get("/page/session", response_model=PageSession, summary="A session, as the page shows it")
    async def session(request: Request, id: SessionId) -> Response:
        def read() -> PageSession:
            id_ = names.session(id)
            found = find.session(id_, _MOST_TRACES)
            if found is None:
                raise ProblemError(404, NO_SESSION)
            made = LiveIndex({id_: find.members(id_)})
            made.session(*found)
            return PageSession(index=plain(made.made(work.judge, work.modules)))

        return await reads.answer(request, read)

    @app.get("/page/traces/{trace_id}", response_model=PageTrace, summary="A trace, as the page shows it")
    async def trace(request: Request, trace_id: str) -> Response:
        def read() -> PageTrace:
            id_ = names.trace(trace_id)
            row = find.trace(id_)
            if row is None:
                raise ProblemError(404, NO_TRACE)
            made = LiveIndex({} if row.session is None else {row.session: find.members(row.session)})
            results = made.trace(row)
            held = stored_trace(find.contents(id_))
            page = plain(made.made(work.judge, work.modules))
            if held is None:
                full = plain({"results": [result.full for result in results]})
                return PageTrace(index=page, detail=None, **full)
            return PageTrace(index=page, detail=plain(with_results(detail(held, ROOM), results)), results=[])

        return await reads.answer(request, read, large=True)
