"""Evaluates metrics that read other traces of the session.

A digest of the trace and the traces read is part of the result id. If it changes, the metric runs again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import orjson

from pandaeval_collector.analysis.rules.grounding.before import before
from pandaeval_collector.base.result import DISMISSED, Result, Unit, cut
from pandaeval_collector.base.score import Score, Unscored, Why
from pandaeval_collector.base.time_limit import LIMIT, OverTimeError
from pandaeval_collector.pipeline.line.dismissals import ORIGINAL, kept
from pandaeval_collector.pipeline.line.facts import SignalFacts
from pandaeval_collector.pipeline.line.members import (
    Member,
    from_row,
    own_texts,
    remembered,
    unit_again,
    unpack_answers,
)
from pandaeval_collector.pipeline.line.revisions import taken_back
from pandaeval_collector.pipeline.line.stored_traces import kept_trace
from pandaeval_collector.pipeline.line.understanding import ScoredTrace, with_session
from pandaeval_collector.scoring.evaluator import Evaluator
from pandaeval_collector.scoring.metric import APPLIES, EarlierOutput, SessionReads, TraceMetric
from pandaeval_collector.scoring.metrics.trace.response import ASKS_ON, HONEST, Ending
from pandaeval_collector.store import StoreReader
from pandaeval_otel.model import Trace

_SAID_CHARS = 200
"""Characters of a failed result's reason that the reason of its session can quote."""
_NOT_KEPT = Unscored(Why.INSUFFICIENT_EVIDENCE, "its spans are not stored here, so earlier traces were not read")


@dataclass(slots=True)
class FiledRun:
    run: ScoredTrace
    results: list[Result]


@dataclass(slots=True)
class Stretch:
    """Session members from position ``first``. ``since``: first member whose predecessors may have changed."""

    session_id: str
    first: int
    members: list[Member]
    since: int

    @classmethod
    def of(cls, session_id: str, first: int, members: Iterable[Member], *, whole: bool = False) -> Stretch:
        """Order the members. ``whole``: all predecessors may have changed, because a member left."""
        ordered = sorted(members, key=lambda member: member.order)
        changed = (index for index, member in enumerate(ordered) if member.changed and not whole)
        return cls(session_id, first, ordered, next(changed, 0))


@dataclass(slots=True)
class DueReading:
    """A due evaluation. ``others``: indices. ``evidence``: digest of all. ``trace``: with spans, if read."""

    stretch: Stretch
    member: Member
    others: Sequence[int]
    evidence: str
    trace: Trace | None = None

    @property
    def read(self) -> list[Member]:
        return [self.stretch.members[at] for at in self.others]


class _Rule:
    """How a metric reads other traces. ``tells_session``: session metrics read its results."""

    end: tuple[str, ...] = ()
    tells_session = True

    def __init__(self, metric: TraceMetric, reads: SessionReads, evaluator: Evaluator, store: StoreReader) -> None:
        self.metric, self.reads, self.most = metric, reads, reads.later or reads.earlier
        self._evaluator, self._store = evaluator, store

    def others(self, members: Sequence[Member], index: int) -> Sequence[int] | None:
        raise NotImplementedError

    def results(self, reading: DueReading, unit: Unit, run: ScoredTrace | None) -> list[Result] | None:
        """Evaluate the metric. ``None`` keeps the stored result."""
        raise NotImplementedError

    def prepare(self, readings: Sequence[DueReading]) -> None:
        """Prepare all due readings before evaluation."""

    def due(self, stretch: Stretch, fresh: Collection[str]) -> Iterator[DueReading]:
        members = stretch.members
        for index in range(0 if self.reads.later else stretch.since, len(members)):
            member = members[index]
            others = self.others(members, index)
            if others is None or member.facts.evidence is None:  # it is compared later, when it is due
                continue
            read = [f"{members[at].trace_id}:{members[at].facts.digest}" for at in others]
            evidence = member.facts.digest
            if read or self.end:
                used = ";".join([evidence, *read, *self.end])
                evidence = hashlib.blake2b(used.encode(), digest_size=16).hexdigest()
            if member.trace_id in fresh or member.facts.evidence.get(self.metric.name) != evidence:
                yield DueReading(stretch, member, others, evidence)


class _Answers(_Rule):
    def others(self, members: Sequence[Member], index: int) -> Sequence[int]:
        facts, start_ns, embedder = members[index].facts, members[index].start_ns, self._evaluator.embedder.id
        if not facts.said:
            return ()
        backwards = (at for at in range(index - 1, -1, -1) if members[at].precedes(facts.agent, start_ns, embedder))
        return [*islice(backwards, self.most)][::-1]

    def prepare(self, readings: Sequence[DueReading]) -> None:
        embedder = self._evaluator.embedder.id
        used = [member for each in readings for member in each.read]
        used += [each.member for each in readings if each.member.facts.embedder == embedder]
        unpack_answers(list({id(member): member for member in used}.values()))

    def results(self, reading: DueReading, unit: Unit, run: ScoredTrace | None) -> list[Result]:
        member, first = reading.member, reading.stretch.first
        earlier = tuple(
            EarlierOutput(each.trace_id, first + at, *each.direction_and_words(), frozenset(each.facts.asked.split()))
            for at, each in zip(reading.others, reading.read, strict=True)
        )
        size, lost = len(earlier[0].embedding) if earlier else 0, None if run is None else run.lost
        texts = own_texts(member, self._evaluator.embedder, size, lost)
        facts = member.facts
        asking = {
            "asked_again": facts.asked_again,
            "asked": frozenset(facts.asked.split()),
            "changed": bool(facts.done),
            "tried": facts.tried,
        }
        trace = remembered(member, unit)
        return self._evaluator.with_others(self.metric, trace, unit, texts, earlier=earlier, **asking)


class _Before(_Rule):
    end = ("",)

    def others(self, members: Sequence[Member], index: int) -> Sequence[int] | None:
        is_open = self.metric.name in members[index].facts.unsettled
        return range(max(0, index - self.most), index) if is_open else None

    def results(self, reading: DueReading, unit: Unit, run: ScoredTrace | None) -> list[Result] | None:
        member = reading.member
        trace = _kept(self._store, reading) if run is None else run.trace
        if trace is None:
            was_read = self.metric.name in (member.facts.evidence or ())
            return None if was_read else self._evaluator.said_of(self.metric.key, unit, _NOT_KEPT)
        responses = frozenset(id_ for each in reading.read for id_ in each.facts.responses)
        known = before([each.held for each in reading.read], responses)
        return self._evaluator.with_others(self.metric, trace, unit, before=known)


class _Recovery(_Rule):
    """Detects later calls that repair an admitted failed call or answer an open call."""

    tells_session = False

    def others(self, members: Sequence[Member], index: int) -> Sequence[int] | None:
        signal = members[index].facts.signals.get(self.metric.name)
        if signal is None:
            return None
        open_ = signal.get("open") or (signal.get("lost") if signal["value"] == HONEST else None)
        later = range(index + 1, min(index + 1 + self.most, len(members))) if open_ else ()
        by = next((at for at in later if open_ in members[at].facts.done), None)
        return None if by is None else (by,)

    def results(self, reading: DueReading, unit: Unit, run: ScoredTrace | None) -> list[Result]:
        signal, [by] = reading.member.facts.signals[self.metric.name], reading.read
        if call := signal.get("open"):
            reason = f"a later trace of the session answers the last call, {call.partition('(')[0]}"
            finding = Score(1.0, reason, {"continued_by": by.trace_id, "open_call": call})
        else:
            tool = signal["lost"]
            metadata = {"ending": Ending.UNRECOVERED_TOOL_ERROR.value, "tool": tool, "lost_tool": tool}
            reason = f"{signal.get('said') or f'{tool} failed'}; a later trace of the session recovered"
            finding = Score(ASKS_ON, reason, {**metadata, "recovered_by": by.trace_id})
        return self._evaluator.said_of(self.metric.key, unit, finding)


def _kept(store: StoreReader, reading: DueReading) -> Trace | None:
    member, session_id = reading.member, reading.stretch.session_id
    trace = kept_trace(store.contents(bytes.fromhex(member.trace_id)), member.facts.digest)
    reading.trace = trace if trace is None or trace.session_id == session_id else with_session(trace, session_id)
    return reading.trace


def _failed_before(store: StoreReader, unit: Unit, anew: Collection[str]) -> list[tuple[str, str, Sequence[str]]]:
    found: list[tuple[str, str, Sequence[str]]] = []
    for (about, key), row in store.newest_results([unit.id, unit.session_id or ""]).items():
        level, _, name = key.partition(".")
        is_judged = name == "correctness"
        if row.success == 0 and (is_judged or level != "session") and not (about == unit.id and name in anew):
            body = orjson.loads(row.body)
            if is_judged or body["evaluator"]["kind"] != "llm":
                found.append((row.id, name, tuple(body["span_ids"])))
    return found


def blamed_by_judge(store: StoreReader, evaluator: Evaluator, result: Result) -> list[Result]:
    """Explain failures again after a judge's ``result``, for blamed traces and failed traces without a step."""
    if result.metric != "correctness":
        return []
    older = store.newest_results([result.unit.id]).get((result.unit.id, result.key))
    step, failed_before = _blamed_step(result), older is not None and older.success == 0
    before = orjson.loads(older.body)["metadata"].get("blame") if older is not None and failed_before else None
    is_named = failed_before or step != {"trace_id": result.unit.id}
    found: list[Result] = []
    for trace_id in dict.fromkeys(blamed["trace_id"] for blamed in (step, before) if blamed):
        unit, trace = _kept_again(store, result.unit, bytes.fromhex(trace_id))
        if unit is None or trace is None:
            continue
        failing = [failure for failure in _failed_before(store, unit, ()) if older is None or failure[0] != older.id]
        if not is_named and any(spans for *_, spans in failing):
            continue  # these spans are blamed already
        if step and step["trace_id"] == trace_id and isinstance(result.finding, Score):
            failing.append((result.id, result.metric, result.finding.span_ids))
        explanations = evaluator.blamed(trace, unit, failing)
        found += explanations or taken_back(store, evaluator, unit, explanations, among=evaluator.explaining)
    return found


def blamed_by_person(store: StoreReader, evaluator: Evaluator, finding: Result) -> list[Result]:
    """Explain a trace's failures again after a person dismissed ``finding``, or withdrew the dismissal."""
    unit, before = finding.unit, finding.finding.metadata.get(ORIGINAL) or {}
    held = store.held(bytes.fromhex(unit.trace_id)) if unit.level != "session" else None
    if held is None:
        return []
    trace = kept_trace(store.contents(bytes.fromhex(unit.trace_id)), held[0])
    span_id = unit.span_id if trace is None else trace.root_span_id
    unit = replace(unit, level="trace", id=unit.trace_id, span_id=span_id)
    failing = [failure for failure in _failed_before(store, unit, ()) if failure[0] != before.get("id")]
    if finding.success is False and isinstance(finding.finding, Score):
        failing.append((finding.id, finding.metric, finding.finding.span_ids))
    if trace is None and failing:
        return []
    explanations = evaluator.blamed(trace, unit, failing) if trace is not None else []
    return explanations or taken_back(store, evaluator, unit, explanations, among=evaluator.explaining)


def _blamed_step(result: Result) -> Mapping[str, Any] | None:
    if result.success is not False:
        return None
    step: Mapping[str, Any] | None = result.finding.metadata.get("blame")
    return step or ({"trace_id": result.unit.id} if result.unit.level == "trace" else None)


def _kept_again(store: StoreReader, unit: Unit, trace_id: bytes) -> tuple[Unit | None, Trace | None]:
    if unit.level == "session":
        row = store.left_behind([trace_id]).get(trace_id)
        if row is None:
            return None, None
        member = from_row(row)
        unit = unit_again(member, unit.id, member.facts.digest)
    return unit, kept_trace(store.contents(trace_id), unit.evidence)


class Dependencies:
    """Evaluates metrics that read other traces of the session. Only reads the store; single-threaded."""

    def __init__(self, store: StoreReader, evaluator: Evaluator) -> None:
        self._store, self._evaluator = store, evaluator
        self._rules: list[_Rule] = []
        for metric, reads in evaluator.plan.dependent:
            kind = _Recovery if reads.later else _Answers if reads.answers else _Before
            self._rules.append(kind(metric, reads, evaluator, store))

    def suffices(self, newest: Sequence[Member], start_ns: int) -> bool:
        later = [member for member in newest if member.start_ns >= start_ns]
        before = len(newest) - len(later)
        agents = {member.facts.agent for member in later if member.facts.said}
        is_unsettled, embedder = any(member.facts.unsettled for member in later), self._evaluator.embedder.id
        for rule in self._rules:
            if rule.reads.answers:
                preceding = [sum(each.precedes(agent, start_ns, embedder) for each in newest) for agent in agents]
                if min(preceding, default=rule.most) < rule.most:
                    return False
            elif before < rule.most and (is_unsettled or rule.reads.unsettled is None):
                return False
        return before > 0

    def score(self, stretches: Sequence[Stretch], batch: Mapping[str, FiledRun]) -> list[Result]:
        """Evaluate due metrics and mark changed members. Adds results to traces of the batch; returns the others."""
        again: dict[str, tuple[DueReading, list[Result]]] = {}
        more: list[Result] = []
        for stretch in stretches:
            for member in stretch.members[stretch.since :]:
                if gone := self._first_read(stretch, member, batch):
                    again[member.trace_id] = DueReading(stretch, member, (), ""), gone
        for rule in self._rules:
            due = [reading for stretch in stretches for reading in rule.due(stretch, batch)]
            rule.prepare(due)
            for reading in due:
                found = self._score(rule, reading, batch.get(reading.member.trace_id))
                if rule.reads.answers:  # such a result names no step
                    more += found
                elif found:
                    again.setdefault(reading.member.trace_id, (reading, []))[1].extend(found)
        return [*more, *(result for reading, found in again.values() for result in self._explained(reading, found))]

    def _first_read(self, stretch: Stretch, member: Member, batch: Mapping[str, FiledRun]) -> list[Result]:
        facts = member.facts
        if facts.evidence is not None:
            return []
        facts.evidence, member.changed = {}, True
        if facts.revision == 1 or member.trace_id in batch:
            return []
        names = self._evaluator.read_again.difference(facts.unsettled, facts.signals)
        unit = unit_again(member, stretch.session_id, facts.digest)
        return taken_back(self._store, self._evaluator, unit, [], among=names)

    def _explained(self, reading: DueReading, results: Sequence[Result]) -> list[Result]:
        member, evaluator = reading.member, self._evaluator
        unit = unit_again(member, reading.stretch.session_id, member.facts.digest)
        results = kept(results, self._store.dismissed())
        anew = {result.metric for result in results if result.unit.level == "trace"}
        stand = _failed_before(self._store, unit, anew)
        trace = reading.trace or _kept(self._store, reading)
        if trace is None and (stand or any(result.success is False for result in results)):
            return [*results]
        explained_results = (
            [*results] if trace is None else evaluator.explained(trace, unit, results, stand=stand, with_session=True)
        )
        return explained_results + taken_back(
            self._store, evaluator, unit, explained_results, among=evaluator.explaining
        )

    def _score(self, rule: _Rule, reading: DueReading, filing: FiledRun | None) -> list[Result]:
        member, name = reading.member, rule.metric.name
        if filing is not None:
            unit = filing.run.unit.with_evidence(reading.evidence)
        else:
            unit = unit_again(member, reading.stretch.session_id, reading.evidence)
        run, seconds = None if filing is None else filing.run, self._evaluator.settings.trace_timeout
        try:
            results = LIMIT.run(seconds, rule.results, reading, unit, run)
        except OverTimeError:
            results = self._evaluator.set_aside(unit, LIMIT.reason, Why.TIMEOUT, [rule.metric])
        if results is None:
            return []
        member.facts.evidence = {**(member.facts.evidence or {}), name: reading.evidence}
        if rule.tells_session:
            member.facts.signals.pop(name, None)
            member.facts.signals.update(signals_of(self._evaluator, results))
        if filing is not None:
            others = [each for each in filing.results if each.unit.level != "trace" or each.metric != name]
            filing.results = others + results
            if isinstance(rule, _Recovery) and filing.run.trace is not None:  # perhaps no failure is left to explain
                filing.results = self._evaluator.explained(
                    filing.run.trace, filing.run.unit, filing.results, with_session=True
                )
            return []
        member.changed = True
        if member.facts.revision > 1:
            results += taken_back(self._store, self._evaluator, unit, results, among=[name])
        return results


def signals_of(evaluator: Evaluator, results: Iterable[Result]) -> dict[str, SignalFacts]:
    signals: dict[str, SignalFacts] = {}
    for result in results:
        if result.unit.level != "trace" or not result.is_verdict or result.finding.metadata.get(APPLIES) is False:
            continue
        if result.finding.metadata.get("selected"):  # judged alone: a session is judged whole or not at all
            signals[result.metric] = {"outcome": "unscored", "value": None, "why": Why.NOT_SAMPLED.value}
            continue
        value = evaluator.signal_value(result)
        signal = signals[result.metric] = {"outcome": result.outcome, "value": value, "why": result.why}
        if result.success is False and result.finding.reason:
            signal["said"] = cut(result.finding.reason, _SAID_CHARS)
        if result.label == DISMISSED:
            signal["dismissed"] = True
            continue
        if lost := result.finding.metadata.get("lost_tool"):
            signal["lost"] = lost
        if call := result.finding.metadata.get("open_call"):
            signal["open"] = call
    return signals
