"""How far a judge's scores agree with people's verdicts: kappa, rates by threshold, AUROC, each with its interval.

- Cohen's kappa (1960) between the judge's pass or fail and people's: 1 is perfect, 0 what two would reach that guess
  with the same rates of passing. Graded verdicts are compared by kappa with quadratic weights, which for numbers is one
  less the mean squared difference over that of verdicts put together at random (Fleiss and Cohen 1973).
- True and false positive rate by threshold: of what people pass and of what they fail, how much the judge passes.
- The suggested threshold is where their difference (Youden's J, 1950) is largest, which is where the mean of both
  kinds of error is least; of equal ones the nearest to the present one.
- AUROC: how often the judge has a run that people pass before one that they fail, ties count half.

Intervals are percentiles of a bootstrap over sessions (Efron 1979), with seeded draws: the same labels give the same
intervals. Runs are weighed by one over their chance to be labelled.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pandaeval_collector.analysis.stats.corrected_rate import Labelled
from pandaeval_collector.analysis.stats.quantiles import LEVEL

_DRAWS, _MOST_WORK = 1000, 5_000_000
_MOST_THRESHOLDS = 50
Values = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class AgreementEstimate:
    """A value between the ends of its interval; ``None``: it is not defined, or in too many draws."""

    value: float | None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class AtThreshold:
    """What the judge does to runs that people pass (``tpr``) and fail (``fpr``) when it passes scores from here on."""

    threshold: float
    tpr: AgreementEstimate
    fpr: AgreementEstimate


@dataclass(frozen=True, slots=True)
class JudgeAgreement:
    """``n``: runs, of which people pass ``passed`` and fail ``failed``. ``graded``: ``None`` where all verdicts are
    pass or fail."""

    n: int
    passed: int
    failed: int
    threshold: float
    kappa: AgreementEstimate
    graded: AgreementEstimate | None
    auroc: AgreementEstimate
    suggested: AgreementEstimate
    at: tuple[AtThreshold, ...]


def agreement(labelled: Labelled, passes: Values, threshold: float) -> JudgeAgreement:
    """``passes``: 1 where people pass a run, 0 where they fail it; ``labelled.people`` are their grades. Raises
    ``ValueError`` without a run."""
    if not len(passes):
        raise ValueError("nothing to compare")
    draws = _Draws(labelled)
    cuts = _cuts(labelled.judge, threshold)
    counts = _Counts(labelled.judge, passes, cuts)
    tables = counts.tables(draws.weights)
    here = int(np.flatnonzero(cuts == threshold)[0])
    graded = None
    if np.any((labelled.people != 0.0) & (labelled.people != 1.0)):
        graded = _estimate(_quadratic_kappa(draws.weights, labelled.people, labelled.judge))
    tpr, fpr = tables.tpr, tables.fpr
    return JudgeAgreement(
        n=len(passes),
        passed=int(passes.sum()),
        failed=int((1 - passes).sum()),
        threshold=threshold,
        kappa=_estimate(_kappa(tables, here)),
        graded=graded,
        auroc=_estimate(_auroc(draws.weights, labelled.judge, passes)),
        suggested=_estimate(_best(tpr - fpr, cuts, threshold)),
        at=tuple(
            AtThreshold(float(cut), _estimate(tpr[:, at]), _estimate(fpr[:, at])) for at, cut in _shown(cuts, threshold)
        ),
    )


class _Draws:
    """``weights``: a row for the runs as they are, then one for each draw: how often a run is in it, times its
    weight."""

    def __init__(self, labelled: Labelled) -> None:
        clusters = int(labelled.clusters.max()) + 1
        number = max(200, min(_DRAWS, _MOST_WORK // len(labelled.people)))
        draw = np.random.default_rng(20)
        times = np.ones((number + 1, clusters))
        times[1:] = draw.multinomial(clusters, np.full(clusters, 1.0 / clusters), size=number)
        self.weights: Values = times[:, labelled.clusters] * labelled.weights


@dataclass(frozen=True, slots=True)
class _Tables:
    """By draw: people's passes and fails; by draw and threshold: how much of them the judge passes."""

    passed: Values
    failed: Values
    true: Values
    false: Values

    @property
    def tpr(self) -> Values:
        return _ratio(self.true, self.passed[:, None])

    @property
    def fpr(self) -> Values:
        return _ratio(self.false, self.failed[:, None])


class _Counts:
    """Counts by whether the judge passes a run, for each threshold."""

    def __init__(self, judge: Values, passes: Values, cuts: Values) -> None:
        self._over = (judge[:, None] >= cuts[None, :] - 1e-9).astype(np.float64)
        self._passes = passes

    def tables(self, weights: Values) -> _Tables:
        passed, failed = weights * self._passes, weights * (1.0 - self._passes)
        return _Tables(passed.sum(1), failed.sum(1), passed @ self._over, failed @ self._over)


def _kappa(tables: _Tables, at: int) -> Values:
    total = tables.passed + tables.failed
    people, judge = tables.passed / total, (tables.true[:, at] + tables.false[:, at]) / total
    agreed = (tables.true[:, at] + tables.failed - tables.false[:, at]) / total
    chance = people * judge + (1 - people) * (1 - judge)
    return _ratio(agreed - chance, 1 - chance)


def _quadratic_kappa(weights: Values, people: Values, judge: Values) -> Values:
    total = weights.sum(1)
    means = [weights @ each / total for each in (people, judge)]
    squares = [weights @ (each * each) / total for each in (people, judge)]
    apart = weights @ ((people - judge) ** 2) / total
    return 1.0 - _ratio(apart, squares[0] + squares[1] - 2 * means[0] * means[1])


def _auroc(weights: Values, judge: Values, passes: Values) -> Values:
    _, place = np.unique(judge, return_inverse=True)
    scores = int(place.max()) + 1
    wins, pairs = np.empty(len(weights)), np.empty(len(weights))
    for at, row in enumerate(weights):
        passed = np.bincount(place, row * passes, scores)
        failed = np.bincount(place, row * (1 - passes), scores)
        wins[at] = (passed * (np.cumsum(failed) - failed / 2)).sum()
        pairs[at] = passed.sum() * failed.sum()
    return _ratio(wins, pairs)


def _best(gain: Values, cuts: Values, present: float) -> Values:
    """The threshold of the largest gain in each draw; of equal ones the nearest to the present one."""
    nearest = np.argsort(np.abs(cuts - present), kind="stable")
    known = ~np.isnan(gain).any(1)
    found = np.full(len(gain), np.nan)
    found[known] = cuts[nearest][np.argmax(np.round(gain[known][:, nearest], 12), 1)]
    return found


def _cuts(judge: Values, threshold: float) -> Values:
    """Thresholds that tell scores apart: halfway between neighbours, and the present one. Of many scores so many."""
    scores = np.unique(judge)
    if len(scores) > 4 * _MOST_THRESHOLDS:
        scores = np.unique(np.quantile(judge, np.linspace(0.0, 1.0, 4 * _MOST_THRESHOLDS)))
    between = np.round((scores[1:] + scores[:-1]) / 2, 4)
    found: Values = np.unique(np.r_[between, threshold])
    return found


def _shown(cuts: Values, threshold: float) -> list[tuple[int, float]]:
    every = list(enumerate(cuts))
    if len(every) <= _MOST_THRESHOLDS:
        return every
    step = -(-len(every) // _MOST_THRESHOLDS)
    return [each for at, each in enumerate(every) if not at % step or each[1] == threshold]


def _estimate(values: Values) -> AgreementEstimate:
    """The first row is the value, the others are the draws."""
    if np.isnan(values[0]):
        return AgreementEstimate(None)
    draws = values[1:][~np.isnan(values[1:])]
    if len(draws) < 0.9 * (len(values) - 1):
        return AgreementEstimate(float(values[0]))
    low, high = np.quantile(draws, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return AgreementEstimate(float(values[0]), min(float(low), float(values[0])), max(float(high), float(values[0])))


def _ratio(of: Values, by: Values) -> Values:
    """NaN where the divisor is none."""
    found: Values = np.divide(of, by, out=np.full(np.broadcast(of, by).shape, np.nan), where=by > 1e-12)
    return found
