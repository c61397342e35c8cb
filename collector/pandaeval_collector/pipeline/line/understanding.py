"""Decodes, normalises and scores a due trace alone.

Independent of other traces, so it can run in any process and repeatedly.
"""

from __future__ import annotations

import contextlib
import logging
import math
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import orjson

from pandaeval_collector.analysis.rules.grounding.before import pack
from pandaeval_collector.base.isolated import Isolated
from pandaeval_collector.base.result import Result, Unit
from pandaeval_collector.base.runtime import failpoints
from pandaeval_collector.base.time_limit import LIMIT, SECONDS_PER_BYTE, OverTimeError
from pandaeval_collector.pipeline.line.listing import cost_of, listed, pairs_of
from pandaeval_collector.pipeline.line.members import Member, new_member
from pandaeval_collector.pipeline.line.setup_advice import lacking
from pandaeval_collector.pipeline.line.stored_traces import closing_of, parts_of, rebuilt
from pandaeval_collector.scoring.evaluator import Evaluator, Question, trace_unit
from pandaeval_collector.scoring.metric import Texts
from pandaeval_collector.store import JobRow, ListedRow, StoreReader
from pandaeval_collector.store.chunks import Part
from pandaeval_otel.assembly import DueTrace
from pandaeval_otel.model import Trace
from pandaeval_otel.normal.session import is_history
from pandaeval_otel.normal.trace import is_genai

_log = logging.getLogger(__name__)
T = TypeVar("T")

TURN, SESSION, DETAIL = "turn", "session", "detail"
"""Job body keys: a turn (its answering span), a closed session (its id), or a follow-up (the answering span of the turn
with the first wrong step).
"""
_CHAINED = "session derived from responses that later traces continue; no span has a session ID"
_TOLD = "session derived from the history in its traces; no span has a session ID"
_SHARED = (
    "another service uses the same session ID, and no trace or span link joins them: this service has its own session"
)


@dataclass(slots=True)
class ScoredTrace:
    """An agent's trace with results; immutable.

    ``member``: without signals. ``results``: except comparisons. ``awaited``: judged metrics that the session needs.
    ``trace``: with spans if needed.
    """

    unit: Unit
    member: Member
    results: list[Result]
    awaited: list[str] = field(default_factory=list)
    jobs: list[JobRow] = field(default_factory=list)
    lost: tuple[str, str] | None = None
    trace: Trace | None = None
    is_judged: bool = False
    listed: ListedRow | None = None
    lacking: Mapping[str, str] = field(default_factory=dict)
    is_handed: bool = False
    """Whether another collector decided the run and this collector scores its session."""


def in_session(run: ScoredTrace, session_id: str, evaluator: Evaluator) -> ScoredTrace:
    """Return the run in a session that its spans do not name. The session's sample decides whether it is judged."""
    unit = replace(run.unit, session_id=session_id)
    return replace(
        _drawn(run, unit, evaluator),
        unit=unit,
        member=replace(run.member, facts=replace(run.member.facts, chained=run.unit.session_id is None)),
        trace=run.trace and with_session(run.trace, session_id),
    )


def by_itself(run: ScoredTrace, evaluator: Evaluator) -> ScoredTrace:
    """Return a run without predecessor. Its own sample decides whether it is judged."""
    alone = run.unit.session_id is None and is_history(run.member.facts.continues)
    return _drawn(run, run.unit, evaluator) if alone and run.is_judged else run


def explained(run: ScoredTrace, results: list[Result], evaluator: Evaluator) -> list[Result]:
    """Return a run's results with explanations, after reading its session."""
    names = evaluator.explaining
    if run.trace is None or not any(each.success is False or each.metric in names for each in results):
        return results
    return evaluator.explained(run.trace, run.unit, results, with_session=True)


def _drawn(run: ScoredTrace, unit: Unit, evaluator: Evaluator) -> ScoredTrace:
    results = [
        # Results of turns keep their units, in the trace's present session.
        replace(
            result,
            unit=unit if result.unit.level == unit.level else replace(result.unit, session_id=unit.session_id),
        )
        for result in run.results
    ]
    jobs, awaited = run.jobs, run.awaited
    if run.is_judged:
        results, choices = evaluator.judged.drawn(results, unit)
        jobs = [job for job in jobs if choices[job.metric].included]
        awaited = [name for name in awaited if choices[f"{unit.level}.{name}"].included]
    return replace(run, results=results, jobs=jobs, awaited=awaited)


def with_session(trace: Trace, session_id: str) -> Trace:
    """Return the trace as a member of a session that its spans do not name."""
    if trace.session_id is not None:
        note = _SHARED
    elif is_history(trace.continues or session_id):
        note = _TOLD
    else:
        note = _CHAINED
    return replace(trace, session_id=session_id, notes=(*trace.notes, note))


@dataclass(slots=True)
class Understood:
    """The outcome of a due trace.

    ``digest``: of its evidence. ``run``: ``None`` without an agent. ``failed``: kind and text of the error.
    """

    digest: str
    run: ScoredTrace | None = None
    failed: tuple[str, str] | None = None

    def without_spans(self) -> Understood:
        if self.run is None:
            return self
        run = self.run
        is_read = run.member.facts.unsettled or any(result.success is False for result in run.results)
        trace = run.trace if is_read else None
        return Understood(self.digest, replace(run, trace=trace, member=replace(run.member, _unpacked=None)))


def unasked(understood: Understood) -> Understood:
    run = understood.run
    if run is None:
        return understood
    inline = [result for result in run.results if result.evaluator.kind != "llm"]
    return replace(understood, run=replace(run, results=inline, jobs=[], awaited=[], is_judged=False, listed=None))


class Understanding:
    """Reads and scores traces. One thread."""

    def __init__(self, store: StoreReader, evaluator: Evaluator) -> None:
        self._store, self._evaluator, self._listed = store, evaluator, evaluator.settings.listed_attributes

    def of(self, due: Sequence[DueTrace]) -> list[Understood]:
        """Return each trace's outcome in order. Failures are isolated, except store errors."""
        parts, understood = Isolated(due), list[Understood]()
        for part in parts:
            try:
                understood += self._together(part)
            except sqlite3.Error:
                raise
            except (Exception, OverTimeError) as error:  # noqa: BLE001 - an error affects only this trace
                if not parts.split():
                    understood.append(_failed(part[0].trace_id.hex(), error))
        return understood

    def _together(self, due: Sequence[DueTrace]) -> list[Understood]:
        seconds = [self._evaluator.settings.trace_timeout + each.size * SECONDS_PER_BYTE for each in due]
        with self._store.snapshot():
            built = [
                _tried(each.trace_id.hex(), limit, self._build, each, parts)
                for (each, parts), limit in zip(parts_of(self._store, due), seconds, strict=True)
            ]
        found = [one for one in built if isinstance(one, _Built)]
        texts = LIMIT.run(sum(seconds), self._evaluator.embed, [one.trace for one in found])
        return [
            _tried(one.trace.trace_id, min(limit, one.left), self._scored, one, texts)
            if isinstance(one, _Built)
            else one
            for one, limit in zip(built, seconds, strict=True)
        ]

    def _build(self, due: DueTrace, parts: Sequence[Part]) -> _Built | Understood:
        found = rebuilt(parts, closing_of(due))
        evidence, trace = found.evidence, found.trace
        if trace is None or not is_genai(trace):
            return Understood(evidence.digest)
        attributes = (some for span in evidence.spans for some in (span.attributes, span.resource.attributes))
        pairs = pairs_of(evidence.spans, self._listed, trace.models)
        is_judged = self._evaluator.judged.concerns(trace, attributes)
        return _Built(evidence.digest, trace, is_judged, pairs, cost_of(evidence.spans, trace), LIMIT.left)

    def _scored(self, built: _Built, texts: Texts) -> Understood:
        trace, unit = built.trace, trace_unit(built.trace)
        results = self._evaluator.by_itself(trace, texts, unit, built.is_judged)
        if late := LIMIT.is_over:
            _log.error("trace %s: %s", trace.trace_id, LIMIT.reason)
        LIMIT.step = "what its session needs"
        may_have_session = trace.session_id is not None or trace.continues or trace.responses
        keeps = bool(self._evaluator.read_again) and may_have_session
        member = new_member(trace, texts, built.is_judged, pack(trace) if keeps else b"")
        if keeps and not late:
            member.facts.unsettled = self._evaluator.unsettled(trace, results)
        run = ScoredTrace(
            unit,
            member,
            results,
            lost=None if texts.lost is None else (type(texts.lost).__name__, str(texts.lost)),
            trace=trace,
            listed=listed(trace, built.attributes, built.cost),
            lacking=lacking(trace),
        )
        if built.is_judged and not (trace.is_step or trace.utility):
            with contextlib.suppress(OverTimeError):  # keep the questions made so far
                self._add_questions(trace, run)
        return Understood(built.digest, run)

    def _add_questions(self, trace: Trace, run: ScoredTrace) -> None:
        judge = self._evaluator.settings.judge
        if judge is None:
            return
        run.is_judged = True
        found, questions = self._evaluator.judged.questions(trace)
        run.results.extend(found)
        of_turns, about_turns = self._evaluator.judged.of_turns(trace)
        run.results.extend(of_turns)
        run.jobs += jobs_of(trace, (*questions, *about_turns), judge.delay)
        run.awaited.extend(question.metric.name for question in questions)


def jobs_of(trace: Trace, questions: Iterable[Question], delay: float, **more: Any) -> Iterator[JobRow]:
    body = {"trigger": trace.trigger.value, "revision": trace.revision, "late_spans": trace.late_spans, **more}
    for each in questions:
        alone = each.unit.level == "turn" and (each.metric.part is None or DETAIL not in more)
        about = {**body, TURN: each.unit.span_id} if alone else body
        yield JobRow(each.id, bytes.fromhex(trace.trace_id), each.metric.key, delay, orjson.dumps(about))


@dataclass(frozen=True, slots=True)
class _Built:
    digest: str
    trace: Trace
    is_judged: bool
    attributes: tuple[str, ...]
    cost: Mapping[str, Any]
    left: float = math.inf
    """Seconds until the time limit."""


def _tried(trace_id: str, seconds: float, work: Callable[..., T], *arguments: Any) -> T | Understood:
    try:
        failpoints.reach_over("over_trace", trace_id)
        return LIMIT.run(seconds, work, *arguments)
    except MemoryError:
        raise
    except (Exception, OverTimeError) as error:  # noqa: BLE001 - as above
        return _failed(trace_id, error)


def _failed(trace_id: str, error: BaseException) -> Understood:
    _log.error("trace %s cannot be understood", trace_id, exc_info=error)
    kind = "timeout" if isinstance(error, OverTimeError) else type(error).__name__
    return Understood("", failed=(kind, str(error)[:300]))
