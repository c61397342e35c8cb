"""Files traces under their sessions, and compares answers with earlier answers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from types import MappingProxyType

from pandaeval_collector.base.result import Result
from pandaeval_collector.pipeline.line.dependencies import Dependencies, FiledRun, Stretch, signals_of
from pandaeval_collector.pipeline.line.dismissals import kept
from pandaeval_collector.pipeline.line.facts import SignalFacts, TraceFacts
from pandaeval_collector.pipeline.line.implied_sessions import Chains, Places, StoredChains
from pandaeval_collector.pipeline.line.members import Member, from_row, to_row, with_signals
from pandaeval_collector.pipeline.line.understanding import ScoredTrace, by_itself, explained, in_session
from pandaeval_collector.scoring.evaluator import Evaluator
from pandaeval_collector.store import SessionTraceRow, StoreReader, WriteSet

_NEAR: tuple[int, ...] = (4, 32, 256, 2048)
"""Number of traces read to place a new trace. If too few, the next number is read, and at last all traces."""
_GROWN: tuple[int, ...] = (64, 512, 4096)
"""The same for members from other collectors."""
_AT_ONCE = 4096
"""Members compared at once, to bound memory."""
_PENDING: SignalFacts = {"outcome": "pending", "value": None, "why": None}


class SessionPlaces:
    """Places traces in sessions. Only reads the store; single-threaded."""

    def __init__(self, store: StoreReader, evaluator: Evaluator, chains: Chains | None = None) -> None:
        self._store, self._evaluator = store, evaluator
        self._chains = chains or StoredChains(store)
        self._dependencies = Dependencies(store, evaluator)

    def place(self, runs: Sequence[ScoredTrace]) -> tuple[list[ScoredTrace], Places]:
        """Assign ``runs``, ordered by start, to their named or continued sessions."""
        places = self._chains.place(runs)
        sessions, evaluator = places.sessions, self._evaluator
        return [
            in_session(run, sessions[id_], evaluator)
            if (id_ := run.unit.trace_id) in sessions
            else by_itself(run, evaluator)
            for run in runs
        ], places

    def file(self, runs: Sequence[ScoredTrace], places: Places, changes: WriteSet) -> list[Result]:
        """File runs and repeat affected comparisons.

        Returns the runs' results in order, then new results of earlier traces.
        """
        batch = {run.unit.trace_id: FiledRun(run, [*run.results]) for run in runs}
        added, came, left = self._placed(runs, places, changes)
        elsewhere = {*batch, *(row.trace_id.hex() for row, _ in (*places.moved, *places.renamed))}
        grown = _grown(added, came, left, places)

        def stretches() -> Iterator[Stretch]:
            for session_id, first, members in self._read(grown, _NEAR, added):
                # Without traces of this batch: they are filed elsewhere, or added again.
                members = [member for member in members if member.trace_id not in elsewhere]
                members += [*added.get(session_id, ()), *came.get(session_id, ())]
                yield Stretch.of(session_id, first, members, whole=session_id in left)

        again = self._compare(stretches(), batch, changes)
        dismissed = self._store.dismissed()
        for filing in batch.values():
            filing.results = explained(filing.run, kept(filing.results, dismissed), self._evaluator)
        return [*(result for filing in batch.values() for result in filing.results), *again]

    def enter(self, runs: Sequence[ScoredTrace], places: Places, changes: WriteSet) -> dict[str, int]:
        """File runs, ordered by start, for later comparison. Returns changed sessions, see :attr:`Decision.grown`."""
        added, came, left = self._placed(runs, places, changes)
        for session_id, members in (*added.items(), *came.items()):
            changes.session_traces.extend(to_row(member, session_id) for member in members)
        grown = _grown(added, came, left, places)
        changes.touched.update(grown)
        return grown

    def compare(self, grown: Mapping[str, int], changes: WriteSet) -> list[Result]:
        def stretches() -> Iterator[Stretch]:
            for session_id, first, members in self._read(grown, _GROWN):
                for member in members:
                    member.changed = member.facts.evidence is None
                yield Stretch.of(session_id, first, members, whole=not grown[session_id])

        return self._compare(stretches(), {}, changes)

    def tell(self, results: Sequence[Result], changes: WriteSet) -> None:
        rows = self.retold(results)
        changes.session_traces.extend(rows)
        changes.touched.update(row.session_id for row in rows if row.session_id)

    def retold(self, results: Sequence[Result]) -> list[SessionTraceRow]:
        rows: dict[str, SessionTraceRow] = {}
        for result in results:
            if result.unit.level != "trace" or not result.is_rated:
                continue
            trace_id = result.unit.trace_id
            id_ = bytes.fromhex(trace_id)
            row = rows.get(trace_id) or self._store.left_behind([id_]).get(id_)
            if row is not None:
                rows[trace_id] = with_signals(row, signals_of(self._evaluator, [result]))
        return [*rows.values()]

    def member(self, run: ScoredTrace, places: Places) -> Member:
        before = places.before.get(run.unit.trace_id)
        older = from_row(before).facts if before is not None and not run.is_handed else None
        waiting = {name: _until_judged(name, older, run.member.facts.digest) for name in run.awaited}
        signals = run.member.facts.signals | waiting | signals_of(self._evaluator, run.results)
        # A copy, because the run may be filed again.
        return replace(run.member, facts=replace(run.member.facts, signals=signals), changed=True)

    def _placed(
        self, runs: Sequence[ScoredTrace], places: Places, changes: WriteSet
    ) -> tuple[dict[str, list[Member]], dict[str, list[Member]], set[str]]:
        added: dict[str, list[Member]] = {}
        came: dict[str, list[Member]] = {}
        left: set[str] = set()
        for run in runs:
            unit = run.unit
            is_waiting = unit.trace_id in places.waiting
            old = places.before.get(unit.trace_id)
            if old is not None and old.session_id != (unit.session_id or ("" if is_waiting else None)):
                left.add(old.session_id)
                changes.moved.append(old.trace_id)
            if unit.session_id is not None and not run.member.facts.utility:
                added.setdefault(unit.session_id, []).append(self.member(run, places))
            if is_waiting:
                changes.session_traces.append(to_row(self.member(run, places), ""))
        for row, moved_to in places.moved:
            member = from_row(row)
            member.changed, member.facts.chained = True, moved_to is not None
            left.add(row.session_id)
            if moved_to is None:
                changes.session_traces.append(to_row(member, ""))
            else:
                came.setdefault(moved_to, []).append(member)
        for row, session in places.renamed:
            member = from_row(row)
            member.changed = True
            left.add(row.session_id)
            came.setdefault(session, []).append(member)
        changes.responses.extend(places.responses)
        changes.services |= places.services
        return added, came, left - {""}

    def _read(
        self,
        grown: Mapping[str, int],
        sizes: Sequence[int],
        added: Mapping[str, Sequence[Member]] = MappingProxyType({}),
    ) -> Iterator[tuple[str, int, list[Member]]]:
        """Yield sessions with the members to compare. Reads stepwise, because sessions can be long."""
        near: dict[str, tuple[int, list[Member]]] = {}
        wanted = {session_id for session_id, start_ns in grown.items() if start_ns}
        for newest in sizes:
            for session_id, (size, rows) in self._store.newest_traces(wanted, newest).items() if wanted else ():
                members = [from_row(row) for row in rows]
                known = [*members, *added.get(session_id, ())]
                if size <= newest or self._dependencies.suffices(known, grown[session_id]):
                    near[session_id] = size - len(members), members
            wanted -= near.keys()
        for session_id in sorted(grown):
            if session_id in near:
                yield session_id, *near.pop(session_id)
            else:
                yield session_id, 0, [from_row(row) for row in self._store.session_traces(session_id)]

    def _compare(self, stretches: Iterable[Stretch], batch: Mapping[str, FiledRun], changes: WriteSet) -> list[Result]:
        again: list[Result] = []
        for some in _together(stretches):
            again += self._dependencies.score(some, batch)
            for stretch in some:
                changed = [member for member in stretch.members if member.changed]
                changes.session_traces.extend(to_row(member, stretch.session_id) for member in changed)
                changes.touched.add(stretch.session_id)
        return again


def _grown(
    added: Mapping[str, Sequence[Member]], came: Mapping[str, object], left: Set[str], places: Places
) -> dict[str, int]:
    grown = dict.fromkeys({*added, *came, *left}, 0)
    for session_id in added.keys() - came.keys() - left:
        if not any(member.trace_id in places.before for member in added[session_id]):
            grown[session_id] = added[session_id][0].start_ns
    return grown


def _together(stretches: Iterable[Stretch]) -> Iterator[list[Stretch]]:
    some: list[Stretch] = []
    for stretch in stretches:
        some.append(stretch)
        if sum(len(each.members) for each in some) >= _AT_ONCE:
            yield some
            some = []
    if some:
        yield some


def _until_judged(name: str, older: TraceFacts | None, digest: str) -> SignalFacts:
    """Return the older revision's signal while a judge is pending."""
    signal = _PENDING if older is None else older.signals.get(name, _PENDING)
    if older is None or older.digest == digest or signal["outcome"] == "pending":
        return signal
    return {**signal, "older": True}
