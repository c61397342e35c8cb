"""Traces among the others of their session: where each belongs, what it is compared with, and how sessions score."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from pandaeval_collector.embedding.plain import plain
from pandaeval_collector.evaluator import PASSING, Evaluator
from pandaeval_collector.members import (
    Answer,
    Member,
    comparison_evidence,
    earlier_outputs,
    from_row,
    new_member,
    suffices,
    summary,
    to_row,
    with_signals,
)
from pandaeval_collector.metric import EarlierOutput, SessionView, Texts
from pandaeval_collector.result import Result, Unit
from pandaeval_collector.score import Score, Why
from pandaeval_collector.store import SessionTraceRow, Store, WriteSet
from pandaeval_otel.model import Trace, Trigger

_NEAR = 32
"""So many traces of a session are read to place a new one; more where they do not suffice."""
_LINKED = 128
_PENDING: dict[str, Any] = {"outcome": "pending", "value": None, "why": None}

ByTrace = Mapping[str, list[Result]]


class Sessions:
    """The sessions of one store. Reads it and never writes; one thread."""

    def __init__(self, store: Store, evaluator: Evaluator) -> None:
        self._store, self._evaluator = store, evaluator

    def file(
        self, traces: Sequence[Trace], found: ByTrace, pending: Mapping[str, list[str]], texts: Texts, changes: WriteSet
    ) -> list[Result]:
        """Puts traces into their sessions, and compares again every answer whose predecessors changed.

        ``found``: the results of each trace so far; those that come of comparing are added. ``pending``: its metrics
        whose judge has yet to be asked. Returns new results of traces that were decided before."""
        again: list[Result] = []
        sessions, left = self._places(traces, changes)
        for session_id in sorted({*sessions, *left}):
            added = sessions.get(session_id, [])
            only_new = session_id not in left and all(trace.revision == 1 for trace in added)
            first, members = self._near(session_id, added) if only_new else (0, self._all(session_id))
            ids = {trace.trace_id for trace in added}
            older = {member.trace_id: member.body["signals"] for member in members if member.trace_id in ids}
            # What left this session in this batch is filed elsewhere; what is in it comes back as it is now.
            members = [member for member in members if member.trace_id not in found]
            for trace in added:
                signals = _waiting(pending[trace.trace_id], older.get(trace.trace_id, {}))
                members.append(new_member(trace, texts, signals | self._signals(found[trace.trace_id])))
            members.sort(key=lambda member: member.order)
            again.extend(self._compare(session_id, members, first, found, texts))
            changes.session_traces.extend(to_row(member, session_id) for member in members if member.changed)
            changes.touched.add(session_id)
        return again

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
        changes.touched.update(row.session_id for row in rows.values())

    def _places(self, traces: Sequence[Trace], changes: WriteSet) -> tuple[dict[str, list[Trace]], set[str]]:
        """The traces by session, and the sessions that some of them were filed under before and are no more."""
        before = self._store.session_of([bytes.fromhex(trace.trace_id) for trace in traces if trace.revision > 1])
        sessions: dict[str, list[Trace]] = {}
        left: set[str] = set()
        for trace in traces:
            old = before.get(bytes.fromhex(trace.trace_id)) if before else None
            if old is not None and old != trace.session_id:
                left.add(old)
                changes.moved.append(bytes.fromhex(trace.trace_id))
            if trace.session_id is not None:
                sessions.setdefault(trace.session_id, []).append(trace)
        return sessions, left

    def _all(self, session_id: str) -> list[Member]:
        return [from_row(row) for row in self._store.session_traces(session_id)]

    def _near(self, session_id: str, added: Sequence[Trace]) -> tuple[int, list[Member]]:
        """The members of a session that traces which are new to it can be compared with, and the position of the first
        of them: a session of thousands of traces is not read for each new one."""
        newest = [from_row(row) for row in self._store.session_traces(session_id, _NEAR)]
        if len(newest) < _NEAR:
            return 0, newest
        agents = {trace.agent for trace in added if (trace.output or "").strip()}
        if suffices(newest, min(trace.start_ns for trace in added), agents, self._evaluator.embedder.id):
            return self._store.session_size(session_id) - _NEAR, newest
        return 0, self._all(session_id)

    def _compare(
        self, session_id: str, members: Sequence[Member], first: int, found: ByTrace, texts: Texts
    ) -> list[Result]:
        again: list[Result] = []
        first_new = next((index for index, member in enumerate(members) if member.trace is not None), 0)
        for index in range(first_new, len(members)):
            member = members[index]
            earlier = earlier_outputs(members, index, first, self._evaluator.embedder.id)
            evidence = comparison_evidence(member, earlier, members, first)
            if member.trace is not None:
                results = self._evaluator.in_session(member.trace, texts, earlier, evidence)
                found[member.trace_id].extend(results)
            elif member.body["loop_evidence"] != evidence:
                results = self._again(session_id, member, earlier, evidence)
                again.extend(results)
                member.changed = True
            else:
                continue
            member.body["loop_evidence"] = evidence
            member.body["signals"].update(self._signals(results))
        return again

    def _again(
        self, session_id: str, member: Member, earlier: tuple[EarlierOutput, ...], evidence: str
    ) -> list[Result]:
        """Compares a trace that was decided before: its answer is remembered, the trace itself is not needed."""
        body, answer = member.body, Answer.unpack(member.answer)
        row = answer.row if answer.vector or not earlier else np.zeros(len(earlier[0].embedding), np.float32)
        embedder = self._evaluator.embedder
        texts = Texts({plain(answer.text): row}, frozenset(), embedder.id, embedder.bands)
        remembered = Trace(
            trace_id=member.trace_id,
            spans=(),
            root_span_id=body["span_id"],
            agent=body["agent"],
            service=body["service"],
            environment=body["environment"],
            session_id=session_id,
            output=answer.text if body["captured"] else None,
            trigger=Trigger.SESSION_CHANGED,
            digest=body["digest"],
            revision=body["revision"],
            response_id=body["response_id"],
            sampled=body["sampled"],
            fragment=body["fragment"],
        )
        results = self._evaluator.in_session(remembered, texts, earlier, evidence)
        return [replace(result, unit=replace(result.unit, end_ns=member.end_ns)) for result in results]

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
