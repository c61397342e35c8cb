"""Files traces under their sessions: finds the session of each, and compares its answer with earlier ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from pandaeval_collector.base.result import Result, cut
from pandaeval_collector.base.score import Why
from pandaeval_collector.pipeline.decision import GrownSession
from pandaeval_collector.pipeline.line.comparisons import (
    LoopComparison,
    Recovery,
    Rereading,
    Stretch,
    comparisons,
    recoveries,
    rereadings,
    speak_together,
    suffices,
)
from pandaeval_collector.pipeline.line.facts import SignalFacts, TraceFacts
from pandaeval_collector.pipeline.line.implied_sessions import Chains, Places, StoredChains
from pandaeval_collector.pipeline.line.members import (
    Member,
    from_row,
    own_texts,
    remembered,
    to_row,
    unit_again,
    with_its_signals,
    with_signals,
)
from pandaeval_collector.pipeline.line.stored_traces import kept_trace
from pandaeval_collector.pipeline.line.taken_back import taken_back_of
from pandaeval_collector.pipeline.line.understanding import Run, by_itself, in_session, with_session
from pandaeval_collector.scoring.evaluator import Evaluator
from pandaeval_collector.store import SessionTraceRow, StoreReader, WriteSet
from pandaeval_otel.model import Trace

_NEAR: tuple[int, ...] = (4, 32, 256, 2048)
"""How many traces of a session are read to place a new one; the next number, then all, where they do not suffice."""
_FEW = 64
"""How many newest traces of a session are read first, where members from other collectors came in."""
_AT_ONCE = 4096
"""From so many members on they are compared, before more are read: memory is not spared for more."""
_SAID_CHARS = 200
"""Characters of a failed result's reason that are kept for the reason of its session."""
_PENDING: SignalFacts = {"outcome": "pending", "value": None, "why": None}


@dataclass(slots=True)
class _Filing:
    """A run that is being filed, with all of its results."""

    run: Run
    results: list[Result]


class SessionPlaces:
    """Places traces in the sessions of one store. Reads the store and never writes; one thread."""

    def __init__(self, store: StoreReader, evaluator: Evaluator, chains: Chains | None = None) -> None:
        self._store, self._evaluator = store, evaluator
        self._chains = chains or StoredChains(store)

    def place(self, runs: Sequence[Run]) -> tuple[list[Run], Places]:
        """Assigns ``runs``, ordered by start, to sessions: a run that names none gets the session that follows from the
        responses which it continues."""
        places = self._chains.place(runs)
        sessions, evaluator = places.sessions, self._evaluator
        return [
            in_session(run, sessions[id_], evaluator)
            if (id_ := run.unit.trace_id) in sessions
            else by_itself(run, evaluator)
            for run in runs
        ], places

    def file(self, runs: Sequence[Run], places: Places, changes: WriteSet) -> list[Result]:
        """Puts runs into their sessions, and compares again every answer whose predecessors changed. Returns the
        results of all runs, in their order, those that come of comparing at the end of each; then new results of traces
        that were decided before. ``places``: of these runs."""
        batch = {run.unit.trace_id: _Filing(run, [*run.results]) for run in runs}
        again: list[Result] = []
        sessions, left = self._sessions(runs, places, changes)
        came = self._came(places, left, changes)
        elsewhere = {*batch, *(row.trace_id.hex() for row, _ in places.moved)}
        near = self._near(
            {id_: added for id_, added in sessions.items() if id_ not in left and id_ not in came}, places
        )
        stretches: list[Stretch] = []
        size = 0
        for session_id in sorted({*sessions, *left, *came}):
            first, members = near.get(session_id) or (0, self._all(session_id))
            # Traces of this batch are taken out: those that left are filed elsewhere, the others are added anew.
            members = [member for member in members if member.trace_id not in elsewhere]
            members += [*(self.member(run, places) for run in sessions.get(session_id, ())), *came.get(session_id, ())]
            members.sort(key=lambda member: member.order)
            stretches.append(Stretch(session_id, first, members))
            size += len(members)
            if size >= _AT_ONCE:
                again.extend(self._compare(stretches, batch, changes))
                stretches, size = [], 0
        again.extend(self._compare(stretches, batch, changes))
        waiting = [run for run in runs if run.unit.trace_id in places.waiting]
        changes.session_traces.extend(to_row(self.member(run, places), "") for run in waiting)
        changes.responses.extend(places.responses)
        return [*(result for filing in batch.values() for result in filing.results), *again]

    def enter(self, runs: Sequence[Run], places: Places, changes: WriteSet) -> set[str]:
        """Puts runs into their sessions, to be compared later. Returns the sessions that have changed."""
        sessions, left = self._sessions(runs, places, changes)
        came = self._came(places, left, changes)
        for session_id, some in sessions.items():
            changes.session_traces.extend(to_row(self.member(run, places), session_id) for run in some)
        for session_id, members in came.items():
            changes.session_traces.extend(to_row(member, session_id) for member in members)
        waiting = [run for run in runs if run.unit.trace_id in places.waiting]
        changes.session_traces.extend(to_row(self.member(run, places), "") for run in waiting)
        changes.responses.extend(places.responses)
        grown = {*sessions, *left, *came}
        changes.touched |= grown
        return grown

    def compare(self, grown: Mapping[str, GrownSession], changes: WriteSet) -> list[Result]:
        """Compares the answers that :meth:`enter` has added to sessions, and every one whose predecessors changed."""
        again: list[Result] = []
        stretches: list[Stretch] = []
        near = self._near_grown({session_id: each for session_id, each in grown.items() if not each.whole}, _FEW)
        size = 0
        for session_id in sorted(grown):
            stretch = near.get(session_id) or self._further(session_id, grown[session_id])
            for member in stretch.members:
                member.changed = not member.facts.loop_evidence
                if member.changed and member.facts.revision > 1:
                    again.extend(self._settled(member, session_id))
            stretches.append(stretch)
            size += len(stretch.members)
            if size >= _AT_ONCE:
                again.extend(self._compare(stretches, {}, changes))
                stretches, size = [], 0
        return [*again, *self._compare(stretches, {}, changes)]

    def _settled(self, member: Member, session_id: str) -> list[Result]:
        """Takes back what was said with earlier traces of an older revision that another collector decided, where the
        newest is not read with them, and that collector has nothing to say of it either."""
        names = self._evaluator.read_again.difference(member.facts.unsettled, member.facts.signals)
        unit = unit_again(member, session_id, member.facts.digest)
        return taken_back_of(self._store, self._evaluator, unit, [], names)

    def tell(self, results: Sequence[Result], changes: WriteSet) -> None:
        """Stores judged results among the signals of their traces."""
        rows = self.retold(results)
        changes.session_traces.extend(rows)
        changes.touched.update(row.session_id for row in rows if row.session_id)

    def retold(self, results: Sequence[Result]) -> list[SessionTraceRow]:
        """Returns the rows of traces with judged results among their signals."""
        rows: dict[str, SessionTraceRow] = {}
        for result in results:
            if result.unit.level != "trace":
                continue
            trace_id = result.unit.trace_id
            row = rows.get(trace_id) or self._store.session_trace(bytes.fromhex(trace_id))
            if row is not None:
                rows[trace_id] = with_signals(row, self._signals([result]))
        return [*rows.values()]

    def member(self, run: Run, places: Places) -> Member:
        """Makes a run a member of its session, with the signals that are known by now."""
        before = places.before.get(run.unit.trace_id)
        older = from_row(before).facts if before is not None and not run.is_handed else None
        waiting = {name: _until_judged(name, older, run.member.facts.digest) for name in run.awaited}
        told = run.member.facts.signals | waiting | self._signals(run.results)
        return with_its_signals(run.member, told)

    def _sessions(
        self, runs: Sequence[Run], places: Places, changes: WriteSet
    ) -> tuple[dict[str, list[Run]], set[str]]:
        """Groups the runs by session, and finds the sessions that some of them were filed under before and left."""
        sessions: dict[str, list[Run]] = {}
        left: set[str] = set()
        for run in runs:
            unit = run.unit
            old = places.before.get(unit.trace_id) if places.before else None
            stays = unit.session_id or ("" if unit.trace_id in places.waiting else None)
            if old is not None and old.session_id != stays:
                left.add(old.session_id)
                changes.moved.append(old.trace_id)
            if unit.session_id is not None:
                sessions.setdefault(unit.session_id, []).append(run)
        return sessions, left - {""}

    def _came(self, places: Places, left: set[str], changes: WriteSet) -> dict[str, list[Member]]:
        """Returns members that were decided before and belong elsewhere now, by session; adds what they ``left``."""
        came: dict[str, list[Member]] = {}
        for row, session_id in places.moved:
            member = from_row(row)
            member.changed = True
            if row.session_id:
                left.add(row.session_id)
            if session_id is None:
                member.facts.chained = False
                changes.session_traces.append(to_row(member, ""))
            else:
                member.facts.chained = True
                came.setdefault(session_id, []).append(member)
        return came

    def _all(self, session_id: str) -> list[Member]:
        return [from_row(row) for row in self._store.session_traces(session_id)]

    def _near(self, grown: Mapping[str, Sequence[Run]], places: Places) -> dict[str, tuple[int, list[Member]]]:
        """Reads the members that new runs of sessions can be compared with, and the position of the first of them: a
        session of thousands of traces is not read for each new one. Nothing of a session that has to be read whole."""
        found: dict[str, tuple[int, list[Member]]] = {}
        wanted = {id_ for id_, added in grown.items() if all(_is_new(run, places) for run in added)}
        for newest in _NEAR:
            for session_id, (size, rows) in self._store.newest_traces(wanted, newest).items() if wanted else ():
                members = [from_row(row) for row in rows]
                if size <= newest or self._suffices(members, grown[session_id]):
                    found[session_id] = size - len(members), members
            wanted -= found.keys()
        return found

    def _further(self, session_id: str, grown: GrownSession) -> Stretch:
        """Reads members like :meth:`_near_grown`, of one session, further back: all where nothing less suffices."""
        for newest in () if grown.whole else _NEAR[-2:]:
            if found := self._near_grown({session_id: grown}, 2 * newest):
                return found[session_id]
        return Stretch(session_id, 0, self._all(session_id))

    def _near_grown(self, grown: Mapping[str, GrownSession], newest: int) -> dict[str, Stretch]:
        """Reads the ``newest`` members of sessions, new ones among them, where they suffice, as :meth:`_near`."""
        found: dict[str, Stretch] = {}
        for session_id, (size, rows) in self._store.newest_traces(grown.keys(), newest).items() if grown else ():
            each = grown[session_id]
            members = sorted((from_row(row) for row in rows), key=lambda member: member.order)
            if size <= newest or suffices(members, each.start_ns, each.agents, self._evaluator.embedder.id):
                found[session_id] = Stretch(session_id, size - len(members), members)
        return found

    def _suffices(self, newest: Sequence[Member], added: Sequence[Run]) -> bool:
        agents = {run.unit.agent for run in added if run.member.facts.said}
        start, unsettled = min(run.member.start_ns for run in added), any(run.member.facts.unsettled for run in added)
        return suffices(newest, start, agents, self._evaluator.embedder.id, unsettled)

    def _compare(self, stretches: Sequence[Stretch], batch: Mapping[str, _Filing], changes: WriteSet) -> list[Result]:
        """Runs the due comparisons of some sessions, reads again what is to be read with earlier traces, and adds the
        changed members to ``changes``. Returns the results of traces that are not in the batch."""
        again: list[Result] = []
        embedder = self._evaluator.embedder
        found = [each for stretch in stretches for each in comparisons(stretch, batch, embedder.id)]
        speak_together(found, embedder.id)
        for each in found:
            again.extend(self._compared(each, batch.get(each.member.trace_id)))
        for each_again in [each for stretch in stretches for each in rereadings(stretch, batch)]:
            again.extend(self._reread(each_again, batch.get(each_again.member.trace_id)))
        for recovery in [each for stretch in stretches for each in recoveries(stretch)]:
            again.extend(self._recovered(recovery, batch.get(recovery.member.trace_id)))
        for stretch in stretches:
            changed = [member for member in stretch.members if member.changed]
            changes.session_traces.extend(to_row(member, stretch.session_id) for member in changed)
            changes.touched.add(stretch.session_id)
        return again

    def _compared(self, comparison: LoopComparison, filing: _Filing | None) -> list[Result]:
        """Compares one answer. Adds the results to what is being filed, or returns them."""
        member, evidence, embedder = comparison.member, comparison.evidence, self._evaluator.embedder
        if filing is not None:
            unit, lost = filing.run.unit.with_evidence(evidence), filing.run.lost
        else:
            unit, lost = unit_again(member, comparison.stretch.session_id, evidence), None
            member.changed = True
        earlier = comparison.outputs()
        texts = own_texts(member, embedder, len(earlier[0].embedding) if earlier else 0, lost)
        asked = member.facts.asked_again
        results = self._evaluator.in_session(remembered(member, unit), unit, texts, earlier, asked)
        member.facts.loop_evidence = evidence
        member.facts.signals.update(self._signals(results))
        if filing is None:
            return results
        filing.results.extend(results)
        return []

    def _reread(self, reading: Rereading, filing: _Filing | None) -> list[Result]:
        """Evaluates a trace again with what the earlier traces of its session held. Puts the results in place of those
        that are being filed, or returns them."""
        member, names = reading.member, reading.member.facts.unsettled
        if filing is not None:
            unit = filing.run.unit.with_evidence(reading.evidence)
        else:
            unit = unit_again(member, reading.session_id, reading.evidence)
            member.changed = True
        trace = filing.run.trace if filing is not None else self._kept(member, reading.session_id)
        if trace is not None:
            results = self._evaluator.with_before(trace, unit, names, reading.before())
        elif not member.facts.before_evidence:
            results = self._evaluator.not_kept(unit, names)
        else:
            return []
        member.facts.before_evidence = reading.evidence
        for name in names:
            member.facts.signals.pop(name, None)
        member.facts.signals.update(self._signals(results))
        if filing is None:
            if member.facts.revision > 1:
                results += taken_back_of(self._store, self._evaluator, unit, results, set(names))
            return results
        filing.results = [each for each in filing.results if each.unit.level != "trace" or each.metric not in names]
        filing.results.extend(results)
        return []

    def _recovered(self, recovery: Recovery, filing: _Filing | None) -> list[Result]:
        """Says that a failure was made up for. Puts the result in place of the one that is being filed, or returns
        it."""
        member = recovery.member
        member.facts.recovered = recovery.evidence
        if filing is None:
            member.changed = True
            unit = unit_again(member, recovery.session_id, recovery.evidence)
            return self._evaluator.said_of("trace.response", unit, recovery.finding())
        unit = filing.run.unit.with_evidence(recovery.evidence)
        results = self._evaluator.said_of("trace.response", unit, recovery.finding())
        told = {result.metric for result in results}
        filing.results = [each for each in filing.results if each.unit.level != "trace" or each.metric not in told]
        filing.results.extend(results)
        return []

    def _kept(self, member: Member, session_id: str) -> Trace | None:
        trace = kept_trace(self._store.contents(bytes.fromhex(member.trace_id)), member.facts.digest)
        return trace and (trace if trace.session_id == session_id else with_session(trace, session_id))

    def _signals(self, results: Iterable[Result]) -> dict[str, SignalFacts]:
        of_traces = [each for each in results if each.unit.level == "trace" and each.is_verdict]
        values = self._evaluator.signal_values(of_traces) if of_traces else ()
        return {result.metric: _signal(result, value) for result, value in zip(of_traces, values, strict=True)}


def _signal(result: Result, value: float | None) -> SignalFacts:
    if not result.finding.metadata.get("in_sample", True):  # judged by itself: a session is judged whole or not
        return {"outcome": "unscored", "value": None, "why": Why.NOT_SAMPLED.value}
    signal: SignalFacts = {"outcome": result.outcome, "value": value, "why": result.why}
    if result.success is False and result.finding.reason:
        signal["said"] = cut(result.finding.reason, _SAID_CHARS)
    if lost := result.finding.metadata.get("lost_tool"):
        signal["lost"] = lost
    return signal


def _is_new(run: Run, places: Places) -> bool:
    """Returns whether the session of a run cannot hold it yet."""
    return run.unit.trace_id not in places.before if run.is_handed else run.unit.revision == 1


def _until_judged(name: str, older: TraceFacts | None, digest: str) -> SignalFacts:
    """Returns the signal of a metric whose judge has yet to be asked: that of the older revision, if any. It is marked
    where it rests on other evidence: then the session has another id than with the judge's answer."""
    signal = _PENDING if older is None else older.signals.get(name, _PENDING)
    if older is None or older.digest == digest or signal["outcome"] == "pending":
        return signal
    return {**signal, "older": True}
