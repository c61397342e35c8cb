"""Makes traces that other collectors decided members of the sessions that are scored here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pandaeval_collector.pipeline.line.facts import unpack
from pandaeval_collector.pipeline.line.handed import Handed, run_of
from pandaeval_collector.pipeline.line.members import with_signals
from pandaeval_collector.pipeline.line.sessions import SessionPlaces
from pandaeval_collector.pipeline.line.understanding import Run
from pandaeval_collector.scoring.evaluator import Evaluator
from pandaeval_collector.store import SessionTraceRow, StoreReader, WriteSet, packed_contents


class Adoption:
    """Makes handed-over traces members of their sessions. Reads the store and never writes; one thread."""

    def __init__(self, store: StoreReader, evaluator: Evaluator, sessions: SessionPlaces) -> None:
        self._store, self._sessions = store, sessions
        self._compared = frozenset(metric.name for metric, reads in evaluator.dependent if reads.answers)

    def adopt(self, handed: Sequence[Handed], changes: WriteSet) -> dict[str, int]:
        """Adds the traces to ``changes``, and touches the session of each, but for those that an owner before this one
        scored for good. Of several messages about one trace the last counts. Returns the sessions that are to be
        compared, see :attr:`Decision.grown`."""
        newest = _last_words(handed)
        before = self._store.left_behind(newest)
        grown: dict[str, int] = {}
        runs: list[Run] = []
        again: list[tuple[SessionTraceRow, SessionTraceRow]] = []
        gone: list[SessionTraceRow] = []
        for trace_id, each in newest.items():
            old = before.get(trace_id)
            if each.left:
                if self._store.session_is_open(each.row.session_id) is not None:
                    grown[each.row.session_id] = 0
                if old is not None and old.session_id == each.row.session_id:
                    gone.append(old)
            elif old is not None and _is_same(old, each.row):
                again.append((old, each.row))
            else:
                runs.append(run_of(each))
                if each.contents:
                    changes.contents[trace_id] = packed_contents(each.contents)
        self._enter(runs, gone, grown, changes)
        changes.touched.update(grown)
        for known, new in again:
            # A judge answered, the trace itself is the same. Signals that come of comparing it or reading it again are
            # kept, as only this collector knows them.
            told = unpack(new.body)
            ours = self._compared.union(told.unsettled)
            row = with_signals(known, {name: each for name, each in told.signals.items() if name not in ours})
            changes.session_traces.append(row)
            changes.touched.update({row.session_id} - {""})
        done = {each.row.session_id for each in handed if each.is_done}
        done -= {each.row.session_id for each in handed if not each.is_done}
        changes.touched -= done
        changes.elsewhere |= done
        return {session_id: start_ns for session_id, start_ns in grown.items() if session_id not in done}

    def _enter(
        self, runs: list[Run], gone: Sequence[SessionTraceRow], grown: dict[str, int], changes: WriteSet
    ) -> None:
        runs.sort(key=lambda run: run.member.order)
        for run in runs:
            changes.strangers[bytes.fromhex(run.unit.trace_id)] = run.member.facts.digest
        placed, places = self._sessions.place(runs)
        places.moved += [(row, None) for row in gone]
        added: dict[str, int] = {}
        for run in placed:
            if run.unit.session_id is not None and run.unit.trace_id not in places.before:
                added.setdefault(run.unit.session_id, run.member.start_ns)  # runs are ordered by start
        moved = {session for row, session in places.moved for session in (row.session_id, session)}
        moved |= {row.session_id for row in places.before.values()}
        moved |= {run.unit.session_id for run in placed if run.unit.trace_id in places.before}
        for session_id in self._sessions.enter(placed, places, changes):
            grown[session_id] = 0 if session_id in moved else added.get(session_id, 0)


def _last_words(handed: Sequence[Handed]) -> dict[bytes, Handed]:
    """Returns the last message about each trace, by trace id, with the spans of an earlier message on the same
    evidence: a judge's answer, which brings none, may arrive together with the decision."""
    found: dict[bytes, Handed] = {}
    for each in handed:
        before = found.get(each.row.trace_id)
        lacks = not each.contents and not each.left
        if lacks and before is not None and before.contents and _digest(before) == _digest(each):
            each = replace(each, contents=before.contents)
        found[each.row.trace_id] = each
    return found


def _digest(handed: Handed) -> str:
    return unpack(handed.row.body).digest


def _is_same(old: SessionTraceRow, new: SessionTraceRow) -> bool:
    """Returns whether a trace is a member of its session already, under the same evidence, and was compared."""
    known, told = unpack(old.body), unpack(new.body)
    if known.evidence is None or old.session_id != (new.session_id or old.session_id):
        return False
    return (known.digest, known.revision) == (told.digest, told.revision)
