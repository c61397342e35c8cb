"""Promotion of cases by interval."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from pandaeval_collector.cli import app
from pandaeval_lab.passk.attempts import CaseOutcomes, CaseTrials
from pandaeval_lab.passk.figures import promotable


def case(id_: str, n: int, c: int, unknown: int = 0, kind: str = "capability") -> CaseOutcomes:
    outcomes = [True] * c + [False] * (n - c) + [None] * unknown
    return CaseOutcomes(id_, {(str(at), ""): passed for at, passed in enumerate(outcomes)}, kind)


def told(*cases: CaseOutcomes, k: int = 3, least: float = 0.7) -> Any:
    return promotable(CaseTrials("trial.trial_correct", "case", cases), k, least)


@pytest.mark.parametrize(
    ("n", "c", "unknown", "steady"),
    [(1, 1, 0, False), (30, 30, 0, False), (31, 31, 0, True), (36, 31, 0, False), (31, 31, 5, False)],
)
def test_a_case_is_promoted_only_after_enough_passed_trials(n: int, c: int, unknown: int, steady: bool) -> None:
    [found] = told(case("a", n, c, unknown))
    assert found.steady == steady


def test_only_capability_cases_are_promoted() -> None:
    found = told(case("weak", 40, 20), case("sure", 40, 40), case("guard", 40, 40, kind="regression"))
    assert [each.case.id for each in found] == ["sure", "weak"]


def test_the_command_lists_cases_to_promote(tmp_path: Path) -> None:
    results = tmp_path / "r.jsonl"
    lines = [
        {"metric": "trial_correct", "level": "trial", "outcome": "scored", "success": name == "sure" or at < 5}
        | {"session_id": f"{name}{at}", "metadata": {"case": name, "trial": str(at), "case_kind": "capability"}}
        for name in ("sure", "weak")
        for at in range(32)
    ]
    results.write_text("".join(json.dumps(each) + "\n" for each in lines))
    done = CliRunner().invoke(app, ["cases", "promote", str(results)])
    assert done.exit_code == 0, done.output
    assert any(line.split()[:1] == ["sure"] and line.rstrip().endswith("promote") for line in done.stdout.splitlines())
    result = CliRunner().invoke(app, ["cases", "promote", str(results), "--format", "json"])
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    assert [(each["case"], each["promote"]) for each in rows] == [("sure", True), ("weak", False)]
