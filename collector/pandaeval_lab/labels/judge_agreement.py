"""Agreement of judge scores with human verdicts: kappa, rates by threshold and AUROC, with intervals.

- Cohen's kappa (1960) of pass and fail: 1 is perfect, 0 chance level.
- True and false positive rate: the judge's pass share of runs that people pass, and fail.
- Suggested threshold: maximum difference of both (Youden's J, 1950); of ties the nearest to the current.
- AUROC: how often a passed run ranks above a failed run; ties count half.

Rates have Wilson's interval with effective sample size and Student's quantile. AUROC's variance comes from placements
per session (DeLong 1988, Obuchowski 1997). Kappa uses the jackknife over sessions (Tukey 1958) on Fisher's scale. Runs
are weighted by inverse labelling probability.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pandaeval_collector.analysis.stats.corrected_rate import Labelled, label_rate
from pandaeval_collector.analysis.stats.quantiles import t_quantile, wilson

_MOST_THRESHOLDS = 50
_NOTHING = 1e-12
"""A variance that is only rounding."""
Values = NDArray[np.float64]
_LEAST = 3
"""Sessions below which there is no interval."""


def jackknifed(
    columns: Values, clusters: NDArray[np.int64], of: Callable[[Values], Values]
) -> tuple[float | None, float | None, float | None]:
    """Return a measure in -1..1 with its interval, ``None`` if undefined.

    ``columns``: each run's contribution to each sum. ``of``: computes the measure from sums (NaN if undefined).
    """
    parts = np.asarray([np.bincount(clusters, weights=each) for each in columns])
    sums = parts.sum(1)
    value = float(of(sums[:, None])[0])
    if math.isnan(value):
        return None, None, None
    n, runs = parts.shape[1], columns.shape[1]
    if n < _LEAST:
        return value, None, None
    without = of(sums[:, None] - parts)
    if np.isnan(without).any():
        return value, None, None
    scaled = np.arctanh(np.clip(np.r_[value, without], 1.0 / runs - 1.0, 1.0 - 1.0 / runs))
    error, quantile = math.sqrt((n - 1) / n * float(((scaled[1:] - scaled[1:].mean()) ** 2).sum())), t_quantile(n - 2.0)
    if error > 1e-9:
        half = quantile * max(error, 1.0 / math.sqrt(runs))
        low, high = math.tanh(scaled[0] - half), math.tanh(scaled[0] + half)
    else:
        low, high = (2.0 * end - 1.0 for end in wilson((value + 1.0) / 2.0, n, quantile))
    return value, min(low, value), max(high, value)


@dataclass(frozen=True, slots=True)
class AgreementEstimate:
    """A value with its interval; ``None`` if undefined."""

    value: float | None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class JudgeAgreement:
    """Agreement on ``n`` runs. ``tpr``, ``fpr``: the judge's pass share of runs that people pass, or fail."""

    n: int
    passed: int
    failed: int
    threshold: float
    kappa: AgreementEstimate
    auroc: AgreementEstimate
    suggested: AgreementEstimate
    tpr: AgreementEstimate
    fpr: AgreementEstimate


def agreement(labelled: Labelled, passes: Values, threshold: float) -> JudgeAgreement:
    """Measure the agreement. ``passes``: 1 if people pass a run, else 0. Raises ``ValueError`` without a run."""
    if not len(passes):
        raise ValueError("nothing to compare")
    cuts = _cuts(labelled.judge, threshold)
    over = (labelled.judge[:, None] >= cuts[None, :] - 1e-9).astype(np.float64)
    judge_passes = over[:, int(np.flatnonzero(cuts == threshold)[0])]
    weights = labelled.weights / labelled.weights.sum()
    yes_no = [weights, weights * passes, weights * judge_passes, weights * passes * judge_passes]
    return JudgeAgreement(
        n=len(passes),
        passed=int(passes.sum()),
        failed=int((1 - passes).sum()),
        threshold=threshold,
        kappa=AgreementEstimate(*jackknifed(np.asarray(yes_no), labelled.clusters, _kappa)),
        auroc=_auroc(labelled, passes),
        suggested=AgreementEstimate(_suggested(labelled, passes, over, cuts, threshold)),
        tpr=_rate(labelled, judge_passes, passes),
        fpr=_rate(labelled, judge_passes, 1.0 - passes),
    )


def _kappa(sums: Values) -> Values:
    total, people, judge, both = sums
    agreed = total + 2 * both - people - judge
    chance = (people * judge + (total - people) * (total - judge)) / total
    return _ratio(agreed - chance, total - chance)


def _rate(labelled: Labelled, over: Values, of: Values) -> AgreementEstimate:
    kept = of > 0.0
    if not kept.any():
        return AgreementEstimate(None)
    part = Labelled.of(over[kept], labelled.judge[kept], labelled.weights[kept], labelled.clusters[kept].tolist())  # type: ignore[arg-type]
    if len(part.people) < 2:
        return AgreementEstimate(float(part.people[0]))
    found = label_rate(part)
    return AgreementEstimate(found.value, found.low, found.high)


def _auroc(labelled: Labelled, passes: Values) -> AgreementEstimate:
    good, bad = labelled.weights * passes, labelled.weights * (1.0 - passes)
    if not good.any() or not bad.any():
        return AgreementEstimate(None)
    good, bad = good / good.sum(), bad / bad.sum()
    below = _share_below(labelled.judge, bad)
    value = min(1.0, float((good * below).sum()))
    parts = [
        np.bincount(labelled.clusters, weights=weighed * (placed - value))
        for weighed, placed in ((good, below), (bad, 1.0 - _share_below(labelled.judge, good)))
    ]
    sizes = [1.0 / float((np.bincount(labelled.clusters, weights=each) ** 2).sum()) for each in (good, bad)]
    variance = float(((parts[0] + parts[1]) ** 2).sum())
    variance += sum(float((part**2).sum()) / max(1.0, n - 1.0) for part, n in zip(parts, sizes, strict=True))
    least = min(sizes)
    if least < 2.0:
        return AgreementEstimate(value)
    n = value * (1.0 - value) / variance if variance > _NOTHING else least
    low, high = wilson(value, n, t_quantile(least - 1.0))
    return AgreementEstimate(value, min(low, value), max(high, value))


def _share_below(judge: Values, weights: Values) -> Values:
    _, place = np.unique(judge, return_inverse=True)
    at = np.bincount(place, weights=weights)
    found: Values = (np.cumsum(at) - at / 2)[place]
    return found


def _suggested(labelled: Labelled, passes: Values, over: Values, cuts: Values, present: float) -> float | None:
    good, bad = labelled.weights * passes, labelled.weights * (1.0 - passes)
    if not good.any() or not bad.any():
        return None
    gain = good @ over / good.sum() - bad @ over / bad.sum()
    nearest = np.argsort(np.abs(cuts - present), kind="stable")
    return float(cuts[nearest][np.argmax(np.round(gain[nearest], 12))])


def _cuts(judge: Values, threshold: float) -> Values:
    scores = np.unique(judge)
    if len(scores) > 4 * _MOST_THRESHOLDS:
        scores = np.unique(np.quantile(judge, np.linspace(0.0, 1.0, 4 * _MOST_THRESHOLDS)))
    between = np.round((scores[1:] + scores[:-1]) / 2, 4)
    found: Values = np.unique(np.r_[between, threshold])
    return found


def _ratio(of: Values, by: Values) -> Values:
    found: Values = np.divide(of, by, out=np.full(of.shape, np.nan), where=by > _NOTHING)
    return found
