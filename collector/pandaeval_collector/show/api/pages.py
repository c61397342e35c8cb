"""Operations for the page: what it shows, in the form in which its scripts draw it."""

from __future__ import annotations

import time
from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request, Response

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
from pandaeval_collector.show.api.understood import drawn, plain
from pandaeval_collector.show.api.work import Work
from pandaeval_collector.show.report.detail import with_results
from pandaeval_collector.show.report.incidents import TimeSpan, by_agent, incidents, over_time, shown_incident
from pandaeval_collector.show.report.index import ReportOrigin
from pandaeval_collector.show.report.live import LiveIndex
from pandaeval_collector.store.finding import Finder
from pandaeval_collector.store.found import Position
from pandaeval_collector.store.wanted import Wanted

_MOST_TRACES = 300
_MOST_PAGES, _ENOUGH = 6, 10
"""At most how many pages are read where sessions that failed alike share a row, and how many rows suffice."""
Of = Annotated[Literal["sessions", "traces"], Query(description="What a row of the list is.")]
Together = Annotated[bool, Query(description="Sessions that failed alike as one row, with how many they are.")]
Measured = Annotated[bool, Query(description="With latency, tokens and cost of each agent's runs.")]
SessionId = Annotated[str, Query(max_length=10_000, description="Id of the session.")]


def pages(reads: Reads, names: Names, work: Work, version: str) -> APIRouter:
    """Returns the page's operations."""
    router = APIRouter(prefix="/page")
    shown = _Shown(reads.finder, ReportOrigin(version=version, judge=work.judge, modules=work.modules))

    @router.get("/index", response_model=PageIndex, summary="Sessions or traces of a window, as the page lists them")
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
        after = position_of(cursor)

        def read() -> PageIndex:
            here = within(names.wanted(wanted), window, int(time.time() * 1000))
            if of == "sessions":
                return shown.sessions(here, after, limit, together)
            return shown.traces(here, order, after, limit)

        return await reads.answer(request, read)

    @router.get("/incidents", response_model=PageIncidents, summary="What failed in a window, by cause and over time")
    async def failing(
        request: Request, wanted: Filters, window: Window = "24h", measured: Measured = False, limit: Limit = 50
    ) -> Response:
        def read() -> PageIncidents:
            now = int(time.time() * 1000)
            return shown.incidents(within(names.wanted(wanted), window, now), now, measured, limit)

        return await reads.answer(request, read)

    @router.get("/session", response_model=PageSession, summary="A session, as the page shows it")
    async def session(request: Request, id: SessionId) -> Response:
        return await reads.answer(request, lambda: shown.session(names.session(id)))

    @router.get("/traces/{trace_id}", response_model=PageTrace, summary="A trace, as the page shows it")
    async def trace(request: Request, trace_id: str) -> Response:
        return await reads.answer(request, lambda: shown.trace(names.trace(trace_id)), large=True)

    return router


class _Shown:
    """Reads what the page shows. ``about``: what each index states of the installation."""

    def __init__(self, finder: Finder, about: ReportOrigin) -> None:
        self._finder, self._about = finder, about

    def sessions(self, wanted: Wanted, after: Position | None, limit: int, together: bool) -> PageIndex:
        """Returns sessions. ``together``: those that failed alike share a row; pages are read until there are
        enough."""
        made = LiveIndex()
        for _ in range(_MOST_PAGES if together else 1):
            page = self._finder.sessions(wanted, after=after, limit=limit)
            for unit in page.rows:
                made.unit(unit, together)
            after = page.next
            if after is None or len(made) >= _ENOUGH:
                break
        return self._index(made, wanted, after)

    def traces(self, wanted: Wanted, order: Order, after: Position | None, limit: int) -> PageIndex:
        page = self._finder.traces(wanted, worst_first=order == "worst", after=after, limit=limit)
        made = LiveIndex()
        for row in page.rows:
            made.trace(row, brief=True)
        return self._index(made, wanted, page.next)

    def incidents(self, wanted: Wanted, now: int, measured: bool, limit: int) -> PageIncidents:
        """Returns what failed. ``measured``: also latency, tokens and cost of each agent's runs."""
        find = self._finder
        oldest = find.oldest(wanted)
        until = now if wanted.until_ms is None else wanted.until_ms
        since = wanted.since_ms if wanted.since_ms is not None else until - 3_600_000 if oldest is None else oldest
        span, begun = TimeSpan(since, until), TimeSpan(max(since, oldest or 0), until)
        failing, groups = find.failing(wanted)
        found = sorted(incidents(failing, groups), key=lambda each: each.rank(begun))
        bodies = find.bodies([each.newest.seq for each in found[:limit]])
        over = find.over_time(wanted, span.since, span.step)
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
                for each in found[:limit]
            ],
            agents=[PageAgent(**row) for row in by_agent(over, find.measured(wanted) if measured else {})],
        )

    def _index(self, made: LiveIndex, wanted: Wanted, following: Position | None) -> PageIndex:
        traces, failed = self._finder.counts(wanted) or (None, None)
        return PageIndex(
            index=plain(made.made(self._about)),
            traces=traces,
            failed=failed,
            newest=self._finder.newest(),
            next=cursor_of(following),
        )

    def session(self, session_id: str) -> PageSession:
        """Returns a session. Raises :class:`ProblemError` if there is none with this id."""
        found = self._finder.session(session_id, _MOST_TRACES)
        if found is None:
            raise ProblemError(404, NO_SESSION)
        made = LiveIndex()
        made.session(*found)
        return PageSession(index=plain(made.made(self._about, {session_id: self._finder.members(session_id)})))

    def trace(self, trace_id: bytes) -> PageTrace:
        """Returns a trace, without details if its spans are not kept. Raises :class:`ProblemError` if there is none."""
        row = self._finder.trace(trace_id)
        if row is None:
            raise ProblemError(404, NO_TRACE)
        made = LiveIndex()
        shown = made.trace(row)
        members = {} if row.session is None else {row.session: self._finder.members(row.session)}
        spans = drawn(self._finder.contents(trace_id))
        found = with_results(spans or {"spans": []}, shown.results.values())
        return PageTrace(
            index=plain(made.made(self._about, members)),
            detail=None if spans is None else plain(found),
            results=plain(found)["results"] if spans is None else [],
        )
