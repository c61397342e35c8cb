"""What was learned of one agent from labels: a logistic regression on few, named features, as ``pandaeval learn`` wrote
it to a file of JSON."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray

from pandaeval_collector.analysis.stats.problem_features import told

FORMAT = 1
STEP = "step"
"""The level of models that tell which step of a run broke it."""
_MOST_REASONS = 3
_WEAK = 0.05
"""A contribution to the log-odds below this is no reason."""
Numbers = NDArray[np.float64]
Row = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class ShareEstimate:
    """A value in 0..1 with its 95 % interval, from ``n`` units; ``nan`` without any."""

    value: float
    low: float
    high: float
    n: int

    def __str__(self) -> str:
        if self.value != self.value:
            return "–"
        return f"{self.value:.2f} [{self.low:.2f}, {self.high:.2f}]"


@dataclass(frozen=True, slots=True)
class ProblemModel:
    """A fitted model. ``names``, ``means``, ``scales`` and ``weights``: of the features; ``slope`` and ``offset``:
    Platt's scaling; ``rate``: share of bad units among the labels."""

    names: tuple[str, ...]
    means: tuple[float, ...]
    scales: tuple[float, ...]
    weights: tuple[float, ...]
    bias: float
    slope: float
    offset: float
    rate: float

    def score(self, row: Row) -> float:
        """Returns the log-odds of a problem as fitted, before Platt's scaling."""
        return self.bias + sum(self._parts(row))

    def probability(self, row: Row) -> float:
        """Returns how likely a problem is, 0..1."""
        return float(sigmoid(np.asarray([self.slope * self.score(row) + self.offset]))[0])

    def shares(self, rows: Sequence[Row]) -> list[float]:
        """Returns how likely each of some rows is the one of its kind among them; they add up to 1."""
        odds = np.exp(np.asarray([self.score(row) for row in rows]))
        return [float(each) for each in odds / odds.sum()]

    def reasons(self, row: Row) -> tuple[str, ...]:
        """Returns in words what speaks most for a problem, the strongest first; at most three."""
        parts = sorted(zip(self._parts(row), self.names, strict=True), reverse=True)
        named = [(part, name) for part, name in parts if part * self.slope > _WEAK][:_MOST_REASONS]
        means = dict(zip(self.names, self.means, strict=True))
        return tuple(told(name, row.get(name, 0.0) > means[name]) for _, name in named)

    def _parts(self, row: Row) -> list[float]:
        values = zip(self.names, self.means, self.scales, self.weights, strict=True)
        return [weight * (row.get(name, 0.0) - mean) / scale for name, mean, scale, weight in values]

    @property
    def version(self) -> str:
        """8 hex digits that change with anything a probability depends on."""
        return hashlib.blake2b(json.dumps(asdict(self)).encode(), digest_size=4).hexdigest()


@dataclass(frozen=True, slots=True)
class LearnedModel:
    """A model with its origin. ``level``: ``session``, ``trace`` for traces without one, or ``step``; ``source``: whose
    verdicts, ``people`` or a judge's model; ``metric``: the key of the metric that they are about; ``labels``: their
    number. ``auroc``, ``same_length``: how well it finds problems in unseen units, and in equally long ones."""

    level: str
    agent: str
    source: str
    metric: str
    model: ProblemModel
    labels: int
    auroc: ShareEstimate | None
    same_length: ShareEstimate | None

    @classmethod
    def of_json(cls, text: str | bytes) -> LearnedModel:
        """Reads a model. Raises ``ValueError`` for what ``pandaeval learn`` did not write."""
        try:
            held = json.loads(text)
            if held["format"] != FORMAT:
                raise ValueError(f"it has format {held['format']}, and this version reads {FORMAT}: learn anew")
            level, agent, source, metric = (str(held[name]) for name in ("level", "agent", "source", "metric"))
            given, evidence = held["model"], held["evidence"]
            means, scales, weights = (tuple(map(float, given[name])) for name in ("means", "scales", "weights"))
            bias, slope, offset, rate = (float(given[name]) for name in ("bias", "slope", "offset", "rate"))
            names = tuple(map(str, given["names"]))
            model = ProblemModel(names, means, scales, weights, bias, slope, offset, rate)
            auroc, same_length = (
                None if evidence.get(name) is None else ShareEstimate(**evidence[name])
                for name in ("auroc", "same_length")
            )
            return cls(level, agent, source, metric, model, int(evidence["labels"]), auroc, same_length)
        except (KeyError, TypeError, RecursionError) as error:
            raise ValueError(f"no model that `pandaeval learn` wrote ({error})") from error


def sigmoid(values: Numbers) -> Numbers:
    return 1.0 / (1.0 + np.exp(-np.clip(values, -30, 30)))
