"""Operations that list and show: traces, sessions, results, failures, runs over time; rates by metric and agent, and
the metrics that there are."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

import orjson
from fastapi import FastAPI, Request, Response

from pandaeval_collector.show.api.filters import (
    CursorText,
    Filters,
    Limit,
    Names,
    cursor_of,
    number_of,
    position_of,
)
from pandaeval_collector.show.api.problems import NO_SESSION, NO_TRACE, ProblemError
from pandaeval_collector.show.api.read_threads import Reads
from pandaeval_collector.show.api.work import Work
from pandaeval_collector.show.report.detail import ROOM, describe, detail, stored_trace
from pandaeval_collector.show.report.text import plain
from pandaeval_collector.show.view import rows as shapes
from pandaeval_collector.show.view.rates import OutcomeCounts
from pandaeval_collector.show.view.unscored import CURES

_PATIENCE_S = 30.0
"""How long to wait for the line, which scores an open session between two batches."""


def lists(app: FastAPI, reads: Reads, names: Names, work: Work) -> None:
    """Adds the operations on what was scored."""
    finder = reads.finder

    @reads.operation(app, "/traces", "Agents' traces, worst or newest first")
    def traces(
        wanted: Filters, cursor: CursorText = None, limit: Limit = 50, order: shapes.Order = "worst"
    ) -> shapes.Traces:
        after, worst_first = position_of(cursor), order == "worst"
        page = finder.traces(names.wanted(wanted), worst_first=worst_first, after=after, limit=limit)
        return shapes.Traces(items=[*map(shapes.TraceRow.of, page.rows)], next=cursor_of(page.next))

    @reads.operation(app, "/traces/{trace_id:path}", "A trace with all that was understood", large=True)
    def trace(trace_id: str) -> shapes.TraceDetail:
        id_ = names.trace(trace_id)
        row = finder.trace(id_)
        if row is None:
            raise ProblemError(404, NO_TRACE)
        held = stored_trace(finder.contents(id_))
        if held is None:
            return shapes.TraceDetail.of(row, understood=None, detail=None)
        return shapes.TraceDetail.of(row, understood=plain(describe(held)), detail=plain(detail(held, ROOM)))

    @reads.operation(app, "/sessions", "Sessions and traces without one, worst first")
    def sessions(wanted: Filters, cursor: CursorText = None, limit: Limit = 50) -> shapes.Sessions:
        page = finder.sessions(names.wanted(wanted), after=position_of(cursor), limit=limit)
        return shapes.Sessions(items=[*map(shapes.SessionRow.of, page.rows)], next=cursor_of(page.next))

    @app.get("/sessions/{session_id:path}", response_model=shapes.SessionDetail, summary="A session with its traces")
    async def session(request: Request, session_id: str) -> Response:
        loop = asyncio.get_running_loop()

        def now(id_: str) -> Sequence[bytes] | None:
            if work.session_now is None:
                return None
            return asyncio.run_coroutine_threadsafe(work.session_now(id_), loop).result(_PATIENCE_S)

        def read() -> shapes.SessionDetail:
            id_ = names.session(session_id)
            found = finder.session(id_)
            if found is None:
                raise ProblemError(404, NO_SESSION)
            row, members = found
            so_far = now(id_)  # None for a session that is not open
            results = [orjson.loads(body) for body in so_far or ()]
            return shapes.SessionDetail.of(
                row, open=so_far is not None, now=results, members=[*map(shapes.TraceRow.of, members)]
            )

        return await reads.answer(request, read)

    @reads.operation(app, "/results", "Results, newest first, with all revisions")
    def results(wanted: Filters, cursor: CursorText = None, limit: Limit = 100) -> shapes.Results:
        page = finder.results(names.wanted(wanted), before=number_of(cursor), limit=limit)
        return shapes.Results(items=list(page.rows), next=cursor_of(page.next))


_COUNTER = "pandaeval.evaluations"


def overview(app: FastAPI, reads: Reads, work: Work, can: Callable[[], list[str]]) -> None:
    """Adds the operations on rates and metrics. ``can``: lists the API's operations that change something."""

    @app.get("/overview", response_model=shapes.Overview, summary="Rates by metric and agent, and what is under way")
    async def whole(request: Request) -> Response:
        raised = await work.component_errors()

        def read() -> shapes.Overview:
            names, page, store = reads.finder.names(), work.page, work.store
            rates = _rates(reads.finder.counters(_COUNTER))
            return shapes.Overview(
                rates=rates,
                unscored=_missing(rates),
                agents=names["agent"],
                services=names["service"],
                environments=names["environment"],
                judge=work.judge,
                jobs={} if store is None else store.jobs.counts(),
                spent_usd=0.0 if store is None else store.spending.spent(store.spending.today(time.time())),
                daily_usd=work.daily_usd,
                component_errors=[
                    shapes.ComponentErrors(kind=kind, name=name, count=count)
                    for (kind, name), count in sorted(raised.items(), key=lambda each: (-each[1], each[0]))
                ],
                can=can(),
                links={} if page is None else dict(page.links),
                page=page is not None,
                data=None if store is None else str(store.path),
                grpc_port=None if page is None else page.grpc_port,
            )

        return await reads.answer(request, read, beside=raised)

    @reads.operation(app, "/metrics", "The metrics that this collector knows")
    def metrics() -> shapes.Metrics:
        names = [name for name in shapes.MetricShape.model_fields if name != "threshold"]
        return shapes.Metrics(
            [
                shapes.MetricShape(**{name: getattr(each, name) for name in names}, threshold=threshold)
                for each, threshold in work.metrics()
            ]
        )


_NAMES = {
    "metric": "gen_ai.evaluation.name",
    "level": "pandaeval.level",
    "agent": "gen_ai.agent.name",
    "service": "pandaeval.service",
    "environment": "deployment.environment.name",
}
"""The attributes of a series that a rate is named by."""


def _rates(series: Iterable[tuple[Mapping[str, str], int]]) -> list[shapes.Rate]:
    tallies: dict[tuple[str, ...], OutcomeCounts] = {}
    for given, times in series:
        named = tuple(given.get(attribute, "") for attribute in _NAMES.values())
        success = {"true": True, "false": False}.get(str(given.get("pandaeval.passed", "")).lower())
        tallies.setdefault(named, OutcomeCounts()).add(
            given.get("pandaeval.outcome"), success, given.get("pandaeval.why"), times
        )
    rates = (
        shapes.Rate.model_validate(dict(zip(_NAMES, named, strict=True)) | each.to_dict())
        for named, each in tallies.items()
    )
    return sorted(rates, key=lambda rate: (-rate.failed, rate.metric, rate.agent))


def _missing(rates: Iterable[shapes.Rate]) -> list[shapes.Missing]:
    """Returns the unscored results by reason, most first."""
    found: dict[str, Counter[str]] = {}
    for rate in rates:
        for why, times in rate.unscored.items():
            found.setdefault(why, Counter())[f"{rate.level}.{rate.metric}"] += times
    entries = [
        shapes.Missing(why=why, count=counts.total(), metrics=dict(counts.most_common()), cure=CURES.get(why, ""))
        for why, counts in found.items()
    ]
    return sorted(entries, key=lambda entry: -entry.count)
