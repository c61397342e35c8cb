"""Promotion of cases by interval."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st
from typer.testing import CliRunner

from pandaeval_collector.analysis.stats.pass_k import pass_pow_k
from pandaeval_collector.cli import app
from pandaeval_lab.passk.attempts import CaseOutcomes, CaseTrials
from pandaeval_lab.passk.figures import promotable, saturation


def case(id_: str, n: int, c: int, unknown: int = 0, kind: str = "capability") -> CaseOutcomes:
    said = [True] * c + [False] * (n - c) + [None] * unknown
    return CaseOutcomes(id_, {(str(at), ""): passed for at, passed in enumerate(said)}, kind)


def told(*cases: CaseOutcomes, k: int = 3, least: float = 0.7) -> Any:
    return promotable(CaseTrials("trial.trial_correct", "case", cases), k, least)


@pytest.mark.parametrize(
    ("n", "c", "unknown", "steady", "more"),
    [
        (1, 1, 0, False, 30),
        (30, 30, 0, False, 1),
        (31, 31, 0, True, 0),
        (36, 31, 0, False, 64),
        (31, 31, 5, False, 64),
    ],
)
def test_a_few_lucky_trials_promote_nothing(n: int, c: int, unknown: int, steady: bool, more: int) -> None:
    [found] = told(case("a", n, c, unknown))
    assert (found.steady, found.more) == (steady, more)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 40), st.integers(0, 40), st.integers(1, 6), st.sampled_from([0.3, 0.7, 0.9]))
def test_what_is_said_to_be_missing_is_what_is_missing(c: int, failed: int, k: int, least: float) -> None:
    [found] = told(case("a", c + failed, c), k=k, least=least)
    if found.more is not None:
        enough = pass_pow_k(c + failed + found.more, c + found.more, k, "bayesian").ci_low
        assert enough is not None
        assert enough >= least
        if found.more:
            short = pass_pow_k(c + failed + found.more - 1, c + found.more - 1, k, "bayesian").ci_low
            assert short is None or short < least


def test_only_capability_cases_are_promoted_and_the_suite_is_said_to_be_saturated() -> None:
    found = told(case("weak", 40, 20), case("sure", 40, 40), case("guard", 40, 40, kind="regression"))
    assert [each.case.id for each in found] == ["sure", "weak"]
    assert saturation(found) == "saturation: 1 of 2 capability cases pass steadily (50%)"
    assert "the suite is saturated" in saturation(told(case("sure", 40, 40)))
    assert saturation(told(case("guard", 9, 9, kind="regression"))) == "no trial of a capability case in these results"


def test_the_command_proposes_them(tmp_path: Path) -> None:
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
    assert "saturation: 1 of 2 capability cases pass steadily (50%)" in done.stdout
    told = CliRunner().invoke(app, ["cases", "promote", str(results), "--format", "json"])
    rows = [json.loads(line) for line in told.stdout.splitlines()]
    assert [(each["case"], each["promote"]) for each in rows] == [("sure", True), ("weak", False)]
