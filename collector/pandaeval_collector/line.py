"""From due traces to a write set: decode, normalise, score inline, and update the sessions they belong to.

Everything that a decision changes is returned as one :class:`WriteSet`, to be committed as one transaction. The line
reads the store but never writes. One thread runs it.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import orjson

from pandaeval_collector.embedding.plain import plain
from pandaeval_collector.emission import Emitter
from pandaeval_collector.evaluator import PASSING, Evaluator
from pandaeval_collector.metric import EarlierOutput, SessionView, Signal, Texts, TraceSummary
from pandaeval_collector.result import Result, Unit
from pandaeval_collector.score import Score, Why
from pandaeval_collector.stats.loops import DEFAULT_WINDOW as WINDOW
from pandaeval_collector.stats.tokens import content_tokens
from pandaeval_collector.store import JobEnd, JobRow, ResultRow, SessionTraceRow, Store, TraceRow, WriteSet
from pandaeval_otel.assembly import DueTrace
from pandaeval_otel.model import Trace, Trigger
from pandaeval_otel.normal.evidence import gather
from pandaeval_otel.normal.trace import Closing, build_trace, is_genai


@dataclass(slots=True)
class Decision:
    """What a batch came to: the changes to commit, and what the caller counts and exports."""

    changes: WriteSet = field(default_factory=WriteSet)
    results: list[Result] = field(default_factory=list)
    traces: list[Trace] = field(default_factory=list)
    not_genai: int = 0


@dataclass(slots=True)
class _Member:
    """A trace as a member of its session, from this batch or from the store."""

    trace_id: str
    start_ns: int
    end_ns: int
    body: dict[str, Any]
    trace: Trace | None = None

    @property
    def order(self) -> tuple[int, str]:
        return self.start_ns, self.trace_id


_PENDING: dict[str, Any] = {"outcome": "pending", "value": None, "why": None}


@dataclass(frozen=True, slots=True)
class Judgement:
    """How a job ended, and the result it gave; ``None`` for one that was cancelled."""

    end: JobEnd
    result: Result | None = None


class Line:
    """The scoring of one store."""

    def __init__(self, store: Store, evaluator: Evaluator, emitter: Emitter | None = None) -> None:
        self._store, self._evaluator, self._emitter = store, evaluator, emitter or Emitter()

    def decide(self, due: Sequence[DueTrace]) -> Decision:
        """Scores traces and the places in their sessions that they change."""
        decision = Decision()
        built = [self._build(each, decision) for each in due]
        traces = sorted((trace for trace in built if trace is not None), key=lambda t: (t.start_ns, t.trace_id))
        texts = self._evaluator.embed(traces)
        by_trace = {trace.trace_id: self._evaluator.trace(trace, texts) for trace in traces}
        pending = {trace.trace_id: self._judge(trace, by_trace[trace.trace_id], decision) for trace in traces}
        self._file_under_sessions(traces, by_trace, pending, texts, decision)
        decision.traces = traces
        results = [result for trace in traces for result in by_trace[trace.trace_id]]
        self._add_results([*results, *decision.results], decision)
        return decision

    def close_sessions(self, session_ids: Iterable[str], trigger: Callable[[str], Trigger]) -> Decision:
        """Scores sessions for good."""
        decision = Decision()
        for session_id in session_ids:
            rows = self._store.session_traces(session_id)
            if rows:
                decision.results.extend(self._score_session(session_id, rows, trigger(session_id)))
            decision.changes.closed.add(session_id)
        self._add_results(decision.results, decision)
        return decision

    def session_now(self, session_id: str) -> list[Result]:
        """What a session's scores would be if it ended now. Nothing of it is to be stored."""
        rows = self._store.session_traces(session_id)
        found = self._score_session(session_id, rows, Trigger.SESSION_CHANGED) if rows else []
        return [replace(result, final=False) for result in found]

    def judged(self, judgements: Sequence[Judgement]) -> Decision:
        """What judges said, and the ends of the jobs that asked them: filed under results and sessions like anything
        that is decided. A judgement on evidence that has grown since is dropped; a job for the new one exists."""
        decision = Decision()
        for judgement in judgements:
            result = judgement.result
            held = None if result is None else self._store.held(bytes.fromhex(result.unit.trace_id))
            if result is None or held is None or held[0] != result.unit.evidence:
                end = judgement.end if result is None else JobEnd(judgement.end.id, "cancelled", "superseded")
                decision.changes.ended.append(end)
                continue
            decision.changes.ended.append(judgement.end)
            decision.results.append(result)
        self._tell_sessions(decision)
        self._add_results(decision.results, decision)
        return decision

    def _judge(self, trace: Trace, results: list[Result], decision: Decision) -> list[str]:
        """Adds what judged metrics say without a judge, and jobs for all others, whose names are returned."""
        found, questions = self._evaluator.judged(trace)
        results.extend(found)
        judge = self._evaluator.settings.judge
        if judge is not None:
            body = {"trigger": trace.trigger.value, "revision": trace.revision, "late_spans": trace.late_spans}
            decision.changes.jobs.extend(
                JobRow(each.id, bytes.fromhex(trace.trace_id), each.metric.key, judge.delay, orjson.dumps(body))
                for each in questions
            )
        return [question.metric.name for question in questions]

    def _tell_sessions(self, decision: Decision) -> None:
        """Puts judged results among the signals of their traces."""
        rows: dict[str, tuple[SessionTraceRow, dict[str, Any]]] = {}
        for result in decision.results:
            trace_id = result.unit.trace_id
            if trace_id not in rows:
                row = self._store.session_trace(bytes.fromhex(trace_id))
                if row is None:
                    continue
                rows[trace_id] = row, orjson.loads(row.body)
            rows[trace_id][1]["signals"].update(self._signals([result]))
        for row, body in rows.values():
            decision.changes.session_traces.append(replace(row, body=orjson.dumps(body)))
            decision.changes.touched.add(row.session_id)

    # -- traces --------------------------------------------------------------------------------------------------

    def _build(self, due: DueTrace, decision: Decision) -> Trace | None:
        evidence = gather(self._store.read_chunks(due.chunks))
        decision.changes.traces.append(
            TraceRow(due.trace_id, due.revision, due.capped, evidence.digest, due.known, due.chunks, due.size)
        )
        trace = build_trace(evidence, Closing(due.trigger, due.revision, due.late_spans))
        if trace is None or not is_genai(trace):
            decision.not_genai += 1
            return None
        return trace

    # -- sessions ------------------------------------------------------------------------------------------------

    def _file_under_sessions(
        self,
        traces: Sequence[Trace],
        by_trace: dict[str, list[Result]],
        pending: dict[str, list[str]],
        texts: Texts,
        decision: Decision,
    ) -> None:
        """Puts traces into their sessions, and compares again every answer whose predecessors changed."""
        before = self._store.session_of(bytes.fromhex(trace.trace_id) for trace in traces)
        sessions: dict[str, list[Trace]] = {}
        left: set[str] = set()
        for trace in traces:
            old = before.get(bytes.fromhex(trace.trace_id))
            if old is not None and old != trace.session_id:
                left.add(old)
                if trace.session_id is None:
                    decision.changes.moved.append(bytes.fromhex(trace.trace_id))
            if trace.session_id is not None:
                sessions.setdefault(trace.session_id, []).append(trace)
        new_ids = {trace.trace_id for trace in traces}
        for session_id in sorted({*sessions, *left}):
            members = [_from_row(row) for row in self._store.session_traces(session_id)]
            older = {member.trace_id: member.body["signals"] for member in members if member.trace_id in new_ids}
            members = [member for member in members if member.trace_id not in new_ids]
            for trace in sessions.get(session_id, []):
                signals = _waiting(pending[trace.trace_id], older.get(trace.trace_id, {}))
                members.append(_member(trace, texts, signals | self._signals(by_trace[trace.trace_id])))
            members.sort(key=lambda member: member.order)
            self._compare(members, by_trace, texts, decision)
            decision.changes.session_traces.extend(
                _to_row(member, session_id)
                for member in members
                if member.trace is not None or member.body.pop("dirty", False)
            )
            decision.changes.touched.add(session_id)

    def _compare(
        self, members: Sequence[_Member], by_trace: dict[str, list[Result]], texts: Texts, decision: Decision
    ) -> None:
        first_new = next((index for index, member in enumerate(members) if member.trace is not None), 0)
        for index in range(first_new, len(members)):
            member = members[index]
            earlier = self._earlier(members, index)
            evidence = _evidence(member, earlier, members)
            if member.trace is not None:
                found = self._evaluator.in_session(member.trace, texts, earlier, evidence)
                by_trace[member.trace_id].extend(found)
            elif member.body["loop_evidence"] != evidence:
                found = self._again(member, earlier, evidence)
                decision.results.extend(found)
                member.body["dirty"] = True
            else:
                continue
            member.body["loop_evidence"] = evidence
            member.body["signals"].update(self._signals(found))

    def _earlier(self, members: Sequence[_Member], index: int) -> tuple[EarlierOutput, ...]:
        """The newest three answers of the same agent that were finished before this trace began, oldest first; none for
        a trace without an answer, which is compared with nothing whatever came before."""
        member = members[index]
        found: list[EarlierOutput] = []
        if not (member.body["output"] or "").strip():
            return ()
        for position in range(index - 1, -1, -1):
            other = members[position]
            body = other.body
            if body["agent"] != member.body["agent"] or other.end_ns > member.start_ns or not body["vector"]:
                continue
            if body["embedder"] != self._evaluator.embedder.id:
                continue
            found.append(EarlierOutput(other.trace_id, position, _vector(body), frozenset(body["tokens"])))
            if len(found) == WINDOW:
                break
        return tuple(reversed(found))

    def _again(self, member: _Member, earlier: tuple[EarlierOutput, ...], evidence: str) -> list[Result]:
        """Compares a trace that was decided before: its answer is remembered, the trace itself is not needed."""
        body = member.body
        row = _vector(body) if body["vector"] or not earlier else np.zeros_like(earlier[0].embedding)
        rows = {plain(body["output"]): row}
        texts = Texts(rows, frozenset(), self._evaluator.embedder.id, self._evaluator.embedder.bands)
        remembered = Trace(
            trace_id=member.trace_id,
            spans=(),
            root_span_id=body["span_id"],
            agent=body["agent"],
            service=body["service"],
            environment=body["environment"],
            session_id=body["session_id"],
            output=body["output"],
            trigger=Trigger.SESSION_CHANGED,
            digest=body["digest"],
            revision=body["revision"],
            response_id=body["response_id"],
            sampled=body["sampled"],
            fragment=body["fragment"],
        )
        results = self._evaluator.in_session(remembered, texts, earlier, evidence)
        return [replace(result, unit=replace(result.unit, end_ns=member.end_ns)) for result in results]

    def _score_session(self, session_id: str, rows: Sequence[SessionTraceRow], trigger: Trigger) -> list[Result]:
        members = [_from_row(row) for row in rows]
        last = members[-1]
        view = SessionView(session_id, tuple(_summary(member) for member in members))
        evidence = hashlib.blake2b(digest_size=16)
        for member in members:
            evidence.update(f"{member.trace_id}:{member.body['digest']};".encode())
            evidence.update("".join(f"{missing};" for missing in _missing(member)).encode())
        unit = Unit(
            level="session",
            id=session_id,
            trace_id=last.trace_id,
            span_id=last.body["span_id"],
            session_id=session_id,
            agent=last.body["agent"],
            service=last.body["service"],
            environment=last.body["environment"],
            evidence=evidence.hexdigest(),
            trigger=trigger.value,
            end_ns=last.end_ns,
            sampled=any(member.body["sampled"] for member in members),
            trace_ids=tuple(f"{member.trace_id}:{member.body['span_id']}" for member in members[-128:]),
        )
        return self._evaluator.session(view, unit)

    def _signals(self, results: Iterable[Result]) -> dict[str, dict[str, Any]]:
        return {result.metric: self._signal(result) for result in results}

    def _signal(self, result: Result) -> dict[str, Any]:
        value = result.finding.value if isinstance(result.finding, Score) else None
        if result.metric == "coherence" and self._evaluator.settings.coherence_signal == "calibrated":
            value = result.finding.metadata.get("calibrated", value)
        return {"outcome": result.outcome, "value": value, "why": result.why}

    # -- results -------------------------------------------------------------------------------------------------

    def _add_results(self, results: Sequence[Result], decision: Decision) -> None:
        """Gives revisions, and leaves out what already stands: the same evidence is not reported twice."""
        standing = self._store.newest_results({result.unit.id for result in results})
        decision.results = []
        counted: set[str] = set()
        unsampled = [result for result in results if result.why == Why.NOT_SAMPLED]
        self._emitter.count(unsampled, decision.changes)
        for result in results:
            if result.why == Why.NOT_SAMPLED:
                continue
            key = f"{result.unit.level}.{result.metric}"
            known = standing.get((result.unit.id, key))
            if known is not None and known.id == result.id:
                continue
            revision = max(result.revision, known.revision + 1 if known is not None else 1)
            numbered = replace(result, revision=revision)
            decision.results.append(numbered)
            if known is not None and known.counted:
                counted.add(result.id)
            has_counted = result.id in counted or result.outcome == "scored"
            decision.changes.results.append(
                ResultRow(numbered.id, result.unit.id, key, revision, numbered.to_json(), has_counted)
            )
        self._emitter.add(decision.results, counted, decision.changes)


def _waiting(names: Iterable[str], older: dict[str, Any]) -> dict[str, Any]:
    """The signals of metrics whose judge has yet to be asked: the older revision's stands meanwhile."""
    return {name: older.get(name, _PENDING) for name in names}


def _missing(member: _Member) -> list[str]:
    """The signals that may still come, as they enter a session's evidence: a session that was scored without them is
    another one than the same with them, and the latter is the same by every door."""
    signals = sorted(member.body["signals"].items())
    return [f"{name}={each['why'] or each['outcome']}" for name, each in signals if _may_come(each)]


def _may_come(signal: dict[str, Any]) -> bool:
    return signal["outcome"] == "pending" or signal["why"] in PASSING


def _member(trace: Trace, texts: Texts, signals: dict[str, dict[str, Any]]) -> _Member:
    text = plain(trace.output) if trace.output else ""
    vector = texts.rows.get(text) if text else None
    root = next((span for span in trace.spans if span.span_id == trace.root_span_id), trace.spans[0])
    body = {
        "session_id": trace.session_id,
        "agent": trace.agent,
        "service": trace.service,
        "environment": trace.environment,
        "span_id": trace.root_span_id,
        "response_id": trace.response_id,
        "sampled": trace.sampled,
        "fragment": trace.fragment,
        "digest": trace.digest,
        "revision": trace.revision,
        "crashed": trace.error is not None and not trace.output,
        "output": trace.output,
        "embedder": texts.embedder,
        "vector": base64.b64encode(vector.tobytes()).decode() if vector is not None and vector.any() else "",
        "tokens": sorted(content_tokens(text)),
        "signals": signals,
        "loop_evidence": "",
    }
    return _Member(trace.trace_id, trace.start_ns, root.end_ns, body, trace)


def _from_row(row: SessionTraceRow) -> _Member:
    return _Member(row.trace_id.hex(), row.start_ns, row.end_ns, orjson.loads(row.body))


def _to_row(member: _Member, session_id: str) -> SessionTraceRow:
    trace_id = bytes.fromhex(member.trace_id)
    return SessionTraceRow(trace_id, session_id, member.start_ns, member.end_ns, orjson.dumps(member.body))


def _vector(body: dict[str, Any]) -> np.ndarray[Any, np.dtype[np.float32]]:
    return np.frombuffer(base64.b64decode(body["vector"]), dtype=np.float32)


def _evidence(member: _Member, earlier: Sequence[EarlierOutput], members: Sequence[_Member]) -> str:
    """What a comparison depends on: the trace's own digest, and those of the traces it was compared with."""
    if not earlier:
        return str(member.body["digest"])
    used = [f"{each.trace_id}:{members[each.index].body['digest']}" for each in earlier]
    return hashlib.blake2b(";".join([member.body["digest"], *used]).encode(), digest_size=16).hexdigest()


def _summary(member: _Member) -> TraceSummary:
    signals = {name: Signal(**signal) for name, signal in member.body["signals"].items()}
    return TraceSummary(member.trace_id, member.body["digest"], member.body["crashed"], signals)
