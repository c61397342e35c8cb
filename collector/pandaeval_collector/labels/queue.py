"""Draws judged runs for labelling at random, with known probabilities. Runs near the threshold have more weight.

Runs are ranked by a hash of their ID divided by their weight (sequential Poisson sampling, Ohlsson 1998; priority
sampling, Duffield, Lund and Thorup 2007). A run's probability is its weight times the rank of the first undrawn run.
"""

from __future__ import annotations

import hashlib
import re
import sqlite3
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pandaeval_collector.base.errors import UserError
from pandaeval_collector.config import MetricNames
from pandaeval_collector.store import DrawnRow, JudgedRow, people
from pandaeval_collector.store.numbers import trace_of
from pandaeval_otel.base.names import bounded
from pandaeval_otel.wire.labels import MOST_ID, LabelError

_MIDDLE = 0.5
"""The threshold of metrics that have none."""
_REACH = 0.15
"""How far from the threshold the interest in a run falls to a third."""
_TRACE = re.compile(r"[0-9a-f]{32}")
Values = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class DrawnRun:
    """A run to label, and its probability."""

    run: JudgedRow
    probability: float


@dataclass(frozen=True, slots=True)
class Queue:
    """Runs drawn for labelling. ``waiting``: judged runs without a label, drawn ones included."""

    drawn: list[DrawnRun]
    labelled: int
    waiting: int


def about(trace: str, session: str, metric: str, names: MetricNames) -> tuple[str, str]:
    """Return the unit and the metric's key. Raises :class:`LabelError`."""
    if not metric:
        raise LabelError("metric is empty; `pandaeval metrics` lists them")
    keys = names.select(metric)
    if not keys:
        raise LabelError(f"{metric}: {names.unknown(metric)}")
    units = {"trace": trace, "turn": trace, "session": session}
    for key in keys:
        level = key.partition(".")[0]
        if level == "trace" and trace and not _TRACE.fullmatch(trace):
            raise LabelError(f"{trace!r} is no trace id: 32 hex digits, as results have it in trace_id")
        if level == "turn" and trace and not trace_of(trace):
            raise LabelError(f"{trace!r} is no turn: write TRACE_ID:SPAN_ID of the span that answers")
        if units.get(level):
            return bounded(units[level], MOST_ID), key
    level = keys[0].partition(".")[0]
    raise LabelError(f"{keys[0]} is about a {level}: fill in {'trace' if level == 'turn' else level}_id")


def metric_to_label(connection: sqlite3.Connection, name: str, names: MetricNames) -> str:
    """Return the key of the metric to label. ``name``: may be empty if unambiguous. Raises ``UserError``."""
    rows = connection.execute(f"SELECT metric, count(*) FROM {people.STANDING} GROUP BY metric")  # noqa: S608
    there = Counter(dict(rows.fetchall()))
    if not there:
        raise UserError(
            "the store has no judged runs to label: set judge.model (docs/guides/judge.md); to reject a finding of "
            "code, use `pandaeval labels dismiss`"
        )
    wanted_ = names.select(name) if name else tuple(there)
    found = [key for key in wanted_ if key in there]
    if len(found) == 1:
        return found[0]
    known = ", ".join(f"{key} ({count})" for key, count in there.most_common())
    if name and not names.select(name):
        raise UserError(f"--metric {name}: {names.unknown(name)}")
    if name and not found:
        raise UserError(f"--metric {name}: no judged runs; there are those of {known}")
    raise UserError(f"set --metric to one of these: {known}")


def draw(connection: sqlite3.Connection, metric: str, agent: str, count: int, now: float) -> Queue:
    """Draw as :func:`select`, and store the probabilities. ``now``: Unix seconds."""
    queue, rows = select(connection, metric, agent, count)
    people.keep_draws(connection, rows, now)
    return queue


def select(connection: sqlite3.Connection, metric: str, agent: str, count: int) -> tuple[Queue, list[DrawnRow]]:
    """Draw at most ``count`` runs. Returns them, and the probabilities to store.

    The same call draws the same runs until a label is added.
    """
    judged = people.judged(connection, metric, agent, picked=False)
    if not judged:
        return Queue([], 0, 0), []
    runs = [run for run, _ in judged]
    is_open = np.asarray([not labelled for _, labelled in judged])
    scores = np.asarray([run.score for run in runs])
    thresholds = np.asarray([_MIDDLE if run.threshold is None else run.threshold for run in runs])
    numbers = numbers_of([f"{metric} {run.unit}" for run in runs])
    wants = wanted(scores, thresholds)
    places, chances = drawn(numbers, wants, is_open, count)
    first = numbers <= chances  # these runs, and runs drawn earlier
    first[places] = True
    rows = [DrawnRow(runs[at].unit, metric, float(chances[at])) for at in np.flatnonzero(first)]
    found = [DrawnRun(runs[at], float(chances[at])) for at in places]
    return Queue(found, int((~is_open).sum()), int(is_open.sum())), rows


def unclear_first(connection: sqlite3.Connection, metric: str, agent: str, count: int) -> Queue:
    """Pick at most ``count`` unlabelled runs: undecided first, then nearest to the threshold. They enter no rate."""
    judged = people.judged(connection, metric, agent)
    waiting = sorted((run for run, labelled in judged if not labelled), key=_certainty)
    found = [DrawnRun(run, people.PICKED) for run in waiting[:count]]
    return Queue(found, len(judged) - len(waiting), len(waiting))


def _certainty(run: JudgedRow) -> tuple[bool, float, str]:
    threshold = _MIDDLE if run.threshold is None else run.threshold
    return run.passed is not None, abs(run.score - threshold), run.unit


def wanted(scores: Values, thresholds: Values) -> Values:
    """Return each run's weight, at least half of the uniform weight; the sum is 1."""
    near = np.exp(-np.abs(scores - thresholds) / _REACH)
    found: Values = 0.5 / len(scores) + 0.5 * near / near.sum()
    return found


def drawn(numbers: Values, wants: Values, is_open: NDArray[np.bool_], count: int) -> tuple[NDArray[np.int64], Values]:
    """Draw at most ``count`` unlabelled runs.

    Returns their indexes by rank, and every run's probability. ``numbers``: of :func:`numbers_of`.
    """
    ranks = numbers / wants
    waiting = np.flatnonzero(is_open)
    waiting = waiting[np.argsort(ranks[waiting], kind="stable")]
    if len(waiting) <= count:
        return waiting, np.ones(len(ranks))
    return waiting[:count], np.minimum(1.0, ranks[waiting[count]] * wants)


def numbers_of(ids: Sequence[str]) -> Values:
    """Hash each ID to a number in (0, 1]."""
    hashes = [hashlib.blake2b(each.encode(), digest_size=8, person=b"label drawing") for each in ids]
    return np.asarray([(int.from_bytes(each.digest(), "big") + 1) / 2.0**64 for each in hashes], np.float64)
