"""Adds numbered results to a decision, and retracts older results that the new revision lacks."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

import orjson

from pandaeval_collector.base.result import NOTED, Result, Unit
from pandaeval_collector.base.score import Score, Unscored, Why
from pandaeval_collector.exporters.delivery.emitter import Emitter
from pandaeval_collector.pipeline.line.decision import Conclusion
from pandaeval_collector.pipeline.line.dismissals import kept as with_dismissals
from pandaeval_collector.pipeline.line.understanding import TURN
from pandaeval_collector.scoring.evaluator import Evaluator
from pandaeval_collector.store import JobRow, JudgedRow, ResultRow, StoreReader
from pandaeval_collector.store.live_groups import LiveGroups, filed
from pandaeval_otel.base.names import bounded
from pandaeval_otel.model import Trigger
from pandaeval_otel.wire.labels import MOST_ID

_NOT_SAMPLED = Why.NOT_SAMPLED.value
_LEVELS = ("trace", "turn")
_JUDGED = b'"judge":{'
"""Part of the JSON of judged results. Texts cannot contain it, because their quotes are escaped."""
_EMPTIED = Unscored(
    Why.INSUFFICIENT_EVIDENCE, "all traces of the session moved to another session", {"taken_back": True}
)
_NOTHING_LEFT = Unscored(
    Why.INSUFFICIENT_EVIDENCE,
    "does not apply any more: later spans or a dismissal changed the trace",
    {"taken_back": True},
)


class Revisions:
    """Knows the newest stored results.

    Only reads the store; single-threaded. ``silent``: keys that are not exported.
    """

    def __init__(
        self, store: StoreReader, emitter: Emitter, silent: Collection[str], failures: LiveGroups | None
    ) -> None:
        self._store, self._emitter, self._silent, self._failures = store, emitter, silent, failures

    def add(
        self,
        results: Sequence[Result],
        decision: Conclusion,
        first_time: Collection[str] = frozenset(),
        *,
        for_good: bool = True,
        restored: tuple[str, str] | None = None,
    ) -> None:
        """Add changed ``results`` with revision numbers.

        ``first_time``: units without results. ``for_good``: whether all results are final. ``restored``: unit and
        metric of a finding whose dismissal was withdrawn.
        """
        dismissed = self._store.dismissed() if restored is None else self._store.dismissed() - {restored}
        kept = with_dismissals((result for result in results if result.key not in self._silent), dismissed)
        newest = self._store.newest_results({unit.id for unit in _units(kept) if _of_trace(unit) not in first_time})
        if left_out := [result for result in kept if result.why == _NOT_SAMPLED]:
            self._emitter.count(left_out, decision.changes)
        counted: set[str] = set()
        first: set[str] = set()
        for result in kept:
            known = newest.get((result.unit.id, result.key))
            if result.why == _NOT_SAMPLED or (known is not None and known.id == result.id):
                continue
            if known is not None and known.counted:
                counted.add(result.id)
            if known is not None and not known.settled:
                first.add(result.id)
            self._file(result, known, decision, for_good)
        if not for_good:
            self._emitter.add_interim(decision.results, decision.changes)
            return
        later = {about for about, _ in newest}.difference(run.unit.id for run in decision.runs)
        judged = {about.partition(":")[0] for (about, _), row in newest.items() if _JUDGED in row.body}
        undecided = {about.partition(":")[0] for (about, _), row in newest.items() if row.success == 0}
        undecided |= {job.trace_id.hex() for job in decision.changes.jobs}
        self._emitter.add(decision.results, counted, decision.changes, first, later, judged, undecided)

    def _file(self, result: Result, known: ResultRow | None, decision: Conclusion, for_good: bool) -> None:
        lowest = 1 if known is None else known.revision + 1
        if result.revision < lowest:
            result = replace(result, revision=lowest)
        if self._failures is not None and for_good and result.success is False:
            is_new = known is None or not known.counted
            result = filed(self._failures, result, is_new, decision.changes)
        key = result.key
        decision.results.append(result)
        decision.changes.results.append(_row(result, key, known, for_good))
        if result.evaluator.kind == "llm" and result.is_rated and isinstance(result.finding, Score):
            decision.changes.judged.append(_judged(result, key, result.finding))


def _units(results: Sequence[Result]) -> list[Unit]:
    return [result.unit for result in results]


def _of_trace(unit: Unit) -> str:
    return unit.trace_id if unit.level == "turn" else unit.id


def _row(result: Result, key: str, known: ResultRow | None, for_good: bool) -> ResultRow:
    finding, signal = result.finding, None
    if isinstance(finding, Score) and finding.label not in NOTED:
        signal = float(finding.metadata.get("calibrated", finding.value))
    return ResultRow(
        result.id,
        result.unit.id,
        key,
        result.revision,
        result.to_json(),
        (known is not None and known.counted) or (for_good and result.outcome == "scored"),
        success=result.success,
        signal=signal,
        settled=for_good or (known is not None and known.settled),
        verdict=result.verdict,
    )


def _judged(result: Result, key: str, finding: Score) -> JudgedRow:
    unit = result.unit
    return JudgedRow(
        unit=bounded(unit.id, MOST_ID),
        metric=key,
        session=bounded(unit.session_id or "", MOST_ID),
        agent=bounded(unit.agent),
        score=finding.value,
        passed=result.success,
        threshold=result.threshold if finding.raw is None else None,  # else the threshold has another scale
        model=bounded(result.evaluator.model or ""),
        version=result.evaluator.version,
        probability=float(finding.metadata.get("inclusion_probability", 1.0)),
    )


def taken_back(
    store: StoreReader,
    evaluator: Evaluator,
    unit: Unit,
    results: Sequence[Result],
    jobs: Sequence[JobRow] = (),
    among: Collection[str] | None = None,
) -> list[Result]:
    """Return unscored results for stored results without successor.

    ``among``: trace metric names. Excludes comparisons of answers.
    """
    answered = {(each.unit.id, each.key) for each in results if each.why != Why.NOT_SAMPLED}
    for job in jobs:
        turn = orjson.loads(job.body).get(TURN)
        answered.add((unit.id if turn is None else f"{unit.id}:{turn}", job.metric))
    found: list[Result] = []
    for (about, key), row in store.newest_results([unit.id]).items():
        level, _, name = key.partition(".")
        is_looked_at = level in _LEVELS if among is None else level == "trace" and name in among
        if not is_looked_at or (about, key) in answered:
            continue
        if not orjson.loads(row.body)["metadata"].get("taken_back"):
            of_turn = about != unit.id
            its = replace(unit, level="turn", id=about, span_id=about.partition(":")[2]) if of_turn else unit
            found += evaluator.said_of(key, its, _NOTHING_LEFT)
    return found


def emptied(store: StoreReader, evaluator: Evaluator, session_id: str, trigger: Trigger) -> list[Result]:
    """Return unscored results for all stored results of a session that has lost its traces."""
    found: list[Result] = []
    for (_, key), row in store.newest_results([session_id]).items():
        body = orjson.loads(row.body)
        if not body["metadata"].get("taken_back"):
            named = {name: body[name] for name in ("trace_id", "span_id", "agent", "service", "environment")}
            unit = Unit(level="session", id=session_id, session_id=session_id, trigger=trigger.value, **named)
            found += evaluator.said_of(key, unit, _EMPTIED)
    return found
