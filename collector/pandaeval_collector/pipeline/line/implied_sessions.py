"""Finds sessions of traces without a session id, from continued responses or histories.

A trace joins the session of the earlier trace that it continues. A chain is named by its first trace's last response
id. Equal conversations count only with exactly one earlier trace. The result does not depend on arrival order.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from pandaeval_collector.pipeline.line.members import Member, from_row
from pandaeval_collector.pipeline.line.understanding import ScoredTrace
from pandaeval_collector.store import ResponseRow, SessionTraceRow, StoreReader, response_digest
from pandaeval_otel.model import Trace
from pandaeval_otel.normal.session import is_history

Order = tuple[int, str]


@dataclass(slots=True)
class Places:
    """Session placement of a batch.

    ``sessions``: by trace id. ``waiting``: may join later. ``before``: older revisions' rows. ``moved``: earlier traces
    by new session or ``None``.
    """

    sessions: dict[str, str] = field(default_factory=dict)
    waiting: set[str] = field(default_factory=set)
    before: dict[str, SessionTraceRow] = field(default_factory=dict)
    moved: list[tuple[SessionTraceRow, str | None]] = field(default_factory=list)
    responses: list[ResponseRow] = field(default_factory=list)


class Chains(Protocol):
    def place(self, runs: Sequence[ScoredTrace]) -> Places:
        """Return the sessions of ``runs``, ordered by start."""


@dataclass(slots=True)
class LinkedTrace:
    """A trace with its links. ``named``: session in its spans. ``session``: actual session. ``row``: stored data."""

    trace_id: str
    start_ns: int
    named: str | None
    continues: str
    responses: tuple[str, ...]
    session: str | None = None
    row: SessionTraceRow | None = None

    @classmethod
    def of(cls, trace: Trace) -> LinkedTrace:
        return cls(trace.trace_id, trace.start_ns, trace.session_id, trace.continues, trace.responses)

    @property
    def order(self) -> Order:
        return self.start_ns, self.trace_id

    @property
    def linked(self) -> bool:
        return bool(self.responses or self.continues)

    def differs(self, older: LinkedTrace | None) -> bool:
        if older is None:
            return True
        before = older.order, older.named, older.continues, older.responses
        return before != (self.order, self.named, self.continues, self.responses)


class Forward:
    """:class:`Chains` for complete, ordered input. ``turns``: linkable traces."""

    def __init__(self, turns: Iterable[LinkedTrace]) -> None:
        self._web = _Web(None, (turn for turn in turns if turn.linked))

    def place(self, runs: Sequence[ScoredTrace]) -> Places:
        places = Places()
        for run in runs:
            if run.member.facts.linked:
                turn = _turn(run.member, run.unit.session_id)
                session = self.session(turn)
                if turn.named is None and session is not None:
                    places.sessions[turn.trace_id] = session
        return places

    def session(self, turn: LinkedTrace) -> str | None:
        if not turn.linked:
            return turn.named
        if turn.trace_id not in self._web.turns:
            self._web.add(turn)
        turn = self._web.turns[turn.trace_id]
        turn.session = self._web.session(turn)
        return turn.session


class StoredChains:
    """:class:`Chains` for any order of arrival. Only reads the store."""

    def __init__(self, store: StoreReader) -> None:
        self._store = store

    def place(self, runs: Sequence[ScoredTrace]) -> Places:
        revised = [bytes.fromhex(run.unit.trace_id) for run in runs if run.unit.revision > 1 or run.is_handed]
        before = {row.trace_id.hex(): row for row in self._store.left_behind(revised).values()} if revised else {}
        places = Places(before=before)
        older = {trace_id: turn for trace_id, row in before.items() if (turn := _stored(row)).linked}
        linked = [run for run in runs if run.member.facts.linked or run.unit.trace_id in older]
        batch = [_turn(run.member, run.unit.session_id) for run in linked]
        if not batch:
            return places
        for turn in batch:
            turn.session = turn.named or _implied(older.get(turn.trace_id))
        fresh = [turn for turn in batch if turn.differs(older.get(turn.trace_id))]
        web = _Web(self._store, batch)
        web.settle(fresh, [older[turn.trace_id] for turn in fresh if turn.trace_id in older])
        places.sessions = {turn.trace_id: turn.session for turn in batch if turn.named is None and turn.session}
        places.waiting = {turn.trace_id for turn in batch if turn.session is None and turn.linked}
        places.responses += [row for turn in fresh for row in _response_rows(turn)]
        places.moved = web.moved()
        return places


def _implied(older: LinkedTrace | None) -> str | None:
    return older.session if older is not None and older.named is None else None


def _response_rows(turn: LinkedTrace) -> list[ResponseRow]:
    trace_id = bytes.fromhex(turn.trace_id)
    rows = [ResponseRow(trace_id, response_digest(id_), False) for id_ in turn.responses]
    if turn.continues:
        rows.append(ResponseRow(trace_id, response_digest(turn.continues), True))
    return rows


def _stored(row: SessionTraceRow) -> LinkedTrace:
    member, session = from_row(row), row.session_id or None
    turn = _turn(member, None if member.facts.chained else session)
    turn.session, turn.row = session, row
    return turn


def _turn(member: Member, named: str | None) -> LinkedTrace:
    return LinkedTrace(member.trace_id, member.start_ns, named, member.facts.continues, member.facts.responses)


class _Web:
    """Turns around new turns, read on demand. ``store``: ``None`` for a complete batch."""

    def __init__(self, store: StoreReader | None, batch: Iterable[LinkedTrace]) -> None:
        self._store = store
        self.turns: dict[str, LinkedTrace] = {}
        self._giving: dict[str, list[LinkedTrace]] = defaultdict(list)
        self._continuing: dict[str, list[LinkedTrace]] = defaultdict(list)
        self._asked: tuple[set[str], set[str]] = set(), set()
        for turn in batch:
            self.add(turn)

    def settle(self, fresh: Sequence[LinkedTrace], older: Sequence[LinkedTrace]) -> None:
        """Set sessions of fresh turns and followers. ``older``: earlier versions."""
        self._read({turn.continues for turn in (*fresh, *older) if turn.continues}, continued=False)
        self._read({id_ for turn in (*fresh, *older) for id_ in turn.responses}, continued=True)
        told = [id_ for turn in (*fresh, *older) for id_ in turn.responses if is_history(id_) and self._continuing[id_]]
        self._read(told, continued=False)
        first = {turn.order: turn for turn in fresh}
        first |= {each.order: each for id_ in told for each in self._giving[id_]}  # one more giver: ambiguous
        heads = [head for turn in older for head in self._giving[turn.continues]]
        heads += [head for turn in fresh for head in self._giving[turn.continues] if head.session is None]
        later = [turn for giver in (*older, *fresh) for id_ in giver.responses for turn in self._continuing[id_]]
        first |= {turn.order: turn for turn in (*heads, *later)}
        self._settle(first, {turn.trace_id for turn in fresh})

    def moved(self) -> list[tuple[SessionTraceRow, str | None]]:
        stored = [(turn.row, turn.session) for turn in self.turns.values() if turn.row is not None]
        return [(row, session) for row, session in stored if session != (row.session_id or None)]

    def _settle(self, due: dict[Order, LinkedTrace], fresh: Collection[str]) -> None:
        waiting = list(due)
        heapq.heapify(waiting)
        while waiting:
            turn = due[heapq.heappop(waiting)]
            session = self.session(turn)
            if session == turn.session and turn.trace_id not in fresh:
                continue
            turn.session = session
            self._read(turn.responses, continued=True)
            for later in [each for id_ in turn.responses for each in self._continuing[id_]]:
                if later.order > turn.order and later.order not in due:
                    due[later.order] = later
                    heapq.heappush(waiting, later.order)

    def session(self, turn: LinkedTrace) -> str | None:
        if turn.named is not None:
            return turn.named
        before = self._before(turn)
        if before is not None:
            return before.session
        if turn.continues and not is_history(turn.continues):
            return turn.continues
        return turn.responses[-1] if self._is_gone_on_from(turn) else None

    def _before(self, turn: LinkedTrace) -> LinkedTrace | None:
        if not turn.continues:
            return None
        self._read([turn.continues], continued=False)
        earlier = [each for each in self._giving[turn.continues] if each.order < turn.order]
        if is_history(turn.continues) and len(earlier) != 1:
            return None
        return min(earlier, key=lambda each: each.order, default=None)

    def _is_gone_on_from(self, turn: LinkedTrace) -> bool:
        self._read(turn.responses, continued=True)
        for id_ in turn.responses:
            if self._continuing[id_] and not is_history(id_):
                return True
            # Looked at first: the same conversation may have been left behind by very many.
            is_first = self._continuing[id_] and min(self._giving[id_], key=lambda each: each.order) is turn
            if is_first and any(self._before(later) is turn for later in self._continuing[id_]):
                return True
        return False

    def _read(self, ids: Iterable[str], continued: bool) -> None:
        if self._store is not None and (wanted := {*ids} - self._asked[continued]):
            self._asked[continued].update(wanted)
            for row in self._store.responses.traces(wanted, continued=continued):
                if row.trace_id.hex() not in self.turns:
                    self.add(_stored(row))

    def add(self, turn: LinkedTrace) -> None:
        self.turns[turn.trace_id] = turn
        for id_ in turn.responses:
            self._giving[id_].append(turn)
        if turn.continues:
            self._continuing[turn.continues].append(turn)
