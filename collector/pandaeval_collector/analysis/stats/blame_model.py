"""Which step of a broken run broke it: a conditional logit over its steps.

Each step has a weight, the sum of its features times their coefficients; its probability is the exponential of its
weight over that of all steps of the run, so that one run's probabilities add up to 1 (McFadden 1974). Fitted by
Newton's method with an L2 penalty on features that are standardised.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from importlib import resources
from typing import Any

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]
Row = Mapping[str, float]
_STEPS, _CLOSE_ENOUGH = 30, 1e-7
_RARE = 5
"""A feature that fewer runs have is left out."""
_WEAK = 0.1
"""What adds less to a step's weight is no reason."""
SHIPPED = "blame_weights.json"


@dataclass(frozen=True, slots=True)
class BlameRun:
    """A broken run whose breaking steps are known. ``rows``: its steps' features; ``broke``: indexes of the steps any
    of which is a right answer; ``weight``: how much the run counts in a fit."""

    rows: Sequence[Row]
    broke: frozenset[int]
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class BlameModel:
    """A fitted model. ``sure``: the first step is named from this probability on. ``names``, ``means``, ``scales``,
    ``weights``: of the features; ``source``: what it was fitted on and how."""

    names: tuple[str, ...]
    means: tuple[float, ...]
    scales: tuple[float, ...]
    weights: tuple[float, ...]
    sure: float = 1.0
    source: str = ""

    @property
    def version(self) -> str:
        """8 hex digits that change with anything a probability depends on."""
        return hashlib.blake2b(self.to_json().encode(), digest_size=4).hexdigest()

    def probabilities(self, rows: Sequence[Row]) -> list[float]:
        """Returns the probability of each step of a run; they add up to 1."""
        table = np.asarray([[row.get(name, 0.0) for name in self.names] for row in rows])
        scores = ((table - np.asarray(self.means)) / np.asarray(self.scales)) @ np.asarray(self.weights)
        return [float(each) for each in _softmax(scores)]

    def reasons(self, row: Row) -> list[str]:
        """Returns the features that speak for a step, the weightiest first."""
        parts = sorted(
            (
                (weight * row.get(name, 0.0) / scale, name)
                for name, scale, weight in zip(self.names, self.scales, self.weights, strict=True)
            ),
            reverse=True,
        )
        return [name for part, name in parts if part > _WEAK]

    def to_json(self) -> str:
        """Writes the model as :meth:`of_json` reads it."""
        return json.dumps(asdict(self), indent=1) + "\n"

    @classmethod
    def of_json(cls, text: str) -> BlameModel:
        held: Mapping[str, Any] = json.loads(text)
        numbers = {name: tuple(map(float, held[name])) for name in ("means", "scales", "weights")}
        return cls(tuple(map(str, held["names"])), **numbers, sure=float(held["sure"]), source=str(held["source"]))


@cache
def shipped() -> BlameModel:
    """Reads the model in the package, which ``tests/bench/blame.py --fit`` writes."""
    return BlameModel.of_json((resources.files(__package__) / SHIPPED).read_text(encoding="utf-8"))


def fitted(runs: Sequence[BlameRun], penalty: float) -> BlameModel:
    """Fits a model to these runs. Raises ``ValueError`` without a run."""
    if not runs:
        raise ValueError("there is no run to fit a model on")
    counted: dict[str, int] = {}
    for run in runs:
        for name in {name for row in run.rows for name in row}:
            counted[name] = counted.get(name, 0) + 1
    names = tuple(sorted(name for name, count in counted.items() if count >= _RARE))
    tables = [np.asarray([[row.get(name, 0.0) for name in names] for row in run.rows]) for run in runs]
    whole = np.vstack(tables)
    means, scales = whole.mean(axis=0), whole.std(axis=0)
    scales[scales < 1e-9] = 1.0
    weights = _fit([(table - means) / scales for table in tables], runs, penalty)
    centre, spread, pull = (tuple(round(float(each), 6) for each in some) for some in (means, scales, weights))
    return BlameModel(names, centre, spread, pull)


def _fit(tables: Sequence[Numbers], runs: Sequence[BlameRun], penalty: float) -> Numbers:
    """Returns coefficients, by Newton's method with steps that are halved until they help. The probability of a run is
    that of any of its breaking steps."""
    weights = np.zeros(tables[0].shape[1])
    loss = _loss(tables, runs, penalty, weights)
    for _ in range(_STEPS):
        slope, bend = penalty * weights, penalty * np.eye(len(weights))
        for table, run in zip(tables, runs, strict=True):
            chance = _softmax(table @ weights)
            right = np.zeros(len(table))
            at = [*run.broke]
            right[at] = chance[at] / max(1e-300, chance[at].sum())
            slope += run.weight * (table.T @ (chance - right))
            centred = table - chance @ table
            bend += run.weight * ((centred.T * chance) @ centred)
        step = np.linalg.solve(bend, slope)
        size = 1.0
        while (tried := _loss(tables, runs, penalty, weights - size * step)) > loss and size > 1e-4:
            size /= 2
        weights, better, loss = weights - size * step, loss - tried, tried
        if better < _CLOSE_ENOUGH:
            break
    return weights


def _loss(tables: Sequence[Numbers], runs: Sequence[BlameRun], penalty: float, weights: Numbers) -> float:
    found = penalty / 2 * float(weights @ weights)
    for table, run in zip(tables, runs, strict=True):
        found -= run.weight * float(np.log(max(1e-300, _softmax(table @ weights)[[*run.broke]].sum())))
    return found


def _softmax(scores: Numbers) -> Numbers:
    chance = np.exp(scores - scores.max())
    return np.asarray(chance / chance.sum(), dtype=np.float64)
