"""Takes back what was said of an older revision of a trace, where the newest has nothing to say."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import orjson

from pandaeval_collector.base.result import Result, Unit
from pandaeval_collector.base.score import Unscored, Why
from pandaeval_collector.scoring.evaluator import Evaluator
from pandaeval_collector.store import Store

_NOTHING_LEFT = Unscored(
    Why.INSUFFICIENT_EVIDENCE, "does not apply any more: spans came that leave nothing to check", {"taken_back": True}
)


def taken_back(
    store: Store, evaluator: Evaluator, unit: Unit, results: Sequence[Result], names: Collection[str] | None = None
) -> list[Result]:
    """Returns an unscored result of each trace metric that has a result in the store and none among ``results``. A
    metric that a judge or the session answers is left out: it may answer later. ``unit``: the trace's newest revision;
    ``names``: the metrics to look at, all if not given."""
    said = {each.metric for each in results if each.unit.id == unit.id and each.unit.level == "trace"}
    found: list[Result] = []
    for (_, key), row in store.newest_results([unit.id]).items():
        level, _, name = key.partition(".")
        if level != "trace" or name in said or (names is not None and name not in names):
            continue
        if not orjson.loads(row.body)["metadata"].get("taken_back"):
            found += evaluator.said_of(name, unit, _NOTHING_LEFT)
    return found
