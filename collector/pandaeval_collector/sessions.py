"""Traces among the others of their session: where each belongs, what it is compared with, and how sessions score."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pandaeval_collector.chains import Chains, Places, Stored
from pandaeval_collector.evaluator import PASSING, Evaluator
from pandaeval_collector.members import (
    CHAINED,
    Member,
    comparison_evidence,
    earlier_outputs,
    from_row,
    own_texts,
    remembered,
    suffices,
    summary,
    to_row,
    unit_again,
    with_its_signals,
    with_signals,
)
from pandaeval_collector.metric import SessionView
from pandaeval_collector.result import Result, Unit
from pandaeval_collector.score import Score, Why
from pandaeval_collector.store import SessionTraceRow, Store, WriteSet
from pandaeval_collector.understanding import Run, in_session
from pandaeval_otel.model import Trigger

_NEAR = 32
"""So many traces of a session are read to place a new one; more where they do not suffice."""
_LINKED = 128
_PENDING: dict[str, Any] = {"outcome": "pending", "value": None, "why": None}


@dataclass(slots=True)
class _Filing:
    """A run that is being filed, with all of its results."""

    run: Run
    results: list[Result]


class Sessions:
    """The sessions of one store. Reads it and never writes; one thread."""

    def __init__(self, store: Store, evaluator: Evaluator, chains: Chains | None = None) -> None:
        self._store, self._evaluator = store, evaluator
        self._chains = chains or Stored(store)

    def place(self, runs: Sequence[Run]) -> tuple[list[Run], Places]:
        """The runs, those that name no session in the one that follows from the responses that they go on from.
        ``runs``: in order of start."""
        places = self._chains.place(runs)
        sessions, evaluator = places.sessions, self._evaluator
        return [
            in_session(run, sessions[id_], evaluator) if (id_ := run.unit.trace_id) in sessions else run for run in runs
        ], places

    def file(self, runs: Sequence[Run], places: Places, changes: WriteSet) -> list[Result]:
        """Puts runs into their sessions, and compares again every answer whose predecessors changed. Returns the
        results of all runs, in their order, those that come of comparing at the end of each; then new results of traces
        that were decided before. ``places``: of these runs."""
        batch = {run.unit.trace_id: _Filing(run, [*run.results]) for run in runs}
        again: list[Result] = []
        sessions, left = self._sessions(runs, places, changes)
        came = self._came(places, left, changes)
        elsewhere = {*batch, *(row.trace_id.hex() for row, _ in places.moved)}
        for session_id in sorted({*sessions, *left, *came}):
            added = sessions.get(session_id, [])
            only_new = session_id not in {*left, *came} and all(run.unit.revision == 1 for run in added)
            first, members = self._near(session_id, added) if only_new else (0, self._all(session_id))
            # What left this session in this batch is filed elsewhere; what is in it comes back as it is now.
            members = [member for member in members if member.trace_id not in elsewhere]
            members += [*(self._member(run, places) for run in added), *came.get(session_id, ())]
            members.sort(key=lambda member: member.order)
            again.extend(self._compare(session_id, members, first, batch))
            changes.session_traces.extend(to_row(member, session_id) for member in members if member.changed)
            changes.touched.add(session_id)
        waiting = [run for run in runs if run.unit.trace_id in places.waiting]
        changes.session_traces.extend(to_row(self._member(run, places), "") for run in waiting)
        changes.responses.extend(places.responses)
        return [*(result for filing in batch.values() for result in filing.results), *again]

    def score(self, session_id: str, trigger: Trigger) -> list[Result]:
        """Results of the session metrics on what is decided so far; none of a session without traces."""
        members = self._all(session_id)
        if not members:
            return []
        last = members[-1]
        unit = Unit(
            level="session",
            id=session_id,
            trace_id=last.trace_id,
            span_id=last.body["span_id"],
            session_id=session_id,
            agent=last.body["agent"],
            service=last.body["service"],
            environment=last.body["environment"],
            evidence=_evidence(members),
            trigger=trigger.value,
            end_ns=last.end_ns,
            sampled=any(member.body["sampled"] for member in members),
            trace_ids=tuple(f"{member.trace_id}:{member.body['span_id']}" for member in members[-_LINKED:]),
        )
        return self._evaluator.session(SessionView(session_id, tuple(map(summary, members))), unit)

    def tell(self, results: Sequence[Result], changes: WriteSet) -> None:
        """Puts judged results among the signals of their traces."""
        rows: dict[str, SessionTraceRow] = {}
        for result in results:
            trace_id = result.unit.trace_id
            row = rows.get(trace_id) or self._store.session_trace(bytes.fromhex(trace_id))
            if row is not None:
                rows[trace_id] = with_signals(row, self._signals([result]))
        changes.session_traces.extend(rows.values())
        changes.touched.update(row.session_id for row in rows.values() if row.session_id)

    def _sessions(
        self, runs: Sequence[Run], places: Places, changes: WriteSet
    ) -> tuple[dict[str, list[Run]], set[str]]:
        """The runs by session, and the sessions that some of them were filed under before and are no more."""
        sessions: dict[str, list[Run]] = {}
        left: set[str] = set()
        for run in runs:
            unit = run.unit
            old = places.before.get(unit.trace_id) if places.before else None
            if old is not None and old.session_id != (unit.session_id or ""):
                left.add(old.session_id)
                changes.moved.append(old.trace_id)
            if unit.session_id is not None:
                sessions.setdefault(unit.session_id, []).append(run)
        return sessions, left - {""}

    def _came(self, places: Places, left: set[str], changes: WriteSet) -> dict[str, list[Member]]:
        """The traces that were decided before and belong elsewhere now, by session; what they ``left`` is added."""
        came: dict[str, list[Member]] = {}
        for row, session_id in places.moved:
            member = from_row(row)
            member.changed = True
            if row.session_id:
                left.add(row.session_id)
            if session_id is None:
                member.body.pop(CHAINED, None)
                changes.session_traces.append(to_row(member, ""))
            else:
                member.body[CHAINED] = True
                came.setdefault(session_id, []).append(member)
        return came

    def _member(self, run: Run, places: Places) -> Member:
        """A run as a member of its session, with the signals that are there by now."""
        before = places.before.get(run.unit.trace_id)
        older = from_row(before).body["signals"] if before is not None else {}
        return with_its_signals(run.member, _waiting(run.awaited, older) | self._signals(run.results))

    def _all(self, session_id: str) -> list[Member]:
        return [from_row(row) for row in self._store.session_traces(session_id)]

    def _near(self, session_id: str, added: Sequence[Run]) -> tuple[int, list[Member]]:
        """The members of a session that runs which are new to it can be compared with, and the position of the first
        of them: a session of thousands of traces is not read for each new one."""
        newest = [from_row(row) for row in self._store.session_traces(session_id, _NEAR)]
        if len(newest) < _NEAR:
            return 0, newest
        agents = {run.unit.agent for run in added if run.member.body["said"]}
        if suffices(newest, min(run.member.start_ns for run in added), agents, self._evaluator.embedder.id):
            return self._store.session_size(session_id) - _NEAR, newest
        return 0, self._all(session_id)

    def _compare(
        self, session_id: str, members: Sequence[Member], first: int, batch: Mapping[str, _Filing]
    ) -> list[Result]:
        again: list[Result] = []
        embedder = self._evaluator.embedder
        first_new = next((index for index, member in enumerate(members) if member.changed), 0)
        for index in range(first_new, len(members)):
            member = members[index]
            earlier = earlier_outputs(members, index, first, embedder.id)
            evidence = comparison_evidence(member, earlier, members, first)
            filing = batch.get(member.trace_id)
            if filing is not None:
                run = filing.run
                unit, lost, found = run.unit.with_evidence(evidence), run.lost, filing.results
            elif member.body["loop_evidence"] != evidence:
                unit, lost, found = unit_again(member, session_id, evidence), None, again
                member.changed = True
            else:
                continue
            texts = own_texts(member, embedder, len(earlier[0].embedding) if earlier else 0, lost)
            results = self._evaluator.in_session(remembered(member, unit), unit, texts, earlier)
            found.extend(results)
            member.body["loop_evidence"] = evidence
            member.body["signals"].update(self._signals(results))
        return again

    def _signals(self, results: Iterable[Result]) -> dict[str, dict[str, Any]]:
        return {result.metric: self._signal(result) for result in results}

    def _signal(self, result: Result) -> dict[str, Any]:
        if not result.finding.metadata.get("in_sample", True):  # judged for itself: the session is judged whole or not
            return {"outcome": "unscored", "value": None, "why": Why.NOT_SAMPLED.value}
        value = result.finding.value if isinstance(result.finding, Score) else None
        if result.metric == "coherence" and self._evaluator.settings.coherence_signal == "calibrated":
            value = result.finding.metadata.get("calibrated", value)
        return {"outcome": result.outcome, "value": value, "why": result.why}


def _waiting(names: Iterable[str], older: dict[str, Any]) -> dict[str, Any]:
    """The signals of metrics whose judge has yet to be asked: the older revision's stands meanwhile."""
    return {name: older.get(name, _PENDING) for name in names}


def _evidence(members: Iterable[Member]) -> str:
    """What the scores of a session depend on: its traces, and the signals that may still come. A session that was
    scored without them is another one than the same with them, and the latter is the same by every door."""
    found = hashlib.blake2b(digest_size=16)
    for member in members:
        signals = sorted(member.body["signals"].items())
        missing = [f"{name}={each['why'] or each['outcome']};" for name, each in signals if _may_come(each)]
        found.update(f"{member.trace_id}:{member.body['digest']};{''.join(missing)}".encode())
    return found.hexdigest()


def _may_come(signal: dict[str, Any]) -> bool:
    return signal["outcome"] == "pending" or signal["why"] in PASSING
