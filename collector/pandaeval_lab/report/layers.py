"""The three-layer report: the layer in which an agent broke.

An incorrect trial broke in the first layer (reasoning, action, outcome) with a failed grader. Plans inferred from calls
count as action.
"""

from __future__ import annotations

import json
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from xml.etree.ElementTree import Element, SubElement

import orjson

from pandaeval_collector.base.untrusted.printable import for_xml

LAYERS = ("reasoning", "action", "outcome")
CORRECT = "trial_correct"
CAPABILITY = "capability"
_SPOILT = "simulator_failed"
_KEYS = ("metric", "outcome", "score", "threshold", "success", "why", "reason")
Row = Mapping[str, Any]
"""A trial's JSON object, as :class:`LayerReport` makes it, or a result's."""


@dataclass(slots=True)
class TrialCount:
    """Trial counts of a case or kind.

    ``correct``: ``None`` if undetermined. ``broke``: by layer. ``failed``: reason of the first incorrect trial.
    ``unscored``: reason of the first trial in which a declared grader has no score.
    """

    kind: str
    has_scenario: bool = False
    correct: Counter[bool | None] = field(default_factory=Counter)
    broke: Counter[str] = field(default_factory=Counter)
    states: dict[str, Counter[str]] = field(default_factory=lambda: {layer: Counter() for layer in LAYERS})
    failed: str = ""
    unscored: str = ""
    first: str = ""

    def add(self, row: Row) -> None:
        if not self.trials:
            self.first = row["reason"]
        if row["correct"] is False:
            self.failed = self.failed or row["reason"]
        if _is_unscored(row):
            self.unscored = self.unscored or row["reason"]
        self.correct[row["correct"]] += 1
        if row["broke"] is not None:
            self.broke[row["broke"]] += 1
        for layer, state in row["layers"].items():
            self.states[layer][state] += 1

    @property
    def trials(self) -> int:
        return self.correct.total()

    @property
    def fails(self) -> bool:
        """Whether the case fails a run: more than half of its trials are incorrect.

        It also fails if no trial is correct and a declared grader has no score. A capability case without a scenario
        fails no run.
        """
        if self.kind == CAPABILITY and not self.has_scenario:
            return False
        without_success = bool(self.unscored) and not self.correct[True]
        return without_success or 2 * self.correct[False] > self.trials

    def brief(self, name: str) -> dict[str, Any]:
        def state(layer: str) -> str:
            found = self.states[layer]
            if found["fail"] and self.trials > 1:
                return f"fail {found['fail']}/{self.trials}"
            for decided in ("fail", "pass"):
                if found[decided]:
                    return decided
            return found.most_common(1)[0][0]

        broke = max(LAYERS, key=lambda layer: self.broke[layer])
        return {
            "case": name[:200],
            "kind": self.kind,
            "correct": self.correct[True],
            "trials": self.trials,
            "undetermined": self.correct[None],
            "layers": [state(layer) for layer in LAYERS],
            "broke": broke if self.broke[broke] else None,
            "why": (self.failed or self.first)[:300],
        }


class LayerReport:
    """Counts trials by case, and keeps their grader results compressed."""

    def __init__(self) -> None:
        self._cases: dict[str, TrialCount] = {}
        self._kinds: dict[str, TrialCount] = {}
        self._rows: dict[str, list[bytes]] = {}
        self.refused, self.past_mocks = Counter[str](), Counter[str]()
        """Calls by tool: refused because no mock fitted, and made without a mock although the case has mocks."""

    def add(self, results: Sequence[Row]) -> None:
        row, about = _row(results), results[0]["metadata"]
        case, kind = about["case"], about["case_kind"]
        self._cases.setdefault(case, TrialCount(kind, about.get("scenario", False))).add(row)
        self._kinds.setdefault(kind, TrialCount(kind)).add(row)
        self.refused.update(call["tool"] for call in row["mock_calls"] if call["kind"] == "refused")
        self.past_mocks.update(row["past_mocks"])
        self._rows.setdefault(case, []).append(zlib.compress(orjson.dumps(row), 1))

    @property
    def kinds(self) -> dict[str, TrialCount]:
        return dict(sorted(self._kinds.items()))

    def cases(self) -> dict[str, TrialCount]:
        return dict(sorted(self._cases.items(), key=lambda item: -item[1].correct[False] / item[1].trials))

    def trials(self, case: str) -> Iterator[dict[str, Any]]:
        yield from (orjson.loads(zlib.decompress(row)) for row in self._rows.get(case, ()))

    def brief(self, most: int = 500) -> list[dict[str, Any]]:
        return [count.brief(case) for case, count in [*self.cases().items()][:most]]

    def by_kind(self) -> list[dict[str, Any]]:
        return [count.brief("all") for count in self.kinds.values()]


def _row(results: Sequence[Row]) -> dict[str, Any]:
    verdict = next(each for each in results if each["metric"] == CORRECT)
    correct = verdict["success"]
    graders = []
    for each in results:
        if each is not verdict:
            about = each["metadata"]  # a plan grader that could read only calls counts for the layer of actions
            layer = "action" if about.get("basis") == "calls" else str(about["layer"])
            graders.append({**{key: each[key] for key in _KEYS}, "layer": layer, "gates": about["gates"]})
    layers = {layer: _state([each for each in graders if each["layer"] == layer], correct) for layer in LAYERS}
    return {
        "trial": results[0]["metadata"]["trial"],
        "correct": correct,
        "broke": next((layer for layer in LAYERS if layers[layer] == "fail"), None) if correct is False else None,
        "layers": layers,
        "reason": "" if correct else str(verdict["reason"]),
        "graders": graders,
        "trace_ids": results[0]["metadata"]["traces"],
        **{key: verdict["metadata"].get(key, ()) for key in ("mock_calls", "past_mocks")},
    }


def _is_unscored(row: Row) -> bool:
    """Return whether a trial has no verdict because a declared grader has no score. Excludes spoilt conversations."""
    if row["correct"] is not None:
        return False
    return any(each["gates"] and each["success"] is None and each["why"] != _SPOILT for each in row["graders"])


def _state(graders: Sequence[Row], correct: bool | None) -> str:
    """Return the state of a layer. A correct trial broke nowhere, so only declared graders can fail its layers."""
    compared = [each["success"] for each in graders if each["gates"] or _counts(each, correct)]
    if not compared:
        return "-"
    if False in compared:
        return "fail"
    return "unscored" if None in compared else "pass"


def _counts(grader: Row, correct: bool | None) -> bool:
    if grader["outcome"] == "assumed" or grader["why"] == "insufficient_evidence":
        return False
    return correct is not True or grader["success"] is not False


def junit_suites(report: LayerReport, no_fail: bool = False, with_unscored: bool = False) -> dict[str, list[Element]]:
    """Return JUnit suites with a test case per trial, by kind.

    An incorrect trial is a failure only if its case fails the run; otherwise it is skipped. ``no_fail``: no trial is a
    failure. ``with_unscored``: an unscored trial is a failure too if its case fails the run.
    """
    suites: dict[str, list[Element]] = {kind: [] for kind in report.kinds}
    for case, count in report.cases().items():
        rows = report.trials(case)
        fails = count.fails and not no_fail
        suites[count.kind] += [_test_case(case, count.kind, row, fails, fails and with_unscored) for row in rows]
    return suites


def _test_case(name: str, kind: str, row: Row, fails: bool, fails_unscored: bool) -> Element:
    shown, place = for_xml(f"{name} [{row['trial']}]"), for_xml(f"pandaeval.{kind}.{name}")
    case = Element("testcase", classname=place, name=shown, time="0")
    properties = SubElement(case, "properties")
    layers = {f"layer.{layer}": state for layer, state in row["layers"].items()}
    for key, value in {**layers, "trace_ids": " ".join(row["trace_ids"])}.items():
        SubElement(properties, "property", name=key, value=for_xml(value))
    why = for_xml(row["reason"][:500])
    if row["correct"] is False and not fails:
        SubElement(case, "skipped", message=f"not correct, but its case does not fail the run: {why}")
    elif row["correct"] is False:
        failed = [each for each in row["graders"] if each["success"] is False]
        lines = [f"{each['layer']}: {each['metric']} {each['score']:.4f}: {each['reason']}" for each in failed]
        failure = SubElement(case, "failure", type=row["broke"] or "trial", message=why)
        failure.text = for_xml("\n".join(lines))
    elif fails_unscored and _is_unscored(row):
        SubElement(case, "failure", type="unscored", message=why)
    elif row["correct"] is None:
        SubElement(case, "skipped", message=why or "no grader gave a verdict")
    if row["mock_calls"]:
        call_lines = (json.dumps(call, ensure_ascii=False) for call in row["mock_calls"])
        SubElement(case, "system-out").text = for_xml("\n".join(["Calls that mocks answered or refused:", *call_lines]))
    return case
