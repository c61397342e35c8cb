"""Operations that list and show: traces, sessions, results."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import orjson
from fastapi import APIRouter, Request, Response

from pandaeval_collector.show.api.filters import CursorText, Filters, Limit, cursor_of, position_of
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
from pandaeval_collector.show.api.understood import understood
from pandaeval_collector.show.api.work import Work
from pandaeval_collector.store.finding import Finder
from pandaeval_collector.store.found import Listed, ListedSession
from pandaeval_collector.store.listed import NO_SCORE


# Rows of the store's lists as the API shows them.
def trace_row(row: Listed) -> TraceRow:
    """Returns a stored trace in the API's form."""
    return TraceRow(**trace_fields(row))


def trace_fields(row: Listed) -> dict[str, Any]:
    """Returns the fields of a :class:`TraceRow`."""
    facts = row.facts
    return {
        "trace_id": facts["id"],
        "session_id": row.session,
        "agent": facts.get("agent", ""),
        "service": facts.get("service", ""),
        "environment": row.environment or None,
        "user": facts.get("user"),
        "started_at": facts["at"],
        "duration_us": facts["us"],
        "error": facts.get("error"),
        "input": facts.get("in"),
        "output": facts.get("out"),
        "spans": facts["spans"],
        "llm_calls": facts["llm"],
        "tool_calls": facts["tools"],
        "complete": not facts.get("incomplete", False),
        "failed": row.failed,
        "failures": row.failures,
        "worst": None if row.worst >= NO_SCORE else row.worst,
        "results": by_urgency(row.results),
    }


def session_row(row: ListedSession) -> SessionRow:
    """Returns a stored session in the API's form."""
    return SessionRow(**session_fields(row))


def session_fields(row: ListedSession) -> dict[str, Any]:
    """Returns the fields of a :class:`SessionRow`."""
    return {
        "session_id": row.id,
        "traces": row.traces,
        "failed_traces": row.failed_traces,
        "first_at": row.first_ms,
        "last_at": row.last_ms,
        "failed": row.failed,
        "worst": None if row.worst is None else trace_row(row.worst),
        "results": by_urgency(row.results),
    }


def by_urgency(results: Mapping[str, Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Returns the results sorted: failed ones first, then by score, then those without one."""

    def urgency(result: Mapping[str, Any]) -> tuple[bool, float, str]:
        score = result.get("score")
        return result.get("success") is not False, 2.0 if score is None else float(score), str(result["metric"])

    return [dict(result) for result in sorted(results.values(), key=urgency)]


_PATIENCE_S = 30.0
"""How long to wait for the line, which scores an open session between two batches."""


def lists(reads: Reads, names: Names, work: Work) -> APIRouter:
    """Returns the operations on traces, sessions and results."""
    router = APIRouter()
    finder = reads.finder

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
    """Returns a session with its traces. ``now``: gives its results if it ended now, ``None`` if it is not open."""
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
