"""The verdicts of the canaries' rounds, case by case: the first on each, the newest, and how far apart they are."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

Said = float | str
"""A judge's verdict on a canary, 0..1, or why there is none."""
CaseKey = tuple[str, str, str]
"""Canary, metric, model."""
_KEEP = 30
"""Verdicts on one case that are kept: those of the newest rounds."""


@dataclass(slots=True)
class CanaryRecord:
    """One canary and metric. ``right``: the newest verdict is as expected; ``verdicts``: of the newest rounds."""

    first: Said
    newest: Said
    right: bool
    verdicts: list[float] = field(default_factory=list)

    def hear(self, said: Said, right: bool) -> None:
        """Takes in the verdict of one more round."""
        self.newest, self.right = said, right
        if isinstance(said, float):
            self.verdicts = [*self.verdicts, said][-_KEEP:]

    @property
    def shift(self) -> float:
        """How far the newest verdict is from the first, 0..1. One that came or went, or went for another reason, has
        gone all the way."""
        if isinstance(self.first, float) and isinstance(self.newest, float):
            return abs(self.newest - self.first)
        return float(self.first != self.newest)

    def changed(self, threshold: float) -> bool:
        """Whether the verdict is on the other side of the threshold than at first, or came or went."""
        if isinstance(self.first, float) and isinstance(self.newest, float):
            return (self.first >= threshold) != (self.newest >= threshold)
        return self.first != self.newest

    def __str__(self) -> str:
        """``0.90 at first, 0.10 now (0.10-0.92 in 12 rounds)``."""
        shown = f"{_shown(self.first)} at first, {_shown(self.newest)} now"
        if len(self.verdicts) > 2:
            shown += f" ({min(self.verdicts):.2f}-{max(self.verdicts):.2f} in {len(self.verdicts)} rounds)"
        return shown


class CanaryRounds:
    """All rounds of the same canaries, judge and questions (``of``); ``at``: Unix time of the newest, 0.0 before the
    first. ``thresholds``: by metric."""

    def __init__(self, of: str, thresholds: Mapping[str, float], held: Mapping[str, Any]) -> None:
        """``held``: as :meth:`to_dict` gave it; that of others is forgotten."""
        self.of, self.at, self._thresholds = of, 0.0, thresholds
        self.cases: dict[CaseKey, CanaryRecord] = {}
        if held.get("of") == of:
            self.at = float(held["at"])
            for key, case in held["cases"].items():
                name, metric, model = key.split("\t")
                self.cases[name, metric, model] = CanaryRecord(**case)

    def hear(self, key: CaseKey, said: Said, right: bool) -> None:
        """Takes in one verdict."""
        case = self.cases.setdefault(key, CanaryRecord(said, said, right))
        case.hear(said, right)

    def to_dict(self) -> dict[str, Any]:
        """Returns the round for the store."""
        cases = {
            "\t".join(key): {"first": c.first, "newest": c.newest, "right": c.right, "verdicts": c.verdicts}
            for key, c in self.cases.items()
        }
        return {"of": self.of, "at": self.at, "cases": cases}

    @property
    def drift(self) -> float:
        """The mean of all shifts, 0..1; 0 before the second round."""
        return statistics.fmean(case.shift for case in self.cases.values()) if self.cases else 0.0

    @property
    def changed(self) -> int:
        """How many verdicts changed side."""
        return sum(case.changed(self._thresholds[metric]) for (_, metric, _), case in self.cases.items())

    def right(self, metric: str, model: str) -> float:
        """The share of this metric's and model's newest verdicts that are as expected."""
        return statistics.fmean(case.right for key, case in self.cases.items() if key[1:] == (metric, model))

    def series(self) -> Iterator[tuple[str, str]]:
        """Each metric and model that there are verdicts of."""
        yield from dict.fromkeys((metric, model) for _, metric, model in self.cases)

    def furthest(self, most: int = 3) -> list[str]:
        """The cases that went furthest from their first verdicts, in words."""
        moved = sorted(self.cases.items(), key=lambda each: -each[1].shift)
        return [f"{name}, {metric}: {case}" for (name, metric, _), case in moved[:most] if case.shift > 0.0]


def _shown(said: Said) -> str:
    return f"{said:.2f}" if isinstance(said, float) else said
