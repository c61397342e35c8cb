"""Hands decided traces to the collector that owns their sessions, instead of scoring the sessions here."""

from __future__ import annotations

from collections.abc import Sequence

from pandaeval_collector.base.result import Result
from pandaeval_collector.exporters.delivery import MEMBERS
from pandaeval_collector.pipeline.line.handed import packed, packed_end, packed_left
from pandaeval_collector.pipeline.line.implied_sessions import Places
from pandaeval_collector.pipeline.line.members import to_row
from pandaeval_collector.pipeline.line.sessions import SessionPlaces
from pandaeval_collector.pipeline.line.understanding import Run, by_itself
from pandaeval_collector.scoring.evaluator import Evaluator
from pandaeval_collector.store import StoreReader, WriteSet, outbox_batches


class MemberHandover:
    """Takes the place of :class:`SessionPlaces` for traces whose sessions another collector owns: keeps their rows
    under the sessions' names, and puts what the owner has to know into the outbox. Reads the store and never writes;
    one thread."""

    def __init__(self, store: StoreReader, evaluator: Evaluator, sessions: SessionPlaces) -> None:
        self._store, self._evaluator, self._sessions = store, evaluator, sessions

    def place(self, runs: Sequence[Run]) -> tuple[list[Run], Places]:
        """Places no run: each keeps the session that it names, or none."""
        revised = [bytes.fromhex(run.unit.trace_id) for run in runs if run.unit.revision > 1]
        before = self._store.left_behind(revised) if revised else {}
        places = Places(before={trace_id.hex(): row for trace_id, row in before.items()})
        return [by_itself(run, self._evaluator) for run in runs], places

    def file(self, runs: Sequence[Run], places: Places, changes: WriteSet) -> list[Result]:
        """Adds what the owner is told to ``changes``. Returns the results of all runs, except for those that the
        session's earlier traces may change: the owner has to tell them."""
        messages: list[bytes] = []
        for run in runs:
            session_id = run.unit.session_id or ""
            before = places.before.get(run.unit.trace_id)
            if before is not None and before.session_id not in ("", session_id):
                messages.append(packed_left(before.trace_id, before.session_id))
                changes.moved.append(before.trace_id)
            if not session_id:
                continue
            row = to_row(self._sessions.member(run, places), session_id)
            changes.session_traces.append(row)
            changes.elsewhere.add(session_id)
            messages.append(packed(row, decided=True))
        changes.outbox.extend(outbox_batches(MEMBERS, messages))
        return [
            result
            for run in runs
            for result in run.results
            if run.unit.session_id is None or result.metric not in run.member.facts.unsettled
        ]

    def tell(self, results: Sequence[Result], changes: WriteSet) -> None:
        """Tells the owner what a judge said about traces."""
        rows = self._sessions.retold(results)
        changes.session_traces.extend(rows)
        changes.elsewhere.update(row.session_id for row in rows if row.session_id)
        changes.outbox.extend(outbox_batches(MEMBERS, [packed(row, decided=False) for row in rows]))

    def end(self, session_id: str, changes: WriteSet) -> None:
        """Tells the owner that a session is over."""
        changes.outbox.extend(outbox_batches(MEMBERS, [packed_end(session_id)]))
