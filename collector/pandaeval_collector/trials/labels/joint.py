"""Pass rates by people's labels and several judges at once, or by a judge and the scores that cost nothing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np

from pandaeval_collector.analysis.stats.corrected_rate import LEAST_JOINT, JointRate, Labelled, joint_rate
from pandaeval_collector.store import JudgedRow
from pandaeval_collector.trials.labels.calibration import passes
from pandaeval_otel.wire.labels import HumanLabel

Key = tuple[str, str]
Standing = Mapping[Key, JudgedRow]


@dataclass(frozen=True, slots=True)
class JointPassRate:
    """Of one metric. ``judges``: whose scores are used, models and keys of other metrics; ``n``: labels of drawn runs.
    ``found`` is ``None`` where these are too few."""

    metric: str
    judges: tuple[str, ...]
    n: int
    found: JointRate | None


def joint_pass_rates(
    labels: Iterable[HumanLabel], standings: Sequence[Standing], also: Sequence[str] = ()
) -> list[JointPassRate]:
    """Estimates each metric's rate by several judges. ``standings``: the scores of each judge by unit and metric;
    ``also``: keys of further metrics in the first of them, whose scores of a run are used beside the judges' (a run
    without one counts as their mean)."""
    by_metric: defaultdict[str, defaultdict[str, list[HumanLabel]]] = defaultdict(lambda: defaultdict(list))
    for label in labels:
        by_metric[label.metric][label.unit].append(label)
    found = (_of_metric(metric, said, standings, also) for metric, said in sorted(by_metric.items()))
    return [each for each in found if each is not None]


def _of_metric(
    metric: str, said: Mapping[str, list[HumanLabel]], standings: Sequence[Standing], also: Sequence[str]
) -> JointPassRate | None:
    judging = [each for each in standings if any(key == metric for _, key in each)]
    if not judging or len(judging) + len(also) < 2:
        return None
    units = sorted(
        {unit for unit, key in judging[0] if key == metric and all((unit, metric) in each for each in judging)}
    )
    rows = [judging[0][unit, metric] for unit in units]
    columns = [[each[unit, metric].score for unit in units] for each in judging]
    columns += [_beside([judging[0].get((unit, key)) for unit in units]) for key in also]
    names = (*(next(row.model for (_, key), row in each.items() if key == metric) for each in judging), *also)
    known = [at for at, unit in enumerate(units) if unit in said]
    chances = {at: _chance(said[units[at]]) for at in known}
    drawn = known if len(known) == len(units) else [at for at in known if chances[at] is not None]
    if len(drawn) < LEAST_JOINT:
        return JointPassRate(metric, names, len(drawn), None)
    weights = np.asarray([1.0 / row.probability for row in rows])
    scores = np.asarray(columns).T
    labelled = Labelled.of(
        [fmean(passes(label, rows[at].threshold) for label in said[units[at]]) for at in drawn],
        [0.0] * len(drawn),
        [weights[at] / (1.0 if drawn is known else chances[at] or 1.0) for at in drawn],
        [rows[at].session or rows[at].unit for at in drawn],
    )
    means = weights @ scores / weights.sum()
    return JointPassRate(metric, names, len(drawn), joint_rate(labelled, scores[drawn], means.tolist(), _size(rows)))


def _beside(rows: Sequence[JudgedRow | None]) -> list[float]:
    known = [row.score for row in rows if row is not None]
    mean = fmean(known) if known else 0.0
    return [mean if row is None else row.score for row in rows]


def _chance(labels: Iterable[HumanLabel]) -> float | None:
    return max((each.probability for each in labels if each.probability is not None), default=None)


def _size(rows: Sequence[JudgedRow]) -> float:
    """How many independent runs of equal weight would know as much (Kish)."""
    sums: defaultdict[str, float] = defaultdict(float)
    for row in rows:
        sums[row.session or row.unit] += 1.0 / row.probability
    return sum(sums.values()) ** 2 / sum(each * each for each in sums.values())
