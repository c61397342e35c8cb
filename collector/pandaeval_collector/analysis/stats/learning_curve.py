"""What more labels buy: how well a model does that is fitted on fewer of them, and how sure a rate is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np

from pandaeval_collector.analysis.stats.problem_model import untested
from pandaeval_collector.analysis.stats.separation import NOTHING, Z95, ShareEstimate, auroc

_SIZES = (20, 40, 80, 120, 160, 240, 320, 480, 640)
_DRAWS = 12
_MOST_SHARE = 0.8
"""Of the labels that a model of a curve is fitted on; it is tried on the others."""


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """``auroc``: in the mean over draws, on runs of groups that the model had not seen; ``None`` where there are not
    labels enough to try it. ``half_width``: of the 95 % interval of the rate of bad runs."""

    labels: int
    auroc: float | None
    half_width: float


def drawn_rate(bad: Sequence[bool], chances: Sequence[float]) -> ShareEstimate:
    """The share of bad runs among all that might have been drawn, from those that were, each weighed by one over its
    chance (Hájek's ratio of Horvitz and Thompson's sums); its interval by linearisation."""
    if not bad:
        return NOTHING
    weights = 1.0 / np.asarray(chances, dtype=np.float64)
    values = np.asarray(bad, dtype=np.float64)
    rate = float(weights @ values / weights.sum())
    spread = float((weights * (weights - 1) * (values - rate) ** 2).sum())
    # Runs drawn for sure tell all there is; where no bad or no good run was drawn, the next one may be it.
    half = max(Z95 * sqrt(spread) / float(weights.sum()), 0.0 if weights.max() <= 1.0 else 1.0 / (len(bad) + 2))
    return ShareEstimate(rate, max(0.0, rate - half), min(1.0, rate + half), len(bad))


def learning_curve(
    rows: Sequence[Mapping[str, float]], bad: Sequence[bool], groups: Sequence[str], seed: int = 0
) -> Iterator[CurvePoint]:
    """Points up to twice as many labels as there are; with more than there are, only the rate is foretold."""
    n, share = len(rows), sum(bad) / max(1, len(rows))
    spread = sqrt(max(share * (1 - share), 1 / (n + 2)))
    for labels in sorted({*(size for size in _SIZES if size < 2 * n), n, 2 * n}):
        known = None if labels > _MOST_SHARE * n else _auroc(rows, bad, groups, labels, seed)
        yield CurvePoint(labels, known, Z95 * spread / sqrt(labels))


def _auroc(
    rows: Sequence[Mapping[str, float]], bad: Sequence[bool], groups: Sequence[str], labels: int, seed: int
) -> float | None:
    draw, found = np.random.default_rng(seed), []
    names = sorted(set(groups))
    for _ in range(_DRAWS):
        place = {name: at for at, name in enumerate(draw.permutation(names))}
        order = sorted(range(len(rows)), key=lambda at: place[groups[at]])
        seen, touched = order[:labels], {groups[at] for at in order[:labels]}
        rest = [at for at in order[labels:] if groups[at] not in touched]
        if len({bad[at] for at in seen}) == len({bad[at] for at in rest}) == 2:
            model = untested([rows[at] for at in seen], [bad[at] for at in seen], [groups[at] for at in seen])
            scores = {at: -model.score(rows[at]) for at in rest}
            found.append(
                auroc([scores[at] for at in rest if not bad[at]], [scores[at] for at in rest if bad[at]]).value
            )
    return float(np.mean(found)) if found else None
