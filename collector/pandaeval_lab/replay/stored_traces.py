"""A collector's traces as a source of a replay."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import zstandard

from pandaeval_collector.pipeline.line.implied_sessions import Places
from pandaeval_collector.pipeline.line.understanding import ScoredTrace
from pandaeval_collector.store import Chunk, Store, StoreReader, numbers
from pandaeval_lab.replay.replay import batches
from pandaeval_otel.assembly import DueTrace
from pandaeval_otel.model import Trigger

_log = logging.getLogger(__name__)

_BEFORE = 32
"""Number of earlier traces of the session that are also read, for comparing answers and for the judge's context."""


@dataclass(frozen=True, slots=True)
class Placed:
    no: int
    trace_id: bytes
    revision: int
    session: str | None
    start_ns: int


class StoredTraces:
    """Copies a batch's traces from ``live`` into ``store``.

    ``items``: session numbers (0: none) by trace number; ``whole``: sessions are scored. ``gone``: deleted traces,
    after reading.
    """

    def __init__(self, store: Store, live: StoreReader, items: Sequence[tuple[int, int]], whole: bool) -> None:
        self.store, self._live, self._whole = store, live, whole
        self.session_names: dict[int, str] = dict(
            numbers.each_of(
                live.connection(),
                "SELECT no, session_id FROM sessions WHERE no IN ({marks})",
                {group for _, group in items if group},
            )
        )
        self.about: dict[str, int] = {}
        """The numbers of the traces whose results are kept, by their ids."""
        self._placed = self._place(items)
        self.gone = {no for no, _ in items} - {each.no for each in self._placed}

    def chains(self) -> StoredTraces:
        return self

    def place(self, runs: Sequence[ScoredTrace]) -> Places:
        found = {each.trace_id.hex(): each.session for each in self._placed if each.session is not None}
        named = {run.unit.trace_id: run.unit.session_id for run in runs}
        return Places(sessions={id_: found[id_] for id_ in named if id_ in found and found[id_] != named[id_]})

    def due(self) -> Iterator[Sequence[DueTrace]]:
        for some in batches(self._placed):
            chunks: list[Chunk] = []
            due = [each for placed in some if (each := self._due(placed, chunks)) is not None]
            self.store.append(chunks).result()
            yield due

    def closing(self, touched: Collection[str]) -> Collection[str]:
        if not self._whole:
            return ()
        short = {each.session for each in self._placed if each.no in self.gone}
        return {each.session for each in self._placed if each.session} - short

    def _place(self, items: Sequence[tuple[int, int]]) -> list[Placed]:
        reader, wanted = self._live.connection(), {no for no, _ in items}
        # Traces without a session, and members that moved meanwhile, are not among the members.
        starts = dict.fromkeys(wanted, 0)
        of_session = {no: self.session_names[group] for no, group in items if group in self.session_names}
        for group, name in self.session_names.items():
            members = reader.execute(
                "SELECT no, start_ns FROM members WHERE session = ? ORDER BY start_ns, trace_id", (group,)
            ).fetchall()
            for index, (no, start) in enumerate(members):
                if self._whole or not wanted.isdisjoint(each for each, _ in members[index : index + _BEFORE + 1]):
                    starts[no], of_session[no] = start, name
        query = "SELECT no, trace_id, revision FROM traces WHERE no IN ({marks})"
        placed = [
            Placed(no, trace_id, revision, of_session.get(no), starts[no])
            for no, trace_id, revision in numbers.each_of(reader, query, starts)
        ]
        self.about = {each.trace_id.hex(): each.no for each in placed if self._whole or each.no in wanted}
        return sorted(placed, key=lambda each: (each.start_ns, each.trace_id))

    def _due(self, placed: Placed, chunks: list[Chunk]) -> DueTrace | None:
        try:
            parts = self._live.contents(placed.trace_id)
        except zstandard.ZstdError as error:
            _log.warning("the spans of a trace are damaged and cannot be read any more (%s)", error)
            parts = []
        if not parts:
            self.gone.add(placed.no)
            return None
        new = [Chunk(self.store.next_chunk_id(), placed.trace_id, logs, 1, 0, data) for logs, data in parts]
        chunks += new
        ids, size = tuple(chunk.id for chunk in new), sum(len(data) for _, data in parts)
        return DueTrace(placed.trace_id, Trigger.FILE, True, False, ids, frozenset(), 0, 0, size, placed.revision)
