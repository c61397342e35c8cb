"""Grades the trials of sessions that are over: all traces of a session that are of one case and one attempt.

What cannot be read any more leaves its trial without a score, and the result says why: no part is graded for the whole.
"""

from __future__ import annotations

import hashlib
import logging
import math
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import orjson

from pandaeval_collector.base.result import Result, Unit
from pandaeval_collector.pipeline.line.grading import LiveGrading
from pandaeval_collector.pipeline.line.members import Member, from_row, unit_again
from pandaeval_collector.pipeline.line.stored_traces import Part, rebuilt
from pandaeval_collector.pipeline.line.understanding import with_session
from pandaeval_collector.scoring.cases.matching import TrialTrace
from pandaeval_collector.scoring.cases.model import Case
from pandaeval_collector.scoring.cases.trial import Trial
from pandaeval_collector.store import StoreReader
from pandaeval_otel.model import Trace, Trigger
from pandaeval_otel.normal.trace import Closing


class NotKeptError(Exception):
    """Not all of a trial can be read; the text says why."""


def read_again(store: StoreReader, traces: Iterable[TrialTrace], most: float = math.inf) -> tuple[Trace, ...]:
    """Reads traces as they were when they were decided, each in the session that it was placed in. Raises
    :class:`NotKeptError` where they take more than ``most`` bytes or are not kept, and what decoding raises."""
    found: list[Trace] = []
    size = 0
    for each in traces:
        parts = store.contents(bytes.fromhex(each.trace_id))
        size += sum(len(data) for _, data in parts)
        if size > most:
            raise NotKeptError(f"its spans take more than {most / (1 << 20):g} MiB")
        found.append(_made(parts, each))
    return tuple(found)


def _made(parts: Sequence[Part], each: TrialTrace) -> Trace:
    trace = rebuilt(parts, Closing(each.trigger, each.revision, each.late_spans)).trace if parts else None
    if trace is None:
        raise NotKeptError(
            f"the spans of trace {each.trace_id} are not kept here (store.keep_content; sessions shared by collectors)"
        )
    if each.session_id is None or each.session_id == trace.session_id:
        return trace
    return with_session(trace, each.session_id)


_log = logging.getLogger(__name__)

MOST_TRACES = 200
MOST_BYTES = 64 << 20
"""Most traces and bytes that are read of one trial: a session may go on for ever."""


@dataclass(frozen=True, slots=True)
class _Attempt:
    case: Case
    name: str
    members: list[Member] = field(default_factory=list)


class SessionTrials:
    """Grades the trials of sessions. Reads the store and never writes; one thread."""

    def __init__(self, store: StoreReader, trials: LiveGrading) -> None:
        self._store, self._trials = store, trials

    def of(self, session_id: str) -> list[Result]:
        """Grades all trials of a session, and withdraws results of parts that were graded before they were whole."""
        found: list[Result] = []
        for attempt in self._attempts(session_id):
            found += self._graded(session_id, attempt)
            found += self._withdrawn(session_id, attempt)
        return found

    def _attempts(self, session_id: str) -> Sequence[_Attempt]:
        """Gathers the traces of each attempt as :class:`pandaeval_collector.scoring.cases.matching.TrialMatcher` does,
        by what they left behind."""
        found: dict[tuple[str, str], _Attempt] = {}
        current: _Attempt | None = None
        for member in map(from_row, self._store.session_traces(session_id)):
            told = member.facts.trial
            case = None if told is None else self._trials.case(told["case"])
            if told is not None and (current is None or not told["by_task"]):
                if case is None:
                    continue
                name = told["trial"] or session_id
                current = found.setdefault((case.id, name), _Attempt(case, name))
            if current is not None:
                current.members.append(member)
        return [*found.values()]

    def _graded(self, session_id: str, attempt: _Attempt) -> list[Result]:
        try:
            traces = self._read(session_id, attempt.members)
        except NotKeptError as error:
            ids = [member.trace_id for member in attempt.members]
            unit = _unit(session_id, attempt.members)
            return self._trials.grader.untold(attempt.case, attempt.name, unit, ids, str(error))
        return self._trials.grader.results(Trial(attempt.case, attempt.name, traces))

    def _read(self, session_id: str, members: Sequence[Member]) -> tuple[Trace, ...]:
        """Reads the traces of a trial. Raises :class:`NotKeptError` where not all of it can be read."""
        if len(members) > MOST_TRACES:
            raise NotKeptError(f"it has {len(members)} traces, and is graded up to {MOST_TRACES}: evaluate --cases")
        try:
            return read_again(self._store, _stored(session_id, members), MOST_BYTES)
        except (NotKeptError, sqlite3.Error, MemoryError):
            raise
        except Exception as error:  # whatever was kept of one trial, it must not cost the session, nor others
            _log.exception("a trial of session %s cannot be read", session_id)
            raise NotKeptError(f"what is kept of it cannot be read: {type(error).__name__}") from error

    def _withdrawn(self, session_id: str, attempt: _Attempt) -> Iterator[Result]:
        """Yields results without a score that replace those of a part: of the first traces, when nothing told that
        others would follow, or of a session that went on after it was over."""
        parts = attempt.members[:-1]
        if not parts:
            return
        newest = self._store.newest_results([member.trace_id for member in parts])
        last = attempt.members[-1].trace_id
        for at, member in enumerate(parts):
            of_part = {key: row for (unit, key), row in newest.items() if unit == member.trace_id}
            names = {
                key.removeprefix("trial.")
                for key, row in of_part.items()
                if key.startswith("trial.") and orjson.loads(row.body)["outcome"] != "unscored"
            }
            if names:
                unit, why = _unit(session_id, parts[: at + 1]), f"it was a part of a trial that goes on in trace {last}"
                ids = [each.trace_id for each in parts[: at + 1]]
                yield from self._trials.grader.untold(attempt.case, attempt.name, unit, ids, why, names, part_of=last)


def _stored(session_id: str, members: Iterable[Member]) -> Iterator[TrialTrace]:
    for member in members:
        told = member.facts.trial
        if told is None:
            raise NotKeptError(f"trace {member.trace_id} was decided where no cases are configured (cases.path)")
        trigger, late = Trigger(told["trigger"]), told["late_spans"]
        yield TrialTrace(member.trace_id, session_id, trigger, member.facts.revision, late)


def _unit(session_id: str, members: Sequence[Member]) -> Unit:
    """Makes the unit of a trial that cannot be read: its last trace stands for it."""
    evidence = hashlib.blake2b(digest_size=16)
    for member in members:
        evidence.update(f"{member.trace_id}:{member.facts.digest};".encode())
    unit = unit_again(members[-1], session_id, evidence.hexdigest())
    ids = tuple(f"{member.trace_id}:{member.facts.span_id}" for member in members[-MOST_TRACES:])
    return replace(unit, level="trial", trace_ids=ids if len(ids) > 1 else ())
