"""What was learned of one agent from labels, as a file of JSON."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from pandaeval_collector.analysis.stats.problem_model import (
    NOTHING,
    Z95,
    HeldOutFigures,
    ProblemModel,
    ShareEstimate,
    auroc,
    untested,
)

# What more labels buy: how well a model does that is fitted on fewer of them, and how sure a rate is.
_SIZES = (20, 40, 80, 120, 160, 240, 320, 480, 640)
_DRAWS = 12
_MOST_SHARE = 0.8
"""The largest share of the labels that a curve's model is fitted on; it is tried on the others."""


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """A point of a learning curve. ``auroc``: mean over draws, on runs of groups that the model had not seen; ``None``
    with too few labels. ``half_width``: of the 95 % interval of the rate of bad runs."""

    labels: int
    auroc: float | None
    half_width: float


def drawn_rate(bad: Sequence[bool], chances: Sequence[float]) -> ShareEstimate:
    """Estimates the share of bad runs among all that might have been drawn, from those that were, each weighed by one
    over its chance (Hájek's ratio of Horvitz and Thompson's sums); its interval by linearisation."""
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
    """Yields points up to twice the present number of labels; beyond it, only the rate's interval is predicted."""
    n, share = len(rows), sum(bad) / len(rows)
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


# Which runs people should look at next: half of the effort at random, half near the judge's threshold, each run with a
# known chance.
#
# Runs are ranked by a number that follows from their id, divided by how much each is wanted; the first ones are drawn
# (sequential Poisson sampling, Ohlsson 1998; priority sampling, Duffield, Lund and Thorup 2007). The chance of a run is
# how much it is wanted times the rank of the first that was not drawn, and estimates weigh by one over it. Who is drawn
# does not depend on who asks, nor on what was drawn before: a later, larger draw holds every earlier one.
_REACH = 0.15
"""How far from the threshold the interest in a run falls to a third."""

Values = NDArray[np.float64]


def wanted(scores: Values, thresholds: Values) -> Values:
    """Returns how much each run is wanted; the sum is 1. No run is wanted less than half as much as by chance alone."""
    near = np.exp(-np.abs(scores - thresholds) / _REACH)
    found: Values = 0.5 / len(scores) + 0.5 * near / near.sum()
    return found


def drawn(numbers: Values, wants: Values, is_open: NDArray[np.bool_], count: int) -> tuple[NDArray[np.int64], Values]:
    """Draws at most ``count`` of the unlabelled runs: returns their indexes, the most wanted first, and every run's
    chance to be drawn so far. ``numbers``: of :func:`numbers_of`."""
    ranks = numbers / wants
    waiting = np.flatnonzero(is_open)
    waiting = waiting[np.argsort(ranks[waiting], kind="stable")]
    if len(waiting) <= count:
        return waiting, np.ones(len(ranks))
    return waiting[:count], np.minimum(1.0, ranks[waiting[count]] * wants)


def numbers_of(ids: Sequence[str]) -> Values:
    """Hashes each id to a number in (0, 1], the same on every machine."""
    return np.asarray([number(each) for each in ids], np.float64)


def number(id_: str) -> float:
    """Hashes one id, see :func:`numbers_of`."""
    digest = hashlib.blake2b(id_.encode(), digest_size=8, person=b"label drawing").digest()
    return (int.from_bytes(digest, "big") + 1) / 2.0**64


FORMAT = 1


@dataclass(frozen=True, slots=True)
class LearnedModel:
    """A problem model with its origin. ``level``: ``session``, or ``trace`` for traces without one; ``source``: whose
    verdicts, ``people`` or a judge's model; ``metric``: the key of the metric that they are about."""

    level: str
    agent: str
    source: str
    metric: str
    model: ProblemModel
    evidence: HeldOutFigures

    @property
    def version(self) -> str:
        """8 hex digits that change with anything a probability depends on."""
        return hashlib.blake2b(json.dumps(self.model.to_dict()).encode(), digest_size=4).hexdigest()

    def to_json(self) -> str:
        """Writes the model as :meth:`of_json` reads it."""
        held = {"format": FORMAT, "version": self.version, **asdict(self)}
        return json.dumps(held, indent=1) + "\n"

    @classmethod
    def of_json(cls, text: str | bytes) -> LearnedModel:
        """Reads a model. Raises ``ValueError`` for what :meth:`to_json` did not write."""
        try:
            held = json.loads(text)
            if held["format"] != FORMAT:
                raise ValueError(f"it has format {held['format']}, and this version reads {FORMAT}: learn anew")
            names = {name: str(held[name]) for name in ("level", "agent", "source", "metric")}
            figures = dict(held["evidence"])
            for name in ("auroc", "same_length"):
                figures[name] = None if figures[name] is None else ShareEstimate(**figures[name])
            return cls(**names, model=ProblemModel.of_dict(held["model"]), evidence=HeldOutFigures(**figures))
        except (KeyError, TypeError, RecursionError) as error:
            raise ValueError(f"no model that `pandaeval learn` wrote ({error})") from error
