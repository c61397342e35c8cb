"""Finds the session of each trace: the named session, or a session implied by continued responses or histories.

A trace joins the session that it names (of its services, see :mod:`shared_ids`), or the session of the earlier trace
that it continues. The id of such a chain is the last response id of its first trace. If several earlier traces have an
equal conversation, a trace continues none of them. The result does not depend on arrival order.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Protocol

from pandaeval_collector.pipeline.line.facts import TraceFacts
from pandaeval_collector.pipeline.line.linked_traces import LinkedTrace, Order
from pandaeval_collector.pipeline.line.members import from_row
from pandaeval_collector.pipeline.line.shared_ids import SharedIds, separated
from pandaeval_collector.pipeline.line.understanding import ScoredTrace
from pandaeval_collector.store import ResponseRow, SessionTraceRow, StoreReader, response_digest
from pandaeval_otel.normal.session import is_history


@dataclass(slots=True)
class Places:
    """Session placement of a batch.

    ``sessions``: by trace id, unless named. ``waiting``: may join later. ``before``: older revisions' rows. ``moved``:
    earlier traces by new session or ``None``. ``renamed``: traces of sessions with a new id. ``services``: if changed.
    """

    sessions: dict[str, str] = field(default_factory=dict)
    waiting: set[str] = field(default_factory=set)
    before: dict[str, SessionTraceRow] = field(default_factory=dict)
    moved: list[tuple[SessionTraceRow, str | None]] = field(default_factory=list)
    renamed: list[tuple[SessionTraceRow, str]] = field(default_factory=list)
    responses: list[ResponseRow] = field(default_factory=list)
    services: dict[str, tuple[str, ...]] = field(default_factory=dict)


class Chains(Protocol):
    def place(self, runs: Sequence[ScoredTrace]) -> Places:
        """Return the sessions of ``runs``. Expects runs in order of start."""


class Forward:
    """:class:`Chains` for complete input, placed by start."""

    def __init__(self, turns: Iterable[LinkedTrace], read: Callable[[], Iterable[LinkedTrace]]) -> None:
        """``turns``: linkable traces. ``read``: returns all traces of agents; called once, when a second service uses a
        session id. Until then, each trace keeps its id.
        """
        self._web, self._read = _Web(None, turns), read
        self._services: dict[str, set[str]] = {}
        """The services so far, by session id."""
        self._own: dict[str, str] | None = None

    def place(self, runs: Sequence[ScoredTrace]) -> Places:
        places = Places()
        for run in runs:
            session = self.session(LinkedTrace.decided(run.member, run.unit.session_id))
            if session and session != run.unit.session_id:
                places.sessions[run.unit.trace_id] = session
        return places

    def session(self, turn: LinkedTrace) -> str | None:
        if turn.linked and turn.trace_id not in self._web.turns:
            self._web.add(turn)
        turn = self._web.turns.get(turn.trace_id, turn)
        if turn.named is not None and turn.services:
            services = self._services.setdefault(turn.named, {*turn.services})
            if self._own is None and services.isdisjoint(turn.services):
                self._own = separated(self._read())
            services.update(turn.services)
            turn.named = (self._own or {}).get(turn.trace_id, turn.named)
        turn.session = self._web.session(turn)
        return turn.session


class StoredChains:
    """:class:`Chains` for any order of arrival. Only reads the store."""

    def __init__(self, store: StoreReader) -> None:
        self._store, self._shared = store, SharedIds(store)

    def place(self, runs: Sequence[ScoredTrace]) -> Places:
        revised = [bytes.fromhex(run.unit.trace_id) for run in runs if run.unit.revision > 1 or run.is_handed]
        before = {row.trace_id.hex(): row for row in self._store.left_behind(revised).values()} if revised else {}
        turns = [LinkedTrace.decided(run.member, run.unit.session_id) for run in runs]
        own = self._shared.place(turns)
        places = Places(own.sessions, before=before, responses=own.lookups, services=own.services)
        stored = [LinkedTrace.stored(row, own.renamed) for row in before.values()]
        older = {turn.trace_id: turn for turn in stored if turn.linked}
        implied = {turn.trace_id: turn.session for turn in older.values() if turn.named is None}
        batch = [turn for turn in turns if turn.linked or turn.trace_id in older]
        for turn in batch:
            turn.named = own.sessions.get(turn.trace_id, turn.named)
            turn.session = turn.named or implied.get(turn.trace_id)
        if batch:
            self._chain(batch, older, own.renamed, places)
        known = {turn.trace_id for turn in turns} | {row.trace_id.hex() for row, _ in places.moved}
        for old, new in own.renamed.items():
            places.renamed += [
                (row, new)
                for row in self._store.session_traces(old)
                if row.trace_id.hex() not in known and _is_moved(from_row(row).facts)
            ]
        return places

    def _chain(
        self,
        batch: Sequence[LinkedTrace],
        older: Mapping[str, LinkedTrace],
        renamed: Mapping[str, str],
        places: Places,
    ) -> None:
        """Add the places of linked traces and of their followers."""
        fresh = [turn for turn in batch if turn.differs(older.get(turn.trace_id))]
        web = _Web(self._store, batch, renamed)
        web.settle(fresh, [older[turn.trace_id] for turn in fresh if turn.trace_id in older])
        places.sessions |= {turn.trace_id: turn.session for turn in batch if turn.named is None and turn.session}
        places.waiting = {turn.trace_id for turn in batch if turn.session is None and turn.linked}
        places.responses += [row for turn in fresh for row in _response_rows(turn)]
        places.moved = web.moved()


def _is_moved(facts: TraceFacts) -> bool:
    """Return whether a trace moves with its session. If its service is unknown, it keeps the id that it names."""
    return facts.chained or bool(facts.all_services)


def _response_rows(turn: LinkedTrace) -> list[ResponseRow]:
    trace_id = bytes.fromhex(turn.trace_id)
    rows = [ResponseRow(trace_id, response_digest(id_), False) for id_ in turn.responses]
    if turn.continues:
        rows.append(ResponseRow(trace_id, response_digest(turn.continues), True))
    return rows


class _Web:
    """Turns around new turns, read on demand. ``store``: ``None`` for a complete batch. ``renamed``: new ids."""

    def __init__(
        self, store: StoreReader | None, batch: Iterable[LinkedTrace], renamed: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        self._store, self._renamed = store, renamed
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
        histories = [
            id_ for turn in (*fresh, *older) for id_ in turn.responses if is_history(id_) and self._continuing[id_]
        ]
        self._read(histories, continued=False)
        first = {turn.order: turn for turn in fresh}
        first |= {each.order: each for id_ in histories for each in self._giving[id_]}  # with another giver: ambiguous
        heads = [head for turn in older for head in self._giving[turn.continues]]
        heads += [head for turn in fresh for head in self._giving[turn.continues] if head.session is None]
        later = [turn for giver in (*older, *fresh) for id_ in giver.responses for turn in self._continuing[id_]]
        first |= {turn.order: turn for turn in (*heads, *later)}
        self._settle(first, {turn.trace_id for turn in fresh})

    def moved(self) -> list[tuple[SessionTraceRow, str | None]]:
        return [
            (row, turn.session)
            for turn in self.turns.values()
            if (row := turn.row) is not None
            and (turn.session or "") != self._renamed.get(row.session_id, row.session_id)
        ]

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
            # Checked first, because very many traces may have left the same conversation.
            is_first = self._continuing[id_] and min(self._giving[id_], key=lambda each: each.order) is turn
            if is_first and any(self._before(later) is turn for later in self._continuing[id_]):
                return True
        return False

    def _read(self, ids: Iterable[str], continued: bool) -> None:
        if self._store is not None and (wanted := {*ids} - self._asked[continued]):
            self._asked[continued].update(wanted)
            for row in self._store.responses.traces(wanted, continued=continued):
                if row.trace_id.hex() not in self.turns:
                    self.add(LinkedTrace.stored(row, self._renamed))

    def add(self, turn: LinkedTrace) -> None:
        self.turns[turn.trace_id] = turn
        for id_ in turn.responses:
            self._giving[id_].append(turn)
        if turn.continues:
            self._continuing[turn.continues].append(turn)
