"""Operations on incidents: list, show and set their state."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

from fastapi import FastAPI, Query
from pydantic import BaseModel, ConfigDict, Field

from pandaeval_collector.show.api.cursors import CursorText, Limit, cursor_of, number_of
from pandaeval_collector.show.api.filters import Filters, Window, limited_to_window
from pandaeval_collector.show.api.names import Names
from pandaeval_collector.show.api.problems import WRITES, ProblemError, save_errors_as_problems
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
    known_ids,
    over_time,
)
from pandaeval_collector.show.view.rows import Milliseconds, Severity, TraceRow
from pandaeval_collector.show.view.texts import many
from pandaeval_collector.store import StoreAccess
from pandaeval_collector.store.costs import read_measures
from pandaeval_collector.store.failing import dismissed_by_group, read_failures, read_shares, triage_history
from pandaeval_collector.store.failures import at_least
from pandaeval_collector.store.finding import Finder
from pandaeval_collector.store.listed import Wanted
from pandaeval_collector.store.rates import AgentBucket, runs_over_time
from pandaeval_collector.store.triage import SETTLED, STATES, Standing, State, Triage
from pandaeval_collector.store.versions import Part, version_changes

AskedState = Annotated[Standing, Query(description="Triage state; open means new or known.")]
LeastSeverity = Annotated[Severity | None, Query(description="Minimum severity.")]
Measured = Annotated[bool, Query(description="Also return latency, tokens and cost by agent.")]
_MOST_EXAMPLES, _MOST_PARTS = 50, 30
_BLOCK = 200
"""Incidents whose results an export reads at once."""
_HOUR_MS = 3_600_000
_SESSIONS = "agent, count(DISTINCT session)"


class Incidents(BaseModel):
    """Incidents of a window, most urgent first.

    ``step``: milliseconds per bar of ``runs`` and ``failed``, from ``since``. ``total``: incidents of that state.
    ``states``: number by state.
    """

    since: Milliseconds
    until: Milliseconds
    step: int
    runs: list[int]
    failed: list[int]
    total: int
    states: dict[State, int]
    incidents: list[IncidentRow]
    next: str | None
    agents: list[PageAgent]


class VersionChange(BaseModel):
    """A change of how a metric is measured.

    ``at``: start of the first bar of `/incidents` with a result after the change. ``before``, ``after``: versions;
    hashes of rulings, empty without.
    """

    at: Milliseconds
    metric: str
    part: Part
    before: str
    after: str


class Versions(BaseModel):
    """Changes of metrics, rulings, prompts and judges, oldest first."""

    changes: list[VersionChange]


class NewTriage(BaseModel):
    """A person's state of an incident."""

    model_config = ConfigDict(extra="forbid")

    ids: Annotated[list[Annotated[str, Field(pattern=r"^[0-9a-f]{12}$")]], Field(min_length=1, max_length=200)]
    state: State
    note: Annotated[str, Field(max_length=2000)] = ""
    by: Annotated[str, Field(max_length=200, description="Name of the person.")] = ""


@dataclass(frozen=True, slots=True)
class FailureWindow:
    """The failures of a window.

    ``begun``: part of ``span`` with runs. ``incidents``: with triage, most urgent first. ``runs``: over time.
    """

    wanted: Wanted
    span: TimeSpan
    begun: TimeSpan
    incidents: Sequence[tuple[Incident, Triage]]
    runs: Sequence[AgentBucket]
    dismissed: Mapping[str, Collection[int]]

    def named(self, incident_id: str) -> tuple[Incident, Triage]:
        """Return an incident by its id or a unique prefix. Raises :class:`ProblemError`."""
        names = [(each, {each[0].id, *each[0].ids}) for each in self.incidents]
        found = [each for each, ids in names if incident_id in ids]
        found = found or [each for each, ids in names if any(id_.startswith(incident_id) for id_ in ids)]
        if len(found) == 1:
            return found[0]
        if found:
            detail = ", ".join(incident.id for incident, _ in found[:3])
            raise ProblemError(409, f"several incidents begin with {incident_id[:40]}: {detail}; write more digits")
        if runs := self.dismissed.get(incident_id):
            detail = f"in this window are dismissed ({many(len(runs), 'run')})"
            raise ProblemError(404, f"all findings of incident {incident_id} {detail}")
        detail = f"there is no incident {incident_id[:40]} in this window"
        raise ProblemError(404, f"{detail}; `pandaeval failures list --state all` lists them")


class IncidentReads:
    def __init__(self, finder: Finder, names: Names) -> None:
        self._finder, self._names = finder, names

    def listed(
        self,
        wanted: Filters,
        window: Window = "all",
        state: AskedState = "all",
        severity: LeastSeverity = None,
        measured: Measured = False,
        cursor: CursorText = None,
        limit: Limit = 50,
    ) -> Incidents:
        found = self.window(wanted, window)
        severe = [entry for entry in found.incidents if at_least(entry[0].severity, severity or "low")]
        counts = Counter(triage.state for _, triage in severe)
        chosen = [entry for entry in severe if _has_state(entry[1], state)]
        first = number_of(cursor) or 0
        end = first + limit
        runs, failed = over_time(found.runs)
        measures: Any = read_measures(self._finder, found.wanted) if measured else {}
        return Incidents(
            since=found.span.since,
            until=found.span.until,
            step=found.span.step,
            runs=runs,
            failed=failed,
            total=len(chosen),
            states={name: counts[name] for name in STATES},
            incidents=self.rows(found, chosen[first:end]),
            next=cursor_of((0.0, end)) if end < len(chosen) else None,
            agents=by_agent(found.runs, measures),
        )

    def every(self, wanted: Wanted, window: Window) -> Iterator[IncidentRow]:
        """Yield all incidents, most urgent first."""
        found = self.window(wanted, window)
        for first in range(0, len(found.incidents), _BLOCK):
            yield from self.rows(found, found.incidents[first : first + _BLOCK])

    def shown(self, incident_id: str, wanted: Filters, window: Window = "all") -> IncidentDetail:
        found = self.window(wanted, window)
        incident, triage = found.named(incident_id)
        span, seq = found.span, incident.newest.seq
        return IncidentDetail.of(
            incident,
            span,
            triage,
            incident.trend(found.begun),
            self._finder.bodies([seq]).get(seq, {}),
            since=span.since,
            until=span.until,
            step=span.step,
            all=over_time(found.runs)[0],
            failed=span.spark(incident.at.values(), BARS, span.step),
            parts=self._parts(incident, found),
            examples=self._examples(incident),
            history=triage_history(self._finder, incident.ids),
        )

    def check(self, ids: Sequence[str]) -> None:
        """Raise :class:`ProblemError` if an id never belonged to an incident."""
        failed, groups, given = read_failures(self._finder, Wanted())
        if unknown := set(ids) - known_ids(failed, groups) - given.keys():
            raise ProblemError(404, f"there is no incident {min(unknown)}")

    def window(self, wanted: Wanted, window: str) -> FailureWindow:
        """Return the incidents of a window that ends now."""
        wanted, span, oldest = self._span(wanted, window)
        begun = TimeSpan(max(span.since, oldest or 0), span.until)
        failed, groups, given = read_failures(self._finder, wanted)
        over = runs_over_time(self._finder, wanted, span.since, span.step)
        runs: Counter[str] = Counter()
        for bucket in over:
            runs[bucket.agent] += bucket.runs
        sessions = dict(self._finder.of_traces(wanted, _SESSIONS, "AND session > 0 GROUP BY agent"))
        triaged, dismissed = [], dismissed_by_group(self._finder, wanted)
        for incident in incidents(failed, groups):
            incident.weigh(sessions if incident.newest.no < 0 else runs, dismissed)
            triaged.append((incident, incident.triage(given)))
        triaged.sort(key=lambda entry: entry[0].rank(begun, entry[1].state))
        return FailureWindow(wanted, span, begun, triaged, over, dismissed)

    def versions(self, wanted: Filters, window: Window = "all") -> Versions:
        wanted, span, _ = self._span(wanted, window)
        found = []
        for each in version_changes(self._finder, wanted, span.since, span.step):
            at = span.since + each.bar * span.step
            change = VersionChange(at=at, metric=each.metric, part=each.part, before=each.before, after=each.after)
            found.append(change)
        return Versions(changes=found)

    def _span(self, wanted: Wanted, window: str) -> tuple[Wanted, TimeSpan, int | None]:
        """Return the filters, the time that they cover, and the start of the oldest run."""
        now = int(time.time() * 1000)
        wanted = limited_to_window(self._names.wanted(wanted), window, now)
        oldest = self._finder.oldest(wanted)
        until = now if wanted.until_ms is None else wanted.until_ms
        since = wanted.since_ms
        if since is None:
            since = until - _HOUR_MS if oldest is None else oldest
        return wanted, TimeSpan(since, until), oldest

    def rows(self, found: FailureWindow, some: Sequence[tuple[Incident, Triage]]) -> list[IncidentRow]:
        bodies = self._finder.bodies([incident.newest.seq for incident, _ in some])
        return [
            IncidentRow.of(row, found.span, triage, row.trend(found.begun), bodies.get(row.newest.seq, {}))
            for row, triage in some
        ]

    def _parts(self, incident: Incident, found: FailureWindow) -> list[IncidentPart]:
        parts = []
        for kind, name, runs, numbers in read_shares(self._finder, found.wanted, incident.at)[:_MOST_PARTS]:
            spark = found.span.spark([incident.at[no] for no in numbers])
            parts.append(IncidentPart(kind=kind, name=name, runs=runs, failed=len(numbers), spark=spark))
        return parts

    def _examples(self, incident: Incident) -> list[TraceRow]:
        newest = sorted(incident.at, key=lambda no: -incident.at[no])[:_MOST_EXAMPLES]
        runs = self._finder.listed(newest)
        verdicts = self._finder.bodies([incident.seqs[no] for no in newest if no < 0])
        examples = []
        for no in newest:
            if no in runs:
                examples.append(TraceRow.of(runs[no]))
            elif (verdict := verdicts.get(incident.seqs[no])) and (row := self._blamed(incident.metric, verdict)):
                examples.append(row)
        return examples

    def _blamed(self, metric: str, verdict: Mapping[str, Any]) -> TraceRow | None:
        step = verdict["metadata"].get("blame") or verdict
        row = self._finder.trace(bytes.fromhex(step["trace_id"]))
        if row is None:
            return None
        return TraceRow.of(replace(row, results={**row.results, metric: verdict}))


def incident_routes(app: FastAPI, reads: Reads, names: Names, work: Work) -> None:
    """Add the operations on incidents. Setting a state needs a store in ``work``."""
    read = IncidentReads(reads.finder, names)
    reads.operation(app, "/incidents", "Incidents of a time window, by cause and over time")(read.listed)
    summary = "Changes of metrics, rulings, prompts and judges in a time window"
    reads.operation(app, "/versions", summary)(read.versions)
    summary = "An incident with its runs over time, by agent, version and model"
    reads.operation(app, "/incidents/{incident_id}", summary)(read.shown)
    store = work.store
    if store is None:
        return

    @app.post("/incidents/state", response_model=Triage, responses=WRITES, summary="Set the state of an incident")
    async def mark(request: NewTriage) -> Triage:
        await reads.run(lambda: read.check(request.ids))
        return await _mark(store, request)


async def _mark(store: StoreAccess, request: NewTriage) -> Triage:
    triage = Triage(request.state, request.note.strip(), request.by.strip(), int(time.time() * 1000))
    with save_errors_as_problems("the state"):
        await asyncio.wrap_future(store.triage.mark(request.ids, triage))
    return triage


def _has_state(triage: Triage, state: Standing) -> bool:
    if state == "open":
        return triage.state not in SETTLED
    return state in ("all", triage.state)
