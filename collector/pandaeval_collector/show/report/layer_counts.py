"""What the three-layer report remembers of trials: counts, and the first reason why one was not correct."""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

LAYERS = ("reasoning", "action", "outcome")
Row = Mapping[str, Any]
"""A trial's JSON object, as :class:`pandaeval_collector.show.report.layers.LayerReport` makes it."""


@dataclass(slots=True)
class TrialCount:
    """Counts trials of one case, or of all cases of a kind. ``correct``: how many are correct, are not, or could not be
    told (``None``); ``broke``: in which layer; ``states``: of each layer, how many trials are in which state."""

    kind: str = ""
    correct: Counter[bool | None] = field(default_factory=Counter)
    broke: Counter[str] = field(default_factory=Counter)
    states: dict[str, Counter[str]] = field(default_factory=lambda: {layer: Counter() for layer in LAYERS})
    cases: set[str] = field(default_factory=set)
    failed: str = ""
    first: str = ""
    """``failed``: the reason of the first incorrect trial; ``first``: that of the first trial."""

    @classmethod
    def of(cls, counts: Iterable[TrialCount]) -> TrialCount:
        """Returns the sum of several counts."""
        whole = cls()
        for each in counts:
            whole.correct += each.correct
            whole.broke += each.broke
            whole.cases |= each.cases
            for layer in LAYERS:
                whole.states[layer] += each.states[layer]
        return whole

    def add(self, row: Row, case: str = "") -> None:
        """Counts one trial. ``case``: its case, if trials of several cases are counted."""
        if not self.trials:
            self.first = row["reason"]
        if row["correct"] is False:
            self.failed = self.failed or row["reason"]
        self.cases.add(case)
        self.correct[row["correct"]] += 1
        if row["broke"] is not None:
            self.broke[row["broke"]] += 1
        for layer, state in row["layers"].items():
            self.states[layer][state] += 1

    @property
    def trials(self) -> int:
        return self.correct.total()

    def counted(self) -> dict[str, Any]:
        """Returns how many cases and trials there are, how they ended, and where they broke."""
        return {
            "cases": len(self.cases),
            "trials": self.trials,
            "correct": self.correct[True],
            "incorrect": self.correct[False],
            "undetermined": self.correct[None],
            "broke": {layer: self.broke[layer] for layer in LAYERS},
        }

    def brief(self, name: str) -> dict[str, Any]:
        """Returns a table row, named ``name``."""
        broke = max(LAYERS, key=lambda layer: self.broke[layer])
        return {
            "case": name[:200],
            "kind": self.kind,
            "correct": self.correct[True],
            "trials": self.trials,
            "undetermined": self.correct[None],
            "layers": [self._state(layer) for layer in LAYERS],
            "broke": broke if self.broke[broke] else None,
            "why": (self.failed or self.first)[:300],
        }

    def _state(self, layer: str) -> str:
        """Returns how many trials failed in a layer, else ``pass`` if any passed, else the commonest state."""
        found = self.states[layer]
        if found["fail"]:
            return f"fail {found['fail']}/{self.trials}" if self.trials > 1 else "fail"
        return "pass" if found["pass"] else found.most_common(1)[0][0]


@dataclass(slots=True)
class GraderCount:
    """Counts the results of one grader. ``success``: how often it passed, failed, or could not tell (``None``)."""

    success: Counter[bool | None] = field(default_factory=Counter)
    scores: array[float] = field(default_factory=lambda: array("d"))

    def add(self, said: Row) -> None:
        """Counts one result."""
        self.success[said["success"]] += 1
        if said["outcome"] == "scored":
            self.scores.append(said["score"])

    def to_dict(self) -> dict[str, Any]:
        """Returns the counts for programs."""
        return {
            "scored": len(self.scores),
            "mean": math.fsum(self.scores) / len(self.scores) if self.scores else None,
            "passed": self.success[True],
            "failed": self.success[False],
            "unscored": self.success[None],
        }
