"""From due traces to a write set: decode, normalise, score inline, and update the sessions they belong to.

Everything that a decision changes is returned as one :class:`WriteSet`, to be committed as one transaction. The line
reads the store but never writes. One thread runs it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import orjson

from pandaeval_collector.emission import Emitter
from pandaeval_collector.evaluator import Evaluator
from pandaeval_collector.result import Result
from pandaeval_collector.score import Why
from pandaeval_collector.sessions import Sessions
from pandaeval_collector.store import JobEnd, JobRow, ResultRow, Store, TraceRow, WriteSet
from pandaeval_otel.assembly import DueTrace
from pandaeval_otel.model import Trace, Trigger
from pandaeval_otel.normal.evidence import gather
from pandaeval_otel.normal.trace import Closing, build_trace, is_genai

_READ_BYTES = 4 << 20


@dataclass(slots=True)
class Decision:
    """What a batch came to: the changes to commit, and what the caller counts and exports."""

    changes: WriteSet = field(default_factory=WriteSet)
    results: list[Result] = field(default_factory=list)
    traces: list[Trace] = field(default_factory=list)
    not_genai: int = 0
    unjudged: set[str] = field(default_factory=set)
    """Traces that no judge is asked about (judge.only)."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """How a job ended, and the result it gave; ``None`` for one that was cancelled."""

    end: JobEnd
    result: Result | None = None


class Line:
    """The scoring of one store."""

    def __init__(self, store: Store, evaluator: Evaluator, emitter: Emitter | None = None) -> None:
        self._store, self._evaluator, self._emitter = store, evaluator, emitter or Emitter()
        self._sessions = Sessions(store, evaluator)

    def decide(self, due: Sequence[DueTrace]) -> Decision:
        """Scores traces and the places in their sessions that they change."""
        with self._store.snapshot():
            return self._decide(due)

    def _decide(self, due: Sequence[DueTrace]) -> Decision:
        decision = Decision()
        built = [self._build(each, read, decision) for each, read in self._read(due)]
        traces = sorted((trace for trace in built if trace is not None), key=lambda t: (t.start_ns, t.trace_id))
        texts = self._evaluator.embed(traces)
        by_trace = {trace.trace_id: self._evaluator.trace(trace, texts) for trace in traces}
        pending = {trace.trace_id: self._judge(trace, by_trace[trace.trace_id], decision) for trace in traces}
        again = self._sessions.file(traces, by_trace, pending, texts, decision.changes)
        decision.traces = traces
        results = [result for trace in traces for result in by_trace[trace.trace_id]]
        first_time = {trace.trace_id for trace in traces if trace.revision == 1}
        self._add_results([*results, *again], decision, first_time)
        return decision

    def close_sessions(self, session_ids: Iterable[str], trigger: Callable[[str], Trigger]) -> Decision:
        """Scores sessions for good."""
        decision = Decision()
        with self._store.snapshot():
            for session_id in session_ids:
                decision.results.extend(self._sessions.score(session_id, trigger(session_id)))
                decision.changes.closed.add(session_id)
            self._add_results(decision.results, decision)
        return decision

    def session_now(self, session_id: str) -> list[Result]:
        """What a session's scores would be if it ended now. Nothing of it is to be stored."""
        return [replace(each, final=False) for each in self._sessions.score(session_id, Trigger.SESSION_CHANGED)]

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
        self._sessions.tell(decision.results, decision.changes)
        self._add_results(decision.results, decision)
        return decision

    def _judge(self, trace: Trace, results: list[Result], decision: Decision) -> list[str]:
        """Adds what judged metrics say without a judge, and jobs for all others. Returns the names of those that the
        session waits for: a session is judged whole, or nothing of it counts there."""
        judge = self._evaluator.settings.judge
        if judge is None or trace.trace_id in decision.unjudged:
            return []
        suspicious = trace.error is not None or any(result.success is False for result in results)
        found, questions = self._evaluator.judged(trace, suspicious)
        results.extend(found)
        if questions:
            body = {"trigger": trace.trigger.value, "revision": trace.revision, "late_spans": trace.late_spans}
            body["suspicious"] = suspicious
            decision.changes.jobs.extend(
                JobRow(each.id, bytes.fromhex(trace.trace_id), each.metric.key, judge.delay, orjson.dumps(body))
                for each in questions
            )
        return [question.metric.name for question in questions if question.choice.in_sample]

    # -- traces --------------------------------------------------------------------------------------------------

    def _read(self, due: Sequence[DueTrace]) -> Iterator[tuple[DueTrace, list[tuple[bool, bytes]]]]:
        """What is stored of each trace, read for as many at a time as memory is spared for."""
        for group in _groups(due):
            chunks = self._store.chunks([id_ for each in group for id_ in each.chunks])
            for each in group:
                yield each, [chunks.pop(id_) for id_ in sorted(set(each.chunks))]

    def _build(self, due: DueTrace, read: Iterable[tuple[bool, bytes]], decision: Decision) -> Trace | None:
        evidence = gather(read)
        decision.changes.traces.append(
            TraceRow(due.trace_id, due.revision, due.capped, evidence.digest, due.known, due.chunks, due.size)
        )
        trace = build_trace(evidence, Closing(due.trigger, due.revision, due.late_spans))
        if trace is None or not is_genai(trace):
            decision.not_genai += 1
            return None
        attributes = (some for span in evidence.spans for some in (span.attributes, span.resource.attributes))
        if not self._evaluator.judges(trace, attributes):
            decision.unjudged.add(trace.trace_id)
        return trace

    # -- results -------------------------------------------------------------------------------------------------

    def _add_results(
        self, results: Sequence[Result], decision: Decision, first_time: Collection[str] = frozenset()
    ) -> None:
        """Gives revisions, and leaves out what already stands: the same evidence is not reported twice.
        ``first_time``: units of which nothing can stand yet."""
        standing = self._store.newest_results({result.unit.id for result in results} - set(first_time))
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
            numbered = result if revision == result.revision else replace(result, revision=revision)
            decision.results.append(numbered)
            if known is not None and known.counted:
                counted.add(result.id)
            has_counted = result.id in counted or result.outcome == "scored"
            decision.changes.results.append(
                ResultRow(numbered.id, result.unit.id, key, revision, numbered.to_json(), has_counted)
            )
        self._emitter.add(decision.results, counted, decision.changes)


def _groups(due: Iterable[DueTrace]) -> Iterator[list[DueTrace]]:
    """Traces that are small enough to be read together."""
    group: list[DueTrace] = []
    size = 0
    for each in due:
        if group and size + each.size > _READ_BYTES:
            yield group
            group, size = [], 0
        group.append(each)
        size += each.size
    if group:
        yield group
