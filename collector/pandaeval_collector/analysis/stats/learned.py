"""What was learned of one agent from labels, as a file of JSON."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray

from pandaeval_collector.analysis.stats.problem_model import HeldOutFigures, ProblemModel, ShareEstimate

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
    hashes = [hashlib.blake2b(each.encode(), digest_size=8, person=b"label drawing") for each in ids]
    return np.asarray([(int.from_bytes(each.digest(), "big") + 1) / 2.0**64 for each in hashes], np.float64)


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
        return hashlib.blake2b(json.dumps(asdict(self.model)).encode(), digest_size=4).hexdigest()

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
