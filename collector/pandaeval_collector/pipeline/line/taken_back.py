"""Takes back what was said of an older revision of a trace or of its turns, where the newest has nothing to say."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

import orjson

from pandaeval_collector.base.result import Result, Unit
from pandaeval_collector.base.score import Unscored, Why
from pandaeval_collector.pipeline.line.understanding import TURN
from pandaeval_collector.scoring.evaluator import Evaluator
from pandaeval_collector.store import JobRow, StoreReader

_LEVELS = ("trace", "turn")
_NOTHING_LEFT = Unscored(
    Why.INSUFFICIENT_EVIDENCE, "does not apply any more: it was said before further spans came", {"taken_back": True}
)


def taken_back(
    store: StoreReader,
    evaluator: Evaluator,
    unit: Unit,
    results: Sequence[Result],
    jobs: Sequence[JobRow] = (),
    among: Collection[str] | None = None,
) -> list[Result]:
    """Returns an unscored result of each metric of a trace and its turns that has a result in the store, none among
    ``results`` and no question among ``jobs``. ``unit``: the trace's newest revision; ``among``: names of trace
    metrics, the only ones to look at. What compares the answers of the session is left out: it may answer later."""
    answered = {(each.unit.id, f"{each.unit.level}.{each.metric}") for each in results if each.why != Why.NOT_SAMPLED}
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
