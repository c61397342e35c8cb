"""Turns due traces into a decision with a :class:`WriteSet` for one transaction.

It only reads the store; single-threaded.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import replace

from pandaeval_collector.base.result import Result, Unit
from pandaeval_collector.base.score import Why
from pandaeval_collector.exporters.delivery import MEMBERS
from pandaeval_collector.exporters.delivery.emitter import Emitter
from pandaeval_collector.pipeline.line.decision import Conclusion, Judgement
from pandaeval_collector.pipeline.line.dependencies import blamed_by_judge, blamed_by_person
from pandaeval_collector.pipeline.line.details import details
from pandaeval_collector.pipeline.line.dismissals import Dismissals
from pandaeval_collector.pipeline.line.handover import Adoption, Handed, MemberHandover
from pandaeval_collector.pipeline.line.implied_sessions import Chains
from pandaeval_collector.pipeline.line.members import unpack_answers
from pandaeval_collector.pipeline.line.revisions import Revisions, taken_back
from pandaeval_collector.pipeline.line.session_scores import SessionScores
from pandaeval_collector.pipeline.line.sessions import SessionPlaces
from pandaeval_collector.pipeline.line.setup_advice import Hints
from pandaeval_collector.pipeline.line.understanding import ScoredTrace, Understanding, Understood
from pandaeval_collector.scoring.evaluator import Evaluator, unread
from pandaeval_collector.store import DecidedTrace, Dismissal, JobEnd, ListedRow, StoreReader, WriteSet, outbox_batches
from pandaeval_collector.store.live_groups import LiveGroups
from pandaeval_collector.store.runs import RunBatch
from pandaeval_otel._proto.member_pb2 import Member
from pandaeval_otel.assembly import DueTrace
from pandaeval_otel.model import Trigger

_WHYS = {"timeout": Why.TIMEOUT, "worker_hung": Why.TIMEOUT}
"""Result reasons of a quarantined trace, by kind of error."""


class Line:
    def __init__(
        self,
        store: StoreReader,
        evaluator: Evaluator,
        emitter: Emitter | None = None,
        chains: Chains | None = None,
        left_out: Container[str] = frozenset(),
        failures: LiveGroups | None = None,
        hands_over: bool = False,
        hints: Hints | None = None,
    ) -> None:
        """``chains``: session finder.

        ``left_out``: trace ids that session scores ignore; may grow. ``failures``: failure groups, if enabled.
        ``hands_over``: other collectors may own sessions.
        """
        self._store, self._evaluator, self._emitter = store, evaluator, emitter or Emitter()
        self._revisions = Revisions(store, self._emitter, evaluator.plan.silent, failures)
        self._sessions = SessionPlaces(self._store, evaluator, chains)
        self.scores = SessionScores(self._store, evaluator, left_out)
        self._hints = hints
        self._dismissals = Dismissals(store)
        self._adoption = Adoption(store, evaluator, self._sessions)
        self._handover = MemberHandover(store, evaluator, self._sessions) if hands_over else None
        self.understanding = Understanding(store, evaluator)
        """Understands traces in this process, before they are filed."""

    def decide(self, due: Sequence[DueTrace]) -> Conclusion:
        return self.file(due, self.understanding.of(due))

    def file(self, due: Sequence[DueTrace], understood: Sequence[Understood]) -> Conclusion:
        """File traces under their sessions. ``understood``: the outcome of each ``due`` trace. Repeatable."""
        decision = Conclusion()
        changes = decision.changes
        pairs = [*zip(due, understood, strict=True)]
        changes.traces = [_row(trace, outcome) for trace, outcome in pairs]
        runs = sorted((outcome.run for outcome in understood if outcome.run), key=lambda run: run.member.order)
        with self._store.snapshot():
            filing = self._handover or self._sessions
            runs, places = filing.place(runs)
            decision.runs, decision.has_runs = runs, bool(runs)
            changes.jobs = [job for run in runs for job in run.jobs]
            changes.listed = [run.listed for run in runs if run.listed is not None]
            unpack_answers([run.member for run in runs if run.member.facts.embedder is not None])
            results = [*filing.file(runs, places, changes)]
            for trace, outcome in pairs:
                if outcome.failed is not None:
                    results += self._aside(trace, *outcome.failed, decision)
            revised = [run for run in runs if run.unit.revision > 1]
            results += [gone for run in revised for gone in self._taken_back(run, results)]
            first_time = {run.unit.id for run in runs if run.unit.revision == 1}
            self._revisions.add(results, decision, first_time)
            self._emitter.add_spent(_listed_first(runs), changes)
        if self._hints is not None:
            self._hints.look((run.unit.service, run.lacking) for run in runs)
        return decision

    def _taken_back(self, run: ScoredTrace, results: Sequence[Result]) -> list[Result]:
        gone = taken_back(self._store, self._evaluator, run.unit, results, run.jobs)
        if self._handover is None or run.unit.session_id is None:
            return gone
        owned = run.member.facts.unsettled
        return [result for result in gone if result.unit.level != "trace" or result.metric not in owned]

    def set_aside(self, due: DueTrace, kind: str, why: str) -> Conclusion:
        """Quarantine a trace; its results contain the reason."""
        decision = Conclusion(WriteSet(traces=[_row(due, Understood("", failed=(kind, why)))]))
        self._revisions.add(self._aside(due, kind, why, decision), decision)
        return decision

    def adopt(self, handed: Sequence[Handed]) -> Conclusion:
        decision = Conclusion()
        with self._store.snapshot():
            decision.grown, verdicts = self._adoption.adopt(handed, decision.changes)
            if verdicts:
                self._revisions.add(verdicts, decision)
        return decision

    def compare(self, grown: Mapping[str, int]) -> Conclusion:
        decision = Conclusion()
        with self._store.snapshot():
            self._revisions.add(self._sessions.compare(grown, decision.changes), decision)
            # Without new members, a session stays as it was, unless it was closed without these comparisons.
            touched = decision.changes.touched
            decision.changes.touched = {each for each in touched if not self._store.session_is_open(each)}
        return decision

    def end_elsewhere(self, session_id: str) -> Conclusion:
        decision = Conclusion()
        if self._handover is not None:
            over = Member(session_id=session_id, session_end=True).SerializeToString()
            decision.changes.outbox.extend(outbox_batches(MEMBERS, [over]))
        return decision

    def close_sessions(self, over: Mapping[str, Trigger]) -> Conclusion:
        """Close sessions and give them final scores. ``over``: reason by id."""
        decision = Conclusion()
        results: list[Result] = []
        with self._store.snapshot():
            for session_id, trigger in over.items():
                session_results, jobs = self.scores.score(session_id, trigger)
                results.extend(session_results)
                decision.changes.jobs.extend(jobs)
                decision.changes.closed.add(session_id)
            self._revisions.add(results, decision)
        return decision

    def score_so_far(self, session_ids: Iterable[str]) -> Conclusion:
        """Give open sessions provisional scores (``final`` is false). Calls no judge; omits unscored results."""
        decision = Conclusion()
        with self._store.snapshot():
            measured: list[Result] = []
            for session_id in session_ids:
                results, _ = self.scores.score(session_id, Trigger.SESSION_CHANGED)
                measured += [
                    replace(result, final=False)
                    for result in results
                    if result.outcome != "unscored" and result.evaluator.kind != "llm"
                ]
            self._revisions.add(measured, decision, for_good=False)
        return decision

    def judged(self, judgements: Sequence[Judgement]) -> Conclusion:
        """File the judge's answers and end their jobs. Drops answers about outdated evidence."""
        decision = Conclusion()
        results: list[Result] = []
        for judgement in judgements:
            result = judgement.result
            if result is None or self._now(result.unit) != result.unit.evidence:
                end = judgement.end if result is None else JobEnd(judgement.end.id, "cancelled", "superseded")
                decision.changes.ended.append(end)
                continue
            decision.changes.ended.append(judgement.end)
            if all(each.id != result.id for each in results):  # the question may have been asked again meanwhile
                results.append(result)
        (self._handover or self._sessions).tell(results, decision.changes)
        results += [
            explanation for each in results for explanation in blamed_by_judge(self._store, self._evaluator, each)
        ]
        for verdict in [each for each in results if self._evaluator.judged.selects(each)]:
            known, jobs = details(self._store, self._evaluator, verdict, self.scores.traces_of(verdict.unit))
            results += known
            decision.changes.jobs += jobs
        self._revisions.add(results, decision)
        return decision

    def emitted(self, results: Sequence[Result], batch: RunBatch) -> Conclusion:
        """File a run's batch and export its results."""
        decision = Conclusion(WriteSet(runs=[batch]))
        self._emitter.add(results, (), decision.changes)
        return decision

    def dismiss(self, asked: Dismissal) -> Conclusion:
        """Remove a finding from all counts, or restore it. The owner of its session scores the session again."""
        decision = Conclusion()
        with self._store.snapshot():
            changed = self._dismissals.changed(asked)
            if not changed:
                return decision
            label, finding = asked.label, changed[0]
            decision.changes.dismissals.append(asked)
            (self._handover or self._sessions).tell(changed, decision.changes)
            changed += blamed_by_person(self._store, self._evaluator, finding)
            decision.changes.failures += self._dismissals.counted(finding, 1 if asked.undone else -1)
            self._revisions.add(changed, decision, restored=(label.unit, label.metric) if asked.undone else None)
        return decision

    def _now(self, unit: Unit) -> str | None:
        if unit.level != "session":
            held = self._store.held(bytes.fromhex(unit.trace_id))
            return None if held is None else held[0]
        found = self.scores.conversation(unit.id, Trigger(unit.trigger))
        return None if found is None else found[1].evidence

    def _aside(self, due: DueTrace, kind: str, why: str, decision: Conclusion) -> list[Result]:
        decision.failed[due.trace_id] = kind
        reason = f"set aside: {kind}: {why}"[:500]
        return self._evaluator.set_aside(unread(due), reason, _WHYS.get(kind, Why.METRIC_ERROR))


def _listed_first(runs: Sequence[ScoredTrace]) -> list[ListedRow]:
    return [run.listed for run in runs if run.listed is not None and run.unit.revision == 1]


def _row(due: DueTrace, understood: Understood) -> DecidedTrace:
    failed = understood.failed is not None
    digest, final = ("", True) if failed else (understood.digest, due.capped)
    return DecidedTrace(due.trace_id, due.revision, final, digest, due.known, due.chunks, due.size)
