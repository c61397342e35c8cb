"""The three-layer report: which layer of an agent broke, by trial, by case and over all cases.

A trial that is not correct broke in the first layer (reasoning, then action, then outcome) in which some grader failed.
A correct trial broke nowhere, whatever way it took.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

LAYERS = ("reasoning", "action", "outcome")
CORRECT = "trial_correct"
Result = Mapping[str, Any]
"""A result as its JSON object."""


@dataclass(slots=True)
class TrialRow:
    """A trial with the results of its graders."""

    case: str
    kind: str
    trial: str
    graders: list[Result] = field(default_factory=list)
    verdict: Result | None = None

    @property
    def correct(self) -> bool | None:
        """``None``: it could not be told."""
        return None if self.verdict is None else self.verdict["success"]

    @property
    def broke(self) -> str | None:
        """The layer in which a trial that is not correct broke."""
        if self.correct is not False:
            return None
        return next((layer for layer in LAYERS if self.state(layer) == "fail"), None)

    def state(self, layer: str) -> str:
        """``fail``, ``unscored``, ``pass``, or ``-`` where nothing of the layer was graded."""
        said = [each for each in self.graders if each["metadata"]["layer"] == layer]
        if any(each["success"] is False for each in said):
            return "fail"
        if any(each["success"] is None for each in said):
            return "unscored"
        return "pass" if said else "-"

    @property
    def reason(self) -> str:
        """Why it is not correct, or cannot be told."""
        return "" if self.verdict is None or self.correct else str(self.verdict["reason"])

    def to_dict(self) -> dict[str, Any]:
        """For programs."""
        told = self.verdict or next(iter(self.graders))
        keys = ("metric", "outcome", "score", "threshold", "success", "why", "reason")
        graders = [
            {**{key: each[key] for key in keys}, "layer": each["metadata"]["layer"], "gates": each["metadata"]["gates"]}
            for each in self.graders
        ]
        return {
            "trial": self.trial,
            "correct": self.correct,
            "broke": self.broke,
            "layers": {layer: self.state(layer) for layer in LAYERS},
            "reason": self.reason,
            "graders": graders,
            "trace_ids": told["metadata"]["traces"],
        }


class LayerReport:
    """Gathers the results of trials; others are passed over. ``untried``: cases without a trial."""

    def __init__(self, suite: str = "", descriptions: Mapping[str, str] | None = None) -> None:
        self.suite, self.untried = suite, [*(descriptions or ())]
        self._descriptions = dict(descriptions or {})
        self._rows: dict[tuple[str, str], TrialRow] = {}

    def add(self, result: Result) -> None:
        """Takes one result in."""
        if result["level"] != "trial":
            return
        about = result["metadata"]
        key = about["case"], about["trial"]
        row = self._rows.setdefault(key, TrialRow(about["case"], about["case_kind"], about["trial"]))
        if result["metric"] == CORRECT:
            row.verdict = result
        else:
            row.graders.append(result)
        self.untried = [case for case in self.untried if case != about["case"]]

    @property
    def trials(self) -> list[TrialRow]:
        return [*self._rows.values()]

    def cases(self) -> dict[str, list[TrialRow]]:
        """The trials by case: what is not correct first."""
        found: dict[str, list[TrialRow]] = {}
        for row in self._rows.values():
            found.setdefault(row.case, []).append(row)
        return dict(sorted(found.items(), key=lambda item: _rank(item[1])))

    def brief(self, most: int = 500) -> list[dict[str, Any]]:
        """A row for each case, those that broke first."""
        return [_brief(case, trials) for case, trials in [*self.cases().items()][:most]]

    def by_kind(self) -> list[dict[str, Any]]:
        """A row for all cases of each kind."""
        kinds = sorted({row.kind for row in self.trials})
        return [_brief("all", [row for row in self.trials if row.kind == kind]) for kind in kinds]

    def description(self, case: str) -> str:
        return self._descriptions.get(case, "")

    def to_dict(self) -> dict[str, Any]:
        """The whole report for programs."""
        rows = self.trials
        kinds = sorted({row.kind for row in rows})
        return {
            "suite": self.suite or None,
            **counted(rows),
            "kinds": {kind: counted(row for row in rows if row.kind == kind) for kind in kinds},
            "layers": {layer: _layer(rows, layer) for layer in LAYERS},
            "by_case": [
                {
                    "case": case,
                    "kind": trials[0].kind,
                    "description": self.description(case),
                    **counted(trials),
                    "trials": [row.to_dict() for row in trials],
                }
                for case, trials in self.cases().items()
            ],
            "without_trial": self.untried,
        }


def states(trials: Sequence[TrialRow], layer: str) -> str:
    """``pass``, or how many failed; else what most of them are."""
    found = [row.state(layer) for row in trials]
    failed = found.count("fail")
    if failed:
        return f"fail {failed}/{len(trials)}" if len(trials) > 1 else "fail"
    return "pass" if "pass" in found else max(found, key=found.count)


def _brief(case: str, trials: Sequence[TrialRow]) -> dict[str, Any]:
    told = counted(trials)
    broke, times = max(told["broke"].items(), key=lambda item: item[1])
    reason = next((row.reason for row in trials if row.correct is False), "") or trials[0].reason
    return {
        "case": case[:200],
        "kind": trials[0].kind,
        "correct": told["correct"],
        "trials": told["trials"],
        "undetermined": told["undetermined"],
        "layers": [states(trials, layer) for layer in LAYERS],
        "broke": broke if times else None,
        "why": reason[:300],
    }


def counted(rows: Iterable[TrialRow]) -> dict[str, Any]:
    """How many cases and trials there are, how they ended, and where they broke."""
    rows = [*rows]
    states = Counter(row.correct for row in rows)
    broke = Counter(row.broke for row in rows if row.broke is not None)
    return {
        "cases": len({row.case for row in rows}),
        "trials": len(rows),
        "correct": states[True],
        "incorrect": states[False],
        "undetermined": states[None],
        "broke": {layer: broke[layer] for layer in LAYERS},
    }


def _layer(rows: Iterable[TrialRow], layer: str) -> dict[str, Any]:
    rows = [*rows]
    states = Counter(row.state(layer) for row in rows)
    graders: dict[str, list[Result]] = {}
    for row in rows:
        for each in row.graders:
            if each["metadata"]["layer"] == layer:
                graders.setdefault(each["metric"], []).append(each)
    return {
        "broke": sum(row.broke == layer for row in rows),
        "failed": states["fail"],
        "passed": states["pass"],
        "graders": {name: _grader(results) for name, results in sorted(graders.items())},
    }


def _grader(results: Iterable[Result]) -> dict[str, Any]:
    results = [*results]
    scores = [each["score"] for each in results if each["outcome"] == "scored"]
    return {
        "scored": len(scores),
        "mean": math.fsum(scores) / len(scores) if scores else None,
        "passed": sum(each["success"] is True for each in results),
        "failed": sum(each["success"] is False for each in results),
        "unscored": sum(each["success"] is None for each in results),
    }


def _rank(trials: Iterable[TrialRow]) -> tuple[bool, float]:
    rows = [*trials]
    wrong = sum(row.correct is False for row in rows)
    return wrong == 0, -wrong / len(rows)
