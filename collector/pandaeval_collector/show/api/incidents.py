"""Operations on incidents: what failed in a window by cause, one of them with its runs, and what people say of it."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from dataclasses import replace
from typing import Annotated

from fastapi import FastAPI, Query
from pydantic import BaseModel, ConfigDict, Field

from pandaeval_collector.show.api.filters import Filters, Limit, Names, Window, within
from pandaeval_collector.show.api.problems import WRITES, ProblemError
from pandaeval_collector.show.api.read_threads import Reads
from pandaeval_collector.show.api.work import Work
from pandaeval_collector.show.report.incidents import (
    BARS,
    Incident,
    IncidentDetail,
    IncidentPart,
    IncidentRow,
    PageAgent,
    TimeSpan,
    by_agent,
    incidents,
    over_time,
)
from pandaeval_collector.show.view.rows import Milliseconds, Severity, TraceRow
from pandaeval_collector.store.failures import SETTLED, STATES, Standing, State, Triage, at_least
from pandaeval_collector.store.finding import AgentBucket
from pandaeval_collector.store.listed import Wanted

AskedState = Annotated[Standing, Query(description="What people say of it; open: new or known.")]
LeastSeverity = Annotated[Severity | None, Query(description="Of this severity or graver.")]
Measured = Annotated[bool, Query(description="With latency, tokens and cost of each agent's runs.")]
_MOST_EXAMPLES, _MOST_PARTS = 50, 30


class Incidents(BaseModel):
    """What failed within a window, by cause, what asks for attention first. ``step``: milliseconds of each of the bars
    ``runs`` and ``failed``, from ``since`` on; ``total``: how many incidents of that state there are; ``states``: how
    many of each."""

    since: Milliseconds
    until: Milliseconds
    step: int
    runs: list[int]
    failed: list[int]
    total: int
    states: dict[State, int]
    incidents: list[IncidentRow]
    agents: list[PageAgent]


class NewTriage(BaseModel):
    """What somebody says of an incident."""

    model_config = ConfigDict(extra="forbid")

    ids: Annotated[list[Annotated[str, Field(pattern=r"^[0-9a-f]{12}$")]], Field(min_length=1, max_length=200)]
    state: State
    note: Annotated[str, Field(max_length=2000)] = ""
    by: Annotated[str, Field(max_length=200, description="Who says it.")] = ""


def incident_routes(app: FastAPI, reads: Reads, names: Names, work: Work) -> None:
    """Adds the operations on incidents: listing, showing, and as far as ``work`` has them giving a state."""
    find = reads.finder

    def looked(
        asked: Wanted, window: str
    ) -> tuple[Wanted, TimeSpan, TimeSpan, list[tuple[Incident, Triage]], list[AgentBucket]]:
        """Returns who is asked for, the window, its part in which there are runs, each incident with what people say of
        it, the most urgent first, and the runs over time."""
        now = int(time.time() * 1000)
        wanted = within(names.wanted(asked), window, now)
        oldest, until = find.oldest(wanted), now if wanted.until_ms is None else wanted.until_ms
        since = wanted.since_ms if wanted.since_ms is not None else until - 3_600_000 if oldest is None else oldest
        span, begun = TimeSpan(since, until), TimeSpan(max(since, oldest or 0), until)
        failed, groups, given = find.failing(wanted)
        found = [(each, each.triage(given)) for each in incidents(failed, groups)]
        found.sort(key=lambda pair: pair[0].rank(begun, pair[1].state))
        return wanted, span, begun, found, find.over_time(wanted, span.since, span.step)

    @reads.operation(app, "/incidents", "What failed in a window, by cause and over time")
    def listed(
        wanted: Filters,
        window: Window = "all",
        state: AskedState = "all",
        severity: LeastSeverity = None,
        measured: Measured = False,
        limit: Limit = 50,
    ) -> Incidents:
        here, span, begun, all_, over = looked(wanted, window)
        states = {"open": {*STATES} - SETTLED, "all": {*STATES}}.get(state, {state})
        found = [pair for pair in all_ if at_least(pair[0].severity, severity or "low")]
        chosen = [pair for pair in found if pair[1].state in states]
        bodies = find.bodies([each.newest.seq for each, _ in chosen[:limit]])
        runs, failed = over_time(over)
        return Incidents(
            since=span.since,
            until=span.until,
            step=span.step,
            runs=runs,
            failed=failed,
            total=len(chosen),
            states={name: sum(said.state == name for _, said in found) for name in STATES},
            incidents=[
                IncidentRow.of(each, span, said, each.trend(begun), bodies.get(each.newest.seq, {}))
                for each, said in chosen[:limit]
            ],
            agents=by_agent(over, find.measured(here) if measured else {}),
        )

    @reads.operation(app, "/incidents/{incident_id}", "An incident with its runs, over time and by what they are of")
    def shown(incident_id: str, wanted: Filters, window: Window = "all") -> IncidentDetail:
        here, span, begun, all_, over = looked(wanted, window)
        fitting = [pair for pair in all_ if incident_id == pair[0].id or incident_id in pair[0].ids]
        if not fitting:
            raise ProblemError(404, f"there is no incident {incident_id[:40]} in this window")
        [(found, said)] = fitting
        newest = sorted(found.at, key=lambda no: -found.at[no])[:_MOST_EXAMPLES]
        rows = {no: TraceRow.of(row) for no, row in find.listed(newest).items()}
        bodies = find.bodies([found.newest.seq, *(found.seqs[no] for no in newest if no < 0)])
        for no, body in ((no, bodies.get(found.seqs[no])) for no in newest if no < 0):
            row = body and find.trace(bytes.fromhex((body["metadata"].get("blame") or body)["trace_id"]))
            if body and row:  # the run at which the verdict on the session points
                rows[no] = TraceRow.of(replace(row, results={**row.results, found.metric: body}))
        return IncidentDetail.of(
            found,
            span,
            said,
            found.trend(begun),
            bodies.get(found.newest.seq, {}),
            since=span.since,
            until=span.until,
            step=span.step,
            all=over_time(over)[0],
            failed=span.spark(found.at.values(), BARS, span.step),
            parts=[
                IncidentPart(
                    kind=kind, name=name, runs=runs, failed=len(nos), spark=span.spark(found.at[no] for no in nos)
                )
                for kind, name, runs, nos in find.shares(here, found.at)[:_MOST_PARTS]
            ],
            examples=[rows[no] for no in newest if no in rows],
        )

    if (store := work.store) is None:
        return

    @app.post("/incidents/state", response_model=Triage, responses=WRITES, summary="What somebody says of an incident")
    async def mark(said: NewTriage) -> Triage:
        given = Triage(said.state, said.note.strip(), said.by.strip(), int(time.time() * 1000))
        try:
            await asyncio.wrap_future(store.triage.mark(said.ids, given))
        except (sqlite3.Error, RuntimeError) as error:  # a full disk; a store that closes
            raise ProblemError(503, "the state could not be kept; try again in a moment") from error
        return given
