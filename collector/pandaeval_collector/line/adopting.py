"""Makes traces that other collectors decided members of the sessions that are scored here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pandaeval_collector.evaluator import Evaluator
from pandaeval_collector.line.facts import SignalFacts, unpack
from pandaeval_collector.line.handed import Handed, run_of
from pandaeval_collector.line.members import with_signals
from pandaeval_collector.line.sessions import Sessions
from pandaeval_collector.line.understanding import Run
from pandaeval_collector.result import Result
from pandaeval_collector.store import SessionTraceRow, Store, WriteSet, packed_contents


@dataclass(slots=True)
class Adopted:
    """``results``: those that compare traces with earlier ones of their sessions. ``grown``: sessions that have a new
    trace, or another revision of one."""

    results: list[Result] = field(default_factory=list)
    grown: set[str] = field(default_factory=set)


class Adoption:
    """Reads the store and never writes; one thread."""

    def __init__(self, store: Store, evaluator: Evaluator, sessions: Sessions) -> None:
        self._store, self._sessions = store, sessions
        self._compared = frozenset(metric.name for metric in evaluator.compared)

    def adopt(self, handed: Sequence[Handed], changes: WriteSet) -> Adopted:
        """Adds the traces to ``changes``, in which the session of each is touched but for those that were scored for
        good by an owner before this one. Of one trace the last word counts."""
        newest = {each.row.trace_id: each for each in handed}
        before = self._store.left_behind(newest)
        adopted = Adopted()
        runs: list[Run] = []
        gone: list[SessionTraceRow] = []
        again: list[tuple[SessionTraceRow, SessionTraceRow]] = []
        for trace_id, each in newest.items():
            old = before.get(trace_id)
            if each.left:
                adopted.grown |= self._known(each.row.session_id)
                if old is not None and old.session_id == each.row.session_id:
                    gone.append(old)
            elif old is not None and _is_same(old, each.row):
                again.append((old, each.row))
            else:
                runs.append(run_of(each))
                if each.contents:
                    changes.contents[trace_id] = packed_contents(each.contents)
        self._file(runs, gone, adopted, changes)
        for old, new in again:
            self._retell(old, new, changes)
        self._keep_closed(handed, adopted, changes)
        return adopted

    def _file(self, runs: list[Run], gone: Sequence[SessionTraceRow], adopted: Adopted, changes: WriteSet) -> None:
        runs.sort(key=lambda run: run.member.order)
        for run in runs:
            changes.strangers[bytes.fromhex(run.unit.trace_id)] = run.member.facts.digest
        placed, places = self._sessions.place(runs)
        places.moved += [(row, None) for row in gone]
        adopted.results += self._sessions.file(placed, places, changes)
        adopted.grown |= changes.touched
        changes.touched |= adopted.grown

    def _retell(self, old: SessionTraceRow, new: SessionTraceRow, changes: WriteSet) -> None:
        """Only what is said of the trace has changed: a judge answered."""
        told: Mapping[str, SignalFacts] = unpack(new.body)[0].signals
        row = with_signals(old, {name: each for name, each in told.items() if name not in self._compared})
        changes.session_traces.append(row)
        changes.touched.update({row.session_id} - {""})

    def _known(self, session_id: str) -> set[str]:
        return set() if self._store.session_is_open(session_id) is None else {session_id}

    def _keep_closed(self, handed: Sequence[Handed], adopted: Adopted, changes: WriteSet) -> None:
        done = {each.row.session_id for each in handed if each.is_done}
        done -= {each.row.session_id for each in handed if not each.is_done}
        if done:
            changes.touched -= done
            changes.elsewhere |= done
            adopted.grown -= done
            adopted.results = [each for each in adopted.results if each.unit.session_id not in done]


def _is_same(old: SessionTraceRow, new: SessionTraceRow) -> bool:
    """Whether a trace is a member of its session already, under the same evidence."""
    known, told = unpack(old.body)[0], unpack(new.body)[0]
    if not known.loop_evidence or old.session_id != (new.session_id or old.session_id):
        return False
    return (known.digest, known.revision) == (told.digest, told.revision)
