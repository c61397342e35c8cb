"""Draws the judged runs that people should look at next; see
:mod:`pandaeval_collector.analysis.stats.learned`."""

from __future__ import annotations

import sqlite3
from collections import Counter
from dataclasses import dataclass

import numpy as np

from pandaeval_collector.analysis.stats.learned import drawn, numbers_of, wanted
from pandaeval_collector.base.errors import UserError
from pandaeval_collector.config import MetricNames
from pandaeval_collector.store import DrawnRow, JudgedRow, numbers, people

_MIDDLE = 0.5
"""The threshold of metrics that have none."""


@dataclass(frozen=True, slots=True)
class DrawnRun:
    """A run to be labelled, and its chance of being drawn."""

    run: JudgedRow
    probability: float


@dataclass(frozen=True, slots=True)
class Queue:
    """The runs drawn for labelling. ``waiting``: judged runs that nobody labelled, drawn ones included; ``chances``:
    those of all runs that are drawn by now, to be stored."""

    drawn: list[DrawnRun]
    labelled: int
    waiting: int
    chances: list[DrawnRow]


def metric_to_label(connection: sqlite3.Connection, name: str, names: MetricNames, said: str) -> str:
    """Returns the key of the metric to label for; ``name`` may be empty if only one has judged runs. ``said``: the name
    of the option in error texts, such as ``--metric``. Raises ``UserError``."""
    rows = connection.execute(f"SELECT metric, count(*) FROM {people.STANDING} GROUP BY metric")  # noqa: S608
    there = Counter(dict(rows.fetchall()))
    if not there:
        raise UserError("there are no judged runs in the store to be labelled (judge.model, docs/judging.md)")
    wanted_ = names.select(name) if name else tuple(there)
    found = [key for key in wanted_ if key in there]
    if len(found) == 1:
        return found[0]
    known = ", ".join(f"{key} ({count})" for key, count in there.most_common())
    if name and not names.select(name):
        raise UserError(f"{said} {name}: {names.unknown(name)}")
    if name and not found:
        raise UserError(f"{said} {name}: no judged runs; there are those of {known}")
    raise UserError(f"say with {said} which one to label for: {known}")


def draw(connection: sqlite3.Connection, metric: str, agent: str, count: int, now: float) -> Queue:
    """Draws runs (:func:`drawn_next`) and stores their chances. ``now``: Unix seconds."""
    queue = drawn_next(connection, metric, agent, count)
    people.keep_draws(connection, queue.chances, now)
    return queue


def drawn_next(connection: sqlite3.Connection, metric: str, agent: str, count: int) -> Queue:
    """Draws at most ``count`` runs. The same call gives the same runs until somebody labels them. Whoever shows them
    stores their chances, so that later draws, here or elsewhere, are weighed right."""
    judged = people.judged(connection, metric, agent)
    if not judged:
        return Queue([], 0, 0, [])
    runs = [run for run, _ in judged]
    is_open = np.asarray([not labelled for _, labelled in judged])
    scores = np.asarray([run.score for run in runs])
    thresholds = np.asarray([_MIDDLE if run.threshold is None else run.threshold for run in runs])
    numbers = numbers_of([f"{metric} {run.unit}" for run in runs])
    wants = wanted(scores, thresholds)
    places, chances = drawn(numbers, wants, is_open, count)
    first = numbers <= chances  # these, and those that were drawn before them
    first[places] = True
    rows = [DrawnRow(runs[at].unit, metric, float(chances[at])) for at in np.flatnonzero(first)]
    found = [DrawnRun(runs[at], float(chances[at])) for at in places]
    return Queue(found, int((~is_open).sum()), int(is_open.sum()), rows)


def has_spans(connection: sqlite3.Connection, units: list[str]) -> set[str]:
    """Returns the traces among ``units`` whose spans the store still holds."""
    found: set[str] = set()
    for marks, group in numbers.batched(numbers.of_units(connection, units)):
        query = f"SELECT lower(hex(trace_id)) FROM traces WHERE size > 0 AND no IN ({marks})"  # noqa: S608
        found.update(row[0] for row in connection.execute(query, group))
    return found
