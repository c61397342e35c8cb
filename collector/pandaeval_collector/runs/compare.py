"""Compares two runs over the same traces, or a run with the live results."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import orjson

from pandaeval_collector.analysis.stats.paired import PairedDifference, paired_difference
from pandaeval_collector.store.runs import RunRow, RunTable

_SHOWN = 10
_SAME = 1e-9


@dataclass(frozen=True, slots=True)
class Change:
    """A unit whose score changed."""

    trace_id: str | None
    session_id: str | None
    before: float
    after: float


@dataclass(slots=True)
class MetricComparison:
    """A metric in two runs.

    ``pairs``: units in both. ``both_scored``: of these, scored in both. ``agreement``: share of equal verdicts.
    ``flips``: different verdicts. ``decided``: units with a verdict per run. ``labelled``: pairs with human labels.
    ``right``: equal to the label per run. ``differing``: different scores. ``difference``: second minus first.
    ``versions``: metric version and judge or embedder. ``same_series``: equal, so scores are comparable.
    """

    metric: str
    pairs: int = 0
    both_scored: int = 0
    differing: int = 0
    agreement: float | None = None
    flips: int = 0
    decided: tuple[int, int] = (0, 0)
    labelled: int = 0
    right: tuple[int, int] = (0, 0)
    difference: PairedDifference | None = None
    versions: tuple[list[str], list[str]] = field(default_factory=lambda: ([], []))
    same_series: bool = False
    changes: list[Change] = field(default_factory=list)


def compared(runs: RunTable, first: RunRow, second: RunRow | None) -> list[MetricComparison]:
    """Compare each metric of both runs; ``second``: ``None`` for live results. Blocks."""
    # Pairs of the first run's results with the live results, or with the second run's results.
    rows = runs.pairs(first.no, None if second is None else second.no)
    grouped = itertools.groupby(rows, key=lambda row: str(row[0]))
    return [_one(metric, of_metric, partial(runs.body, first.no, metric)) for metric, of_metric in grouped]


def _one(metric: str, rows: Iterable[tuple[Any, ...]], body: Callable[[int], bytes | None]) -> MetricComparison:
    found = MetricComparison(metric)
    differences: list[float] = []
    clusters: list[int] = []
    by: tuple[set[str], set[str]] = (set(), set())
    same = judged = 0
    decided, right = [0, 0], [0, 0]
    changed: list[tuple[float, int, float, float]] = []
    for _, about, session, score, success, first_by, other, other_success, second_by, people in rows:
        found.pairs += 1
        by[0].add(first_by)
        by[1].add(second_by)
        if success is not None and other_success is not None:
            judged += 1
            same += success == other_success
        labelled = people is not None and people != 0.5
        found.labelled += labelled
        for at, verdict in enumerate((success, other_success)):
            decided[at] += verdict is not None
            right[at] += labelled and verdict is not None and bool(verdict) == (people > 0.5)
        if score is None or other is None:
            continue
        change = other - score
        differences.append(change)
        clusters.append(-session or about)
        if abs(change) > _SAME:
            changed.append((abs(change), about, score, other))
    found.both_scored, found.differing = len(differences), len(changed)
    if judged:
        found.agreement = same / judged
    found.flips = judged - same
    found.decided, found.right = (decided[0], decided[1]), (right[0], right[1])
    found.difference = paired_difference(differences, clusters)
    found.versions = sorted(by[0]), sorted(by[1])
    found.same_series = found.versions[0] == found.versions[1]
    for _, about, before, after in heapq.nlargest(_SHOWN, changed):
        result = orjson.loads(body(about) or b"{}")
        trace_id = result.get("trace_id") if about > 0 else None
        found.changes.append(Change(trace_id, result.get("session_id"), before, after))
    return found
