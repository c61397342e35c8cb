"""A decided trace on its way to the collector that owns its session, and what that makes of it."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import zstandard

from pandaeval_collector.analysis.rules.grounding.before import before
from pandaeval_collector.pipeline.line.facts import check, unpack
from pandaeval_collector.pipeline.line.hints import Lacking
from pandaeval_collector.pipeline.line.members import from_row, unit_again
from pandaeval_collector.pipeline.line.understanding import Run
from pandaeval_collector.store import SessionTraceRow
from pandaeval_otel._proto.member_pb2 import Member

_COMPARED = "by an owner before this one"
Part = tuple[bool, bytes]


@dataclass(frozen=True, slots=True)
class Handed:
    """A trace that another collector decided. ``row``: what it left behind, under the session that its spans name, or
    none. ``left``: it is in that session no more. ``contents``: (is_logs, request) for its requests, where the owner
    may need them. ``is_done``: an owner before this one has scored the session for good, as far as it had come."""

    row: SessionTraceRow
    left: bool = False
    contents: Sequence[Part] = ()
    is_done: bool = False


def packed(row: SessionTraceRow, *, decided: bool) -> bytes:
    """Packs a member as it is sent. ``decided``: the trace was decided just now; otherwise a judge has answered. The
    spans of the trace go along where its owner may need them: to ask a judge about the session, or to read the trace
    with earlier ones."""
    facts = unpack(row.body)
    return Member(
        trace_id=row.trace_id,
        session_id=row.session_id,
        start_ns=row.start_ns,
        end_ns=row.end_ns,
        facts=row.body,
        answer=row.answer,
        decided=decided and (facts.judged or bool(facts.unsettled)),
    ).SerializeToString()


def packed_left(trace_id: bytes, session_id: str) -> bytes:
    """Packs the message that a trace is not in a session any more."""
    return Member(trace_id=trace_id, session_id=session_id, left=True).SerializeToString()


def packed_end(session_id: str) -> bytes:
    """Packs the message that a session is over."""
    return Member(session_id=session_id, session_end=True).SerializeToString()


def unpacked(message: bytes, is_done: bool = False) -> Handed:
    """Unpacks a member. ``is_done``: see :class:`Handed`. Raises ``ValueError`` for what no collector has sent."""
    member = Member.FromString(message)
    if max(member.start_ns, member.end_ns) >= 1 << 63:
        raise ValueError("its times are none")
    row = SessionTraceRow(
        member.trace_id, member.session_id, member.start_ns, member.end_ns, member.facts, member.answer
    )
    if member.left:
        return Handed(row, left=True, is_done=is_done)
    try:
        # All that a session will read of a member.
        made = from_row(row)
        check(made.facts)
        with np.errstate(invalid="ignore"):  # what is not finite raises an error of its own
            made.direction_and_words()
        _ = made.text
        before([made.held], frozenset())
    except (ValueError, KeyError, TypeError, AttributeError, struct.error, zstandard.ZstdError) as error:
        raise ValueError(f"it says nothing of its trace: {type(error).__name__}: {error}") from error
    return Handed(row, contents=[(part.logs, part.request) for part in member.contents], is_done=is_done)


def run_of(handed: Handed) -> Run:
    """Makes a handed-over trace a run for the owner of its session, without results."""
    member = from_row(handed.row)
    unit = unit_again(member, handed.row.session_id, member.facts.digest)
    unit.session_id = handed.row.session_id or None
    if handed.is_done:
        member.facts.evidence = dict.fromkeys(member.facts.unsettled, _COMPARED)
    return Run(unit, member, [], Lacking(unit.service), is_handed=True)
