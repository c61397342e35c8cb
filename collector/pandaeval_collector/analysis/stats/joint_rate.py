"""A pass rate by labels and several judges at once.

Each judge's scores tell something of people's verdicts; the combination that tells most (weighted least squares over
the labelled runs) is taken for one judge, by whom the rate is corrected as by any: the multiple regression estimator
(Cochran 1977, chapter 7), power tuning over several predictions (Shan et al. 2025, arXiv 2509.21707). Each judge that
the combination was fitted by costs a degree of freedom.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pandaeval_collector.analysis.stats.corrected_rate import (
    CorrectedRate,
    Labelled,
    Scores,
    corrected_rate,
    label_rate,
)

LEAST_JOINT = 100
"""With fewer labels a combination of judges is refused: its interval would not hold what it promises."""
WORTH_IT = 1.1
"""A judge that makes each label worth less than this is not worth its money."""
Values = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class JointRate:
    """``rate``: by labels and all judges; ``alone``: by the labels without a judge. ``each``: what each judge adds to
    the others, as a factor on the number of labels."""

    rate: CorrectedRate
    alone: CorrectedRate
    each: tuple[float, ...]

    @property
    def worth(self) -> float:
        """The factor on the number of labels by which labels alone would make an interval as narrow."""
        return _worth(self.alone, self.rate)


def joint_rate(labelled: Labelled, scores: Values, means: Sequence[float], n: float) -> JointRate:
    """Estimates the rate. ``labelled``: people's verdicts (its ``judge`` is not used); ``scores``: of the same runs, a
    column for each judge; ``means``: of all ``n`` runs. Raises ``ValueError`` for fewer labels than
    :data:`LEAST_JOINT`."""
    if len(labelled.people) < LEAST_JOINT:
        raise ValueError(f"several judges take {LEAST_JOINT} labels, and there are {len(labelled.people)}")
    alone = label_rate(labelled)
    overall = np.asarray(means, np.float64)
    every = [*range(scores.shape[1])]
    rate = _rate(labelled, scores, overall, n, every)
    others = ([each for each in every if each != judge] for judge in every)
    each = tuple(_worth(_rate(labelled, scores, overall, n, rest) if rest else alone, rate) for rest in others)
    return JointRate(rate, alone, each)


def _rate(labelled: Labelled, scores: Values, means: Values, n: float, judges: list[int]) -> CorrectedRate:
    of, overall = scores[:, judges], means[judges]
    weights = labelled.weights / labelled.weights.sum()
    apart = of - weights @ of
    root = np.sqrt(weights)
    slopes, *_ = np.linalg.lstsq(
        root[:, None] * apart, root * (labelled.people - weights @ labelled.people), rcond=1e-9
    )
    one = Labelled(labelled.people, of @ slopes, labelled.weights, labelled.clusters)
    return corrected_rate(one, Scores(float(overall @ slopes), n), judges=len(judges))


def _worth(before: CorrectedRate, after: CorrectedRate) -> float:
    return (before.width / after.width) ** 2 if after.width else 1.0
