"""Scores recorded traces like a running collector, with equal results and ids.

Judged metrics run last.
"""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Protocol, TypeVar

from pandaeval_collector.base.isolated import Isolated
from pandaeval_collector.base.result import Result
from pandaeval_collector.pipeline.line.decision import Conclusion
from pandaeval_collector.pipeline.line.implied_sessions import Chains
from pandaeval_collector.pipeline.line.line import Line
from pandaeval_collector.pipeline.line.understanding import ScoredTrace, Understood, unasked
from pandaeval_collector.scoring.evaluator import Evaluator
from pandaeval_collector.store import Store, WriteSet
from pandaeval_otel.assembly import DueTrace
from pandaeval_otel.model import Trigger

if TYPE_CHECKING:
    from pandaeval_lab.replay.judge import ReplayJudge

_log = logging.getLogger(__name__)

BATCH = 128
"""Number of traces or sessions committed together."""
T = TypeVar("T")


class RecordedTraces(Protocol):
    store: Store

    def chains(self) -> Chains:
        """Find the sessions of traces that name none."""
        ...

    def due(self) -> Iterator[Sequence[DueTrace]]: ...

    def closing(self, touched: Collection[str]) -> Collection[str]: ...


def replay(
    source: RecordedTraces,
    evaluator: Evaluator,
    judge: ReplayJudge | None = None,
    *,
    where: Callable[[ScoredTrace], bool] | None = None,
    on_decided: Callable[[Conclusion], None] = lambda decision: None,
) -> Iterator[Result]:
    """Yield every result: of traces by start, then of the judge, then of sessions.

    ``judge`` is called after all traces, and after all sessions. ``where``: filters scored traces; comparisons still
    use earlier traces. ``on_decided``: receives each batch before its results. With a judge, do not call on an event
    loop. A trace that raises or is slow only loses its results.
    """
    left_out: set[str] = set()
    line = Line(source.store.reads, evaluator, chains=source.chains(), left_out=left_out)
    touched: set[str] = set()

    def file(pairs: Sequence[tuple[DueTrace, Understood]]) -> Conclusion:
        others = {one.run.unit.trace_id for _, one in pairs if where and one.run and not where(one.run)}
        left_out.update(others)
        return _filed(line, pairs, others, left_out)

    def set_aside(pair: tuple[DueTrace, Understood], error: Exception) -> Conclusion:
        return line.set_aside(pair[0], type(error).__name__, str(error))

    def close(session_ids: Sequence[str]) -> Conclusion:
        return line.close_sessions(dict.fromkeys(session_ids, Trigger.FILE))

    for batch in source.due():
        for decision in _decisions([*zip(batch, line.understanding.of(batch), strict=True)], file, set_aside):
            decision.changes.jobs = [
                replace(job, delay=0.0) for job in decision.changes.jobs
            ]  # files have no late spans
            source.store.commit(decision.changes).result()
            touched |= decision.changes.touched
            on_decided(decision)
            yield from decision.results
    if judge is not None:
        yield from judge.answers(line)
    for session_ids in batches(sorted(source.closing(touched))):
        for decision in _decisions(session_ids, close, lambda session_id, _: Conclusion(WriteSet(closed={session_id}))):
            source.store.commit(decision.changes).result()
            yield from decision.results
    if judge is not None:
        yield from judge.answers(line)


def _filed(
    line: Line, pairs: Sequence[tuple[DueTrace, Understood]], others: set[str], left_out: set[str]
) -> Conclusion:
    kept = [unasked(one) if one.run and one.run.unit.trace_id in others else one for _, one in pairs]
    decision = line.file([due for due, _ in pairs], kept)
    decision.runs = [run for run in decision.runs if run.unit.trace_id not in others]
    decision.results = [result for result in decision.results if result.unit.trace_id not in left_out]
    decision.left_out = others
    return decision


def _decisions(
    items: Sequence[T], decide: Callable[[Sequence[T]], Conclusion], failed: Callable[[T, Exception], Conclusion]
) -> Iterator[Conclusion]:
    parts = Isolated(items)
    for part in parts:
        try:
            decision = decide(part)
        except sqlite3.Error:
            raise
        except Exception as error:  # noqa: BLE001 - an error affects only this item
            if parts.split():
                continue
            _log.error("trace %s cannot be scored", part[0], exc_info=error)
            decision = failed(part[0], error)
        yield decision


def batches(items: Iterable[T], size: int | None = None) -> Iterator[Sequence[T]]:
    rest = iter(items)
    return iter(lambda: [*islice(rest, size or BATCH)], [])
