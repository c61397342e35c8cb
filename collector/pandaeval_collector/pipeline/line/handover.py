"""Sends decided traces to the collector that owns their session."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import zstandard
from pydantic import ValidationError

from pandaeval_collector.analysis.rules.grounding.before import before
from pandaeval_collector.base.result import Result
from pandaeval_collector.base.session_ids import sent_id
from pandaeval_collector.exporters.delivery import MEMBERS
from pandaeval_collector.pipeline.line.dismissals import Dismissals, kept
from pandaeval_collector.pipeline.line.facts import check, unpack
from pandaeval_collector.pipeline.line.implied_sessions import Places
from pandaeval_collector.pipeline.line.members import from_row, to_row, unit_again, with_signals
from pandaeval_collector.pipeline.line.sessions import SessionPlaces
from pandaeval_collector.pipeline.line.understanding import ScoredTrace, by_itself, explained
from pandaeval_collector.scoring.evaluator import Evaluator
from pandaeval_collector.store import SessionTraceRow, StoreReader, WriteSet, outbox_batches, packed_contents
from pandaeval_collector.store.chunks import Part
from pandaeval_otel._proto.member_pb2 import Member

_COMPARED = "by an owner before this one"


@dataclass(frozen=True, slots=True)
class Handed:
    """Another collector's trace.

    ``left``: it left the session. ``contents``: (is_logs, request), if needed. ``is_done``: the session has a final
    score.
    """

    row: SessionTraceRow
    left: bool = False
    contents: Sequence[Part] = ()
    is_done: bool = False


def packed(row: SessionTraceRow, *, decided: bool) -> bytes:
    """Pack a member, and mark it if the owner may need its spans. ``decided``: decided just now, else judged."""
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


def unpacked(message: bytes, is_done: bool = False) -> Handed:
    member = Member.FromString(message)
    if max(member.start_ns, member.end_ns) >= 1 << 63:
        raise ValueError("its times are none")
    row = SessionTraceRow(
        member.trace_id, member.session_id, member.start_ns, member.end_ns, member.facts, member.answer
    )
    if member.left:
        return Handed(row, left=True, is_done=is_done)
    try:
        # Everything that a session reads of a member.
        made = from_row(row)
        check(row.body)
        with np.errstate(invalid="ignore"):  # values that are not finite raise their own error
            made.direction_and_words()
        _ = made.text
        before([made.held], frozenset())
    except ValidationError as error:  # the error text contains the value, which is content of the record
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise ValueError(f"its trace cannot be read: {place}: {first['msg']}") from None
    except (ValueError, KeyError, TypeError, AttributeError, struct.error, zstandard.ZstdError) as error:
        raise ValueError(f"its trace cannot be read: {type(error).__name__}: {error}") from error
    return Handed(row, contents=[(part.logs, part.request) for part in member.contents], is_done=is_done)


class MemberHandover:
    """Replaces :class:`SessionPlaces` for other collectors' sessions. Only reads the store; single-threaded."""

    def __init__(self, store: StoreReader, evaluator: Evaluator, sessions: SessionPlaces) -> None:
        self._store, self._evaluator, self._sessions = store, evaluator, sessions

    def place(self, runs: Sequence[ScoredTrace]) -> tuple[list[ScoredTrace], Places]:
        revised = [bytes.fromhex(run.unit.trace_id) for run in runs if run.unit.revision > 1]
        places = Places(before={row.trace_id.hex(): row for row in self._store.left_behind(revised).values()})
        return [by_itself(run, self._evaluator) for run in runs], places

    def file(self, runs: Sequence[ScoredTrace], places: Places, changes: WriteSet) -> list[Result]:
        """Queue messages in ``changes``.

        Returns the results, except results that earlier traces may change; the owner reports those.
        """
        messages: list[bytes] = []
        for run in runs:
            session_id = run.unit.session_id or ""
            old = places.before.get(run.unit.trace_id)
            if old is not None and sent_id(old.session_id) not in ("", session_id):
                left = Member(trace_id=old.trace_id, session_id=sent_id(old.session_id), left=True)
                messages.append(left.SerializeToString())
                changes.moved.append(old.trace_id)
            if not session_id:
                continue
            row = to_row(self._sessions.member(run, places), session_id)
            changes.session_traces.append(row)
            changes.elsewhere.add(session_id)
            messages.append(packed(row, decided=True))
        changes.outbox.extend(outbox_batches(MEMBERS, messages))
        dismissed = self._store.dismissed()
        return [
            result
            for run in runs
            for result in (
                run.results if run.unit.session_id else explained(run, kept(run.results, dismissed), self._evaluator)
            )
            if run.unit.session_id is None or result.metric not in run.member.facts.unsettled
        ]

    def tell(self, results: Sequence[Result], changes: WriteSet) -> None:
        rows = self._sessions.retold(results)
        changes.session_traces.extend(rows)
        changes.elsewhere.update(row.session_id for row in rows if row.session_id)
        changes.outbox.extend(outbox_batches(MEMBERS, [packed(row, decided=False) for row in rows]))


class Adoption:
    """Adds handed-over traces to their sessions. Only reads the store; single-threaded."""

    def __init__(self, store: StoreReader, evaluator: Evaluator, sessions: SessionPlaces) -> None:
        self._store, self._sessions, self._dismissals = store, sessions, Dismissals(store)
        self._compared = frozenset(metric.name for metric, reads in evaluator.plan.dependent if reads.answers)

    def adopt(self, handed: Sequence[Handed], changes: WriteSet) -> tuple[dict[str, int], list[Result]]:
        """Add the traces to ``changes``. Returns sessions to compare, and verdicts that a dismissal changes.

        Marks the sessions as changed, unless a previous owner gave them their final score.
        """
        newest = _last_words(handed)
        known = self._store.left_behind(newest)
        grown: dict[str, int] = {}
        runs: list[ScoredTrace] = []
        gone: list[SessionTraceRow] = []
        verdicts: list[Result] = []
        for trace_id, message in newest.items():
            old = known.get(trace_id)
            if message.left:
                gone += self._leave(message.row.session_id, old, grown)
            elif old is not None and _is_same(old, message.row):
                verdicts += self._update_signals(old, message, changes)
            else:
                runs.append(_run_of(message))
                if message.contents:
                    changes.contents[trace_id] = packed_contents(message.contents)
        runs.sort(key=lambda run: run.member.order)
        for run in runs:
            changes.strangers[bytes.fromhex(run.unit.trace_id)] = run.member.facts.digest
        placed, places = self._sessions.place(runs)
        places.moved += [(row, None) for row in gone]
        grown |= self._sessions.enter(placed, places, changes)
        changes.touched.update(grown)
        sent = {message.row.session_id for message in handed if message.is_done}
        sent -= {message.row.session_id for message in handed if not message.is_done}
        done = {session_id for session_id in changes.touched if sent_id(session_id) in sent}
        changes.touched -= done
        changes.elsewhere |= done
        return {session_id: start_ns for session_id, start_ns in grown.items() if session_id not in done}, verdicts

    def _leave(self, session_id: str, old: SessionTraceRow | None, grown: dict[str, int]) -> list[SessionTraceRow]:
        """Note that a trace left a session. Returns its row if it was a member."""
        is_member = old is not None and sent_id(old.session_id) == session_id
        its = old.session_id if old is not None and is_member else session_id
        if self._store.session_is_open(its) is not None:
            grown[its] = 0
        return [old] if old is not None and is_member else []

    def _update_signals(self, old: SessionTraceRow, message: Handed, changes: WriteSet) -> Iterable[Result]:
        facts = unpack(message.row.body)
        ours = self._compared.union(facts.unsettled)
        row = with_signals(old, {name: signal for name, signal in facts.signals.items() if name not in ours})
        changes.session_traces.append(row)
        if row.session_id:
            changes.touched.add(row.session_id)
        was, now = (unpack(each.body).is_dismissed for each in (old, row))
        return () if was == now else self._dismissals.verdicts(row.trace_id.hex(), row.session_id or None, undone=was)


def _run_of(message: Handed) -> ScoredTrace:
    member, session_id = from_row(message.row), message.row.session_id
    unit = unit_again(member, session_id, member.facts.digest)
    unit.session_id = session_id or None
    if message.is_done:
        member.facts.evidence = dict.fromkeys(member.facts.unsettled, _COMPARED)
    return ScoredTrace(unit, member, [], is_handed=True)


def _last_words(handed: Sequence[Handed]) -> dict[bytes, Handed]:
    newest: dict[bytes, Handed] = {}
    for each in handed:
        earlier = newest.get(each.row.trace_id)
        lacks = not each.contents and not each.left
        if lacks and earlier is not None and earlier.contents and _digest(earlier) == _digest(each):
            each = replace(each, contents=earlier.contents)
        newest[each.row.trace_id] = each
    return newest


def _digest(handed: Handed) -> str:
    return unpack(handed.row.body).digest


def _is_same(old: SessionTraceRow, new: SessionTraceRow) -> bool:
    known, reported = unpack(old.body), unpack(new.body)
    if known.evidence is None or (new.session_id and sent_id(old.session_id) != new.session_id):
        return False
    return (known.digest, known.revision) == (reported.digest, reported.revision)
