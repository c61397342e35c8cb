"""Holds a drill against an earlier one: which metric notices credibly less of which fault."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

from pandaeval_collector.drill.tally import NoticedShare, Tally

LEVEL = 0.05
"""How often all comparisons together may report a drop where nothing has changed."""


@dataclass(frozen=True, slots=True)
class NoticedLess:
    """A metric that noticed more copies of a fault before."""

    fault: str
    metric: str
    before: NoticedShare
    now: NoticedShare

    @property
    def told(self) -> str:
        return (
            f"{self.metric} noticed {self.before.hits} of {self.before.n} copies of {self.fault}, "
            f"now {self.now.hits} of {self.now.n}"
        )


def drops(before: Mapping[str, Any], now: Tally) -> list[NoticedLess]:
    """Finds the credible drops since a drill that :meth:`Tally.to_dict` described: one-sided two-proportion tests,
    which share :data:`LEVEL` among them. Raises ``KeyError`` and ``TypeError`` for an object of another kind."""
    pairs = [*_pairs(before, now)]
    limit = NormalDist().inv_cdf(1.0 - LEVEL / max(1, len(pairs)))
    return [pair for pair in pairs if _z(pair.before, pair.now) > limit]


def _pairs(before: Mapping[str, Any], now: Tally) -> Iterator[NoticedLess]:
    for name, told in before["faults"].items():
        found = now.faults.get(name)
        for metric, share in told["by_metric"].items():
            if found is not None and found.wrong and found.n and share["n"]:
                yield NoticedLess(
                    name,
                    metric,
                    NoticedShare(share["hits"], share["n"]),
                    NoticedShare(found.by_metric[metric], found.n),
                )


def _z(before: NoticedShare, now: NoticedShare) -> float:
    """The standard score of the difference of two shares."""
    pooled = (before.hits + now.hits) / (before.n + now.n)
    error = math.sqrt(pooled * (1.0 - pooled) * (1.0 / before.n + 1.0 / now.n))
    return (before.hits / before.n - now.hits / now.n) / error if error else 0.0
