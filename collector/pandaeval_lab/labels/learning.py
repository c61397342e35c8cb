"""Learns problem scores from labels: gathers runs that have one, fits a model for each agent, keeps it in a file.

A problem score is a logistic regression on few, named features.
Fit: L2-penalised logistic regression on standardised features, by Newton's method (Hastie, Tibshirani and Friedman
2009, 4.4); the penalty is chosen by cross-validation within the labels. Probabilities are calibrated by Platt's
scaling (1999) on scores of units that the model had not seen. What is told of a model is measured on such scores, too:
nested cross-validation, by groups (sessions of one task or user stay together).
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from math import nan, sqrt
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pandaeval_collector.analysis.stats.learned import FORMAT, ProblemModel, Row, ShareEstimate, sigmoid
from pandaeval_collector.analysis.stats.problem_features import CALLS, LENGTH, RULES, Course, session_features
from pandaeval_collector.base.errors import UserError
from pandaeval_lab.labels.calibration import word_of_most
from pandaeval_lab.labels.files import save
from pandaeval_otel.wire.labels import HumanLabel

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

# How well a score tells good units from bad ones, with intervals: closed forms, so that nothing is drawn at random.
Numbers = NDArray[np.float64]
Z95 = 1.959963984540054


NOTHING = ShareEstimate(nan, nan, nan, 0)


def auroc(good: Sequence[float], bad: Sequence[float]) -> ShareEstimate:
    """Returns the share of pairs (good, bad) in which the good unit scores higher, ties counting half; DeLong's
    interval. Where all pairs are in order the interval has no width, which says nothing about how few there are."""
    return auroc_within([(good, bad)])


def auroc_within(strata: Sequence[tuple[Sequence[float], Sequence[float]]]) -> ShareEstimate:
    """Computes the AUROC over pairs from one stratum each, so that what the strata differ in explains nothing."""
    parts = [(good, bad, len(good) * len(bad)) for good, bad in strata if good and bad]
    pairs = sum(weight for _, _, weight in parts)
    if not pairs:
        return NOTHING
    value = variance = 0.0
    for good, bad, weight in parts:
        higher, lower = np.asarray(good, dtype=np.float64), np.asarray(bad, dtype=np.float64)
        of_good, of_bad = _placed(higher, lower), _placed(lower, higher)
        value += float(of_good.mean()) * weight / pairs
        variance += (_spread(of_good) + _spread(of_bad)) * (weight / pairs) ** 2
    half = Z95 * sqrt(max(0.0, variance))
    n = sum(len(good) + len(bad) for good, bad, _ in parts)
    return ShareEstimate(value, max(0.0, value - half), min(1.0, value + half), n)


def thirds(lengths: Sequence[float]) -> list[int]:
    """Returns the third (0, 1 or 2) that each length belongs to; equal lengths stay together."""
    if not len(lengths):
        return []
    low, high = np.percentile(np.asarray(lengths, dtype=np.float64), [100 / 3, 200 / 3])
    return [int(length > low) + int(length > high) for length in lengths]


def _placed(values: Numbers, among: Numbers) -> Numbers:
    """Returns for each value the share of ``among`` below it, ties counting half."""
    ordered = np.sort(among)
    below = np.searchsorted(ordered, values, "left") + np.searchsorted(ordered, values, "right")
    return np.asarray(below / (2 * len(ordered)), dtype=np.float64)


def _spread(placed: Numbers) -> float:
    return float(placed.var(ddof=1)) / len(placed) if len(placed) > 1 else 0.25


LEAST_LABELS, LEAST_OF_A_KIND = 40, 8
"""The least number of labelled units for a model, and of good and of bad ones among them."""
FOLDS = 8
PENALTIES = (10.0, 30.0, 100.0)
_RARE = 5
"""A tool that was called in fewer units is no feature."""
_STEPS, _CLOSE_ENOUGH = 50, 1e-8


@dataclass(frozen=True, slots=True)
class HeldOutFigures:
    """How well a model finds problems in units that it had not seen. ``same_length``: among units of one third by
    number of steps; ``baseline``: the best feature of length alone, and its name; ``calibration_error``: mean distance
    between stated and observed probability, 0..1, over bins of equal size."""

    labels: int
    bad: int
    auroc: ShareEstimate | None
    same_length: ShareEstimate | None
    baseline: float
    baseline_name: str
    calibration_error: float

    @property
    def refusal(self) -> str:
        """Why no model should be used; ``""`` where one should."""
        if self.same_length is None:
            return f"{self.labels} labels ({self.bad} bad): it takes {LEAST_LABELS}, {LEAST_OF_A_KIND} of either kind"
        if self.same_length.low <= max(0.5, self.baseline):
            return (
                f"nothing certain is learned: among runs of equal length it is right in {self.same_length}, and "
                f"{self.baseline_name} alone in {self.baseline:.2f}: label more runs"
            )
        return ""


def learn(
    rows: Sequence[Row], bad: Sequence[bool], groups: Sequence[str], seed: int = 0
) -> tuple[ProblemModel | None, HeldOutFigures]:
    """Fits a model to all rows, and measures such a model on rows that it has not seen; returns no model where there
    are too few rows. ``groups``: rows of one group are never on both sides. :attr:`HeldOutFigures.refusal` tells
    whether to use the model."""
    y = np.asarray(bad, dtype=np.float64)
    if len(y) < LEAST_LABELS or min(y.sum(), len(y) - y.sum()) < LEAST_OF_A_KIND:
        return None, HeldOutFigures(len(y), int(y.sum()), None, None, 0.5, "", 1.0)
    folds = _folds(groups, y, seed)
    unseen = np.empty(len(y))
    for fold in range(FOLDS):
        out = folds == fold
        if out.any():
            kept = [at for at in range(len(y)) if not out[at]]
            model = fitted([rows[at] for at in kept], y[kept], [groups[at] for at in kept], seed)
            unseen[out] = [model.score(rows[at]) for at in range(len(y)) if out[at]]
    slope, offset = _platt(unseen, y)
    scaled = replace(fitted(rows, y, groups, seed), slope=slope, offset=offset)
    return scaled, _evidence(rows, y, unseen, _cross_scaled(unseen, y, folds))


def _cross_scaled(unseen: Numbers, y: Numbers, folds: NDArray[np.int64]) -> Numbers:
    """Returns the probabilities of the unseen scores, scaled by the other folds."""
    found = np.empty(len(y))
    for fold in range(FOLDS):
        out = folds == fold
        slope, offset = _platt(unseen[~out], y[~out])
        found[out] = sigmoid(slope * unseen[out] + offset)
    return found


def _evidence(rows: Sequence[Row], y: Numbers, unseen: Numbers, probability: Numbers) -> HeldOutFigures:
    strata = thirds([row["spans"] for row in rows])
    length = {name: _same_length([row[name] for row in rows], y, strata).value for name in LENGTH}
    best = max(length, key=lambda name: abs(length[name] - 0.5))
    return HeldOutFigures(
        labels=len(y),
        bad=int(y.sum()),
        auroc=auroc((-unseen[y == 0]).tolist(), (-unseen[y == 1]).tolist()),
        same_length=_same_length(unseen, y, strata),
        baseline=max(length[best], 1 - length[best]),
        baseline_name=best,
        calibration_error=calibration_error(probability, y),
    )


def _same_length(values: Sequence[float] | Numbers, y: Numbers, strata: Sequence[int]) -> ShareEstimate:
    scores, third = -np.asarray(values, dtype=np.float64), np.asarray(strata)
    return auroc_within(
        [
            (scores[(y == 0) & (third == part)].tolist(), scores[(y == 1) & (third == part)].tolist())
            for part in range(3)
        ]
    )


def calibration_error(probability: Numbers, y: Numbers) -> float:
    """Returns the mean distance of stated and observed probability, over up to ten bins of equal size."""
    order = np.argsort(probability, kind="stable")
    bins = np.array_split(order, max(1, min(10, len(y) // 20)))
    return float(sum(abs(probability[at].mean() - y[at].mean()) * len(at) for at in bins) / len(y))


def fitted(rows: Sequence[Row], y: Numbers, groups: Sequence[str], seed: int) -> ProblemModel:
    """Fits a model without scaling, with the penalty that does best within these rows."""
    names = _names(rows)
    table = np.asarray([[row.get(name, 0.0) for name in names] for row in rows])
    means, scales = table.mean(axis=0), table.std(axis=0)
    scales[scales == 0.0] = 1.0
    table = (table - means) / scales
    weights = _logistic(table, y, _penalty(table, y, _folds(groups, y, seed + 1)))
    centre, spread, pull = (tuple(map(float, each)) for each in (means, scales, weights[1:]))
    return ProblemModel(names, centre, spread, pull, float(weights[0]), 1.0, 0.0, float(y.mean()))


def _names(rows: Sequence[Row]) -> tuple[str, ...]:
    """Returns the features that all rows have, and those of tools called in neither few rows nor nearly all."""
    counted: dict[str, int] = {}
    for row in rows:
        for name in row:
            counted[name] = counted.get(name, 0) + 1
    tools = (n for n, count in counted.items() if n.startswith(CALLS) and _RARE <= count <= len(rows) - _RARE)
    return (*(name for name in rows[0] if not name.startswith(CALLS)), *sorted(tools))


def _penalty(table: Numbers, y: Numbers, folds: NDArray[np.int64]) -> float:
    losses = {}
    for penalty in PENALTIES:
        loss = 0.0
        for fold in range(FOLDS):
            out = folds == fold
            if out.any() and 0 < y[~out].sum() < len(y[~out]):
                weights = _logistic(table[~out], y[~out], penalty)
                # Of one row so much counts at most: a single one far from all others must not choose the penalty.
                chance = np.clip(sigmoid(weights[0] + table[out] @ weights[1:]), 1e-6, 1 - 1e-6)
                loss -= float(np.sum(y[out] * np.log(chance) + (1 - y[out]) * np.log(1 - chance)))
        losses[penalty] = loss
    return min(losses, key=losses.__getitem__)


def _logistic(table: Numbers, y: Numbers, penalty: float) -> Numbers:
    """Returns bias and weights; the bias is not penalised."""
    x = np.hstack([np.ones((len(table), 1)), table])
    ridge = np.diag([1e-6] + [penalty] * table.shape[1])
    weights = np.zeros(x.shape[1])
    for _ in range(_STEPS):
        chance = sigmoid(x @ weights)
        slope = x.T @ (chance - y) + ridge @ weights
        bend = (x.T * np.maximum(chance * (1 - chance), 1e-9)) @ x + ridge
        step = np.linalg.solve(bend, slope)
        weights -= step
        if np.abs(step).max() < _CLOSE_ENOUGH:
            break
    return weights


def _platt(scores: Numbers, y: Numbers) -> tuple[float, float]:
    """Returns slope (never negative) and offset of Platt's scaling, with his targets, which never reach 0 or 1."""
    good, bad = float((y == 0).sum()), float((y == 1).sum())
    target = np.where(y == 1, (bad + 1) / (bad + 2), 1 / (good + 2))
    weights = _logistic(scores[:, None], target, 1e-3)
    return max(0.0, float(weights[1])), float(weights[0])


def _folds(groups: Sequence[str], y: Numbers, seed: int) -> NDArray[np.int64]:
    """Assigns a fold to each row: groups stay whole, the largest first to the fold with the fewest rows of the rarer
    kind, then with the fewest rows."""
    draw = np.random.default_rng(seed)
    by_group: dict[str, list[int]] = {}
    for at, group in enumerate(groups):
        by_group.setdefault(group, []).append(at)
    rarer = 1.0 if y.sum() * 2 <= len(y) else 0.0
    found = np.zeros(len(y), dtype=np.int64)
    rare, size = [0] * FOLDS, [0] * FOLDS
    order = draw.permutation(len(by_group))
    members = list(by_group.values())
    for at in sorted(order, key=lambda at: -len(members[at])):
        fold = min(range(FOLDS), key=lambda each: (rare[each], size[each]))
        found[members[at]] = fold
        rare[fold] += int((y[members[at]] == rarer).sum())
        size[fold] += len(members[at])
    return found


PEOPLE = "people"
LEVELS = ("session", "trace")
_NONE = {"value": None}


@dataclass(frozen=True, slots=True)
class RunVerdict:
    """Whether a unit (a session, else a trace) was bad, by whose word, and about which metric (``level.name``)."""

    unit: str
    metric: str
    source: str
    bad: bool

    @property
    def level(self) -> str:
        return self.metric.partition(".")[0]


@dataclass(slots=True)
class LabelledRuns:
    """The runs of one agent at one level with verdicts of one source about one metric. ``groups``: the user of each
    run, whose runs belong together. At level ``step`` they are steps, and a group is the run that they are of."""

    level: str
    agent: str
    source: str
    metric: str
    rows: list[Mapping[str, float]] = field(default_factory=list)
    bad: list[bool] = field(default_factory=list)
    groups: list[str] = field(default_factory=list)


def of_people(labels: Iterable[HumanLabel]) -> Iterator[RunVerdict]:
    """Yields one verdict for each run and metric: that of the majority of labels. Leaves out ties."""
    for (unit, metric), (passed, _) in word_of_most(labels).items():
        yield RunVerdict(unit, metric, PEOPLE, not passed)


def of_judge(connection: sqlite3.Connection, metric: str) -> Iterator[RunVerdict]:
    """Yields a judge's latest verdict on each unit under one metric (``level.name``)."""
    rows = connection.execute(
        "SELECT unit, model, passed, max(no) FROM judged WHERE metric = ? AND passed IS NOT NULL GROUP BY unit",
        (metric,),
    )
    for unit, model, passed, _ in rows:
        yield RunVerdict(unit, metric, model, not passed)


def labelled_runs(
    facts_of: Callable[[str, str], Sequence[Mapping[str, Any]]],
    users: Mapping[str, str],
    verdicts: Iterable[RunVerdict],
    agent: str | None = None,
) -> list[LabelledRuns]:
    """Gathers the runs that have verdicts; for each agent and level, under the metric with the most. Leaves out runs
    that are unknown. ``facts_of``: of a level and a unit, what its traces left, in order (see
    :class:`pandaeval_collector.pipeline.line.facts.TraceFacts`); ``users``: by unit, where they are known; ``agent``:
    only runs of this agent."""
    found: dict[tuple[str, str, str, str], LabelledRuns] = {}
    for verdict in verdicts:
        if verdict.level not in LEVELS:
            continue
        facts = facts_of(verdict.level, verdict.unit)
        courses = [course for each in facts if (course := Course.unpack(each.get("course"))) is not None]
        if not facts or len(courses) < len(facts) or agent not in (None, facts[-1]["agent"]):
            continue
        key = verdict.level, facts[-1]["agent"], verdict.source, verdict.metric
        its = found.setdefault(key, LabelledRuns(*key))
        signals = [each["signals"] for each in facts] if verdict.level == "session" else []
        scores = [
            {name: s[name]["value"] for name in RULES if s.get(name, _NONE)["value"] is not None} for s in signals
        ]
        its.rows.append(session_features(courses, scores))
        its.bad.append(verdict.bad)
        its.groups.append(users.get(verdict.unit) or verdict.unit)
    best: dict[tuple[str, str], LabelledRuns] = {}
    for its in sorted(found.values(), key=lambda its: -len(its.rows)):
        best.setdefault((its.level, its.agent), its)
    return [best[key] for key in sorted(best)]


_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")


def learned(runs: LabelledRuns) -> tuple[ProblemModel | None, HeldOutFigures]:
    """Fits a model to the runs, and measures it on runs held out; no model where :attr:`HeldOutFigures.refusal` says
    why."""
    model, evidence = learn(runs.rows, runs.bad, runs.groups)
    return (None if evidence.refusal else model), evidence


def keep(folder: Path, runs: LabelledRuns, model: ProblemModel, evidence: DataclassInstance) -> Path:
    """Writes the model in place of an earlier one of its agent. Raises ``UserError`` where it cannot be written."""
    path = folder / f"{runs.level}-{_UNSAFE.sub('_', runs.agent)[:80] or 'unnamed'}.json"
    about = {name: getattr(runs, name) for name in ("level", "agent", "source", "metric")}
    held = {"format": FORMAT, "version": model.version, **about, "model": asdict(model), "evidence": asdict(evidence)}
    beside = path.with_suffix(".new")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        save(beside, json.dumps(held, indent=1) + "\n")
        beside.replace(path)
    except OSError as error:
        raise UserError(f"{path} cannot be written: {error.strerror or error}") from error
    return path
