"""A decided trace as a stored session member."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pandaeval_collector.analysis.embedding import Embedder
from pandaeval_collector.analysis.embedding.text import plain
from pandaeval_collector.analysis.rules.asked_again import asked_words, asks_again
from pandaeval_collector.analysis.rules.response_recovery import answered_by, changed_by, wrong_calls
from pandaeval_collector.analysis.stats.similarity import Direction
from pandaeval_collector.base.result import Unit
from pandaeval_collector.base.untrusted.silence import says_something
from pandaeval_collector.pipeline.line.facts import (
    SignalFacts,
    TraceFacts,
    known_services,
    links_of,
    services_of,
    unpack,
)
from pandaeval_collector.scoring.metric import SessionSignal, Texts, TraceSummary
from pandaeval_collector.store import SessionTraceRow
from pandaeval_otel.base.names import all_bounded, bounded
from pandaeval_otel.model import Trace, Trigger
from pandaeval_otel.normal.session import MAX_ID_CHARS

_HEAD = struct.Struct("<II")
CLOCK_SLACK_NS = 2_000_000
"""Nanoseconds by which the next trace may begin too early, because JavaScript SDKs round their clock start."""


def packed_answer(text: str, vector: bytes, words: str) -> bytes:
    """Pack an answer. ``vector``: float32 bytes or empty. ``words``: content words."""
    encoded = words.encode()
    return _HEAD.pack(len(vector), len(encoded)) + vector + encoded + text.encode()


@dataclass(slots=True)
class Member:
    """A trace in its session. ``answer`` is packed until compared. ``changed``: must be stored."""

    trace_id: str
    start_ns: int
    end_ns: int
    facts: TraceFacts
    answer: bytes
    changed: bool = False
    _unpacked: tuple[Direction, frozenset[str]] | None = None

    @property
    def order(self) -> tuple[int, str]:
        return self.start_ns, self.trace_id

    def direction_and_words(self) -> tuple[Direction, frozenset[str]]:
        unpacked = self._unpacked
        if unpacked is None:
            unpack_answers([self])
            unpacked = self._unpacked
            assert unpacked is not None
        return unpacked

    @property
    def text(self) -> str:
        return self.answer[_HEAD.size + sum(_HEAD.unpack_from(self.answer)) : self._end].decode()

    @property
    def held(self) -> bytes:
        """Packed grounding data for later traces, or empty."""
        return self.answer[self._end :]

    @property
    def _end(self) -> int:
        return len(self.answer) - self.facts.held

    def precedes(self, agent: str, start_ns: int, embedder: str) -> bool:
        """Return whether the answer is comparable with a trace of ``agent`` from ``start_ns``."""
        facts = self.facts
        ended = self.end_ns <= start_ns + CLOCK_SLACK_NS and self.start_ns < start_ns
        return ended and facts.agent == agent and facts.embedder == embedder


def unpack_answers(members: Sequence[Member]) -> None:
    packed = [member for member in members if member._unpacked is None]
    if not packed:
        return
    heads = [_HEAD.unpack_from(member.answer) for member in packed]
    vectors = [member.answer[_HEAD.size : _HEAD.size + size] for member, (size, _) in zip(packed, heads, strict=True)]
    rows = np.frombuffer(b"".join(vectors), np.float32).reshape(len(vectors), -1)
    for member, (size, words), direction in zip(packed, heads, map(Direction, rows), strict=True):
        at = _HEAD.size + size
        member._unpacked = direction, frozenset(member.answer[at : at + words].decode().split())


def new_member(trace: Trace, texts: Texts, is_judged: bool = False, held: bytes = b"") -> Member:
    root = next((span for span in trace.spans if span.span_id == trace.root_span_id), trace.spans[0])
    text = plain(trace.output) if trace.output else ""
    points = bool(text) and text in texts.rows and bool(texts.direction(text))
    words = texts.words(text)
    answer = packed_answer(trace.output or "", texts.rows[text].tobytes() if points else b"", " ".join(words))
    services = services_of(trace)
    facts = TraceFacts(
        agent=trace.agent,
        service=trace.service,
        environment=trace.environment,
        span_id=trace.root_span_id,
        response_id=trace.response_id,
        sampled=trace.sampled,
        fragment=trace.fragment,
        digest=trace.digest,
        revision=trace.revision,
        crashed=trace.failure is not None and not trace.output,
        captured=trace.output is not None,
        said=says_something(trace.output),
        embedder=texts.embedder if points else None,
        signals={},
        responses=trace.responses,
        continues=trace.continues,
        pending=trace.ends_in_tool_call or trace.blocked is not None,
        done=(*changed_by(trace), *answered_by(trace)) if trace.tool_calls else (),
        turns=0 if trace.is_step else max(1, len(trace.turns)),
        judged=is_judged,
        rootless=not trace.complete,
        held=len(held),
        tried=any(wrong_calls(trace)),
        asked_again=asks_again(trace),
        asked=asked_words(trace),
        utility=bool(trace.utility),
        services=() if services == known_services([trace.service]) else services,
        links=links_of(trace),
    )
    unpacked = (texts.direction(text), words) if points else None
    return Member(trace.trace_id, trace.start_ns, root.end_ns, facts, answer + held, _unpacked=unpacked)


def remembered(member: Member, unit: Unit) -> Trace:
    facts = member.facts
    return Trace(
        trace_id=member.trace_id,
        spans=(),
        root_span_id=unit.span_id,
        agent=unit.agent,
        service=unit.service,
        environment=unit.environment,
        session_id=unit.session_id,
        error="" if facts.crashed else None,
        output=member.text if facts.captured else None,
        ends_in_tool_call=facts.pending,
        trigger=Trigger(unit.trigger),
        digest=facts.digest,
        revision=unit.revision,
        late_spans=unit.late_spans,
        response_id=unit.response_id,
        sampled=unit.sampled,
        complete=not facts.rootless,
        fragment=facts.fragment,
    )


def own_texts(member: Member, embedder: Embedder, size: int, lost: tuple[str, str] | None) -> Texts:
    """Return an answer's vector and words.

    ``size``: of a missing vector. ``lost``: kind and text of the embedding error.
    """
    text = plain(member.text)
    error = None if lost is None else type(lost[0], (Exception,), {})(lost[1])
    texts = Texts({}, (), embedder.id, embedder.bands, error)
    if member.facts.embedder is not None:
        texts.know(text, *member.direction_and_words())
    elif lost is None:
        vector, words = _HEAD.unpack_from(member.answer)
        at = _HEAD.size + vector
        found = member.answer[at : at + words].decode()
        texts.know(text, Direction(np.zeros(size, np.float32)), frozenset(found.split()))
    return texts


def unit_again(member: Member, session_id: str, evidence: str) -> Unit:
    facts = member.facts
    agent, service, environment = all_bounded((facts.agent, facts.service, facts.environment or ""))
    return Unit(
        level="trace",
        id=member.trace_id,
        trace_id=member.trace_id,
        span_id=facts.span_id,
        session_id=session_id,
        agent=agent,
        service=service,
        environment=environment or None,
        evidence=evidence,
        revision=facts.revision,
        trigger=Trigger.SESSION_CHANGED.value,
        response_id=bounded(facts.response_id, MAX_ID_CHARS),
        end_ns=member.end_ns,
        sampled=facts.sampled,
    )


def from_row(row: SessionTraceRow) -> Member:
    return Member(row.trace_id.hex(), row.start_ns, row.end_ns, unpack(row.body), row.answer)


def to_row(member: Member, session_id: str) -> SessionTraceRow:
    trace_id, facts = bytes.fromhex(member.trace_id), member.facts.pack()
    return SessionTraceRow(trace_id, session_id, member.start_ns, member.end_ns, facts, member.answer)


def summary(member: Member) -> TraceSummary:
    facts = member.facts
    stored: Mapping[str, Mapping[str, Any]] = facts.signals
    signals = {
        # A newer version may have stored more.
        name: SessionSignal(**{key: held for key, held in signal.items() if key in SessionSignal.__slots__})
        for name, signal in stored.items()
    }
    crashed = facts.crashed and not facts.is_dismissed
    return TraceSummary(member.trace_id, facts.digest, crashed, signals, facts.done)


def with_signals(row: SessionTraceRow, signals: dict[str, SignalFacts]) -> SessionTraceRow:
    member = from_row(row)
    member.facts.signals.update(signals)
    return to_row(member, row.session_id)
