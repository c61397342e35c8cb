"""Scenario thresholds and severity gates."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from typer.testing import CliRunner

from pandaeval_collector.base.result import Result
from pandaeval_collector.base.score import Score, Unscored, Why
from pandaeval_collector.cli import app
from pandaeval_collector.config import Config
from pandaeval_lab.cases.model import Suite
from pandaeval_lab.cli._names import with_trials
from pandaeval_lab.cli._scenarios import Scenarios
from pandaeval_lab.cli._summary import Summary
from pandaeval_lab.replay.root_causes import by_code
from support.results import result
from support.trials import run, write


def _suite(**scenario: Any) -> Suite:
    cases = [{"id": "refund", "scenario": {"goal": "x", **scenario}}, {"id": "other", "scenario": {"goal": "y"}}]
    return Suite.model_validate({"cases": cases})


def _told(suite: Suite, *results: Result) -> list[tuple[bool, str]]:
    """Return verdict and sentence of each gate."""
    scenarios = Scenarios(with_trials(Config()), suite, {"talk": "refund", "chat": "other"}.get)
    whole = Summary()
    whole.agents_traces, whole.has_sessions = 1, True
    for each in results:
        whole.take(each, each.to_dict())
        scenarios.take(each, each.to_dict())
    whole.groups = by_code(whole.failures)
    return [(gate.passed, gate.text) for gate in scenarios.gates(whole)]


def _of(case: str, level: str, metric: str, finding: Any, threshold: float = 0.5) -> Result:
    session, of_unit = {"refund": "talk", "other": "chat"}[case], "" if level == "session" else case
    more = {"id": f"{case}-{metric}", "level": level, "case": of_unit, "session_id": session}
    return result(metric, finding, threshold=threshold, **more)


def _ratings(case: str, values: list[float]) -> list[Result]:
    return [_of(case, "turn", "helpfulness", Score((v - 1) / 4, raw=v, scale="1-5"), 3.0) for v in values]


@pytest.mark.parametrize(("least", "passes"), [(3.5, True), (3.9, False)])
def test_the_mean_over_all_turns_of_all_conversations_is_held(least: float, passes: bool) -> None:
    ratings = _ratings("refund", [4.2, 3.1, 4.5, 3.8, 4.0, 3.2]) + _ratings("other", [1.0] * 9)
    (of_mean, of_severity) = _told(_suite(thresholds={"helpfulness": least}), *ratings)
    assert of_severity == (True, "")
    assert of_mean[0] is passes
    if not passes:
        lead = "scenario refund: turn.helpfulness (threshold 3.9): the mean of 6 scores is 3.8000"
        assert of_mean[1].startswith(lead)


@pytest.mark.parametrize(("met", "passes"), [([1, 1, 1, 1, 0], True), ([1, 1, 0], False)])
def test_the_share_of_conversations_that_reach_the_goal_is_held(met: list[float], passes: bool) -> None:
    results = [_of("refund", "session", "goal_completion", Score(float(value))) for value in met]
    results += [_of("other", "session", "goal_completion", Score(0.0))] * 5
    assert _told(_suite(thresholds={"goal_completion": 0.8}), *results)[0][0] is passes


@pytest.mark.parametrize(("spoilt", "passes"), [(1, True), (2, False), (5, False)])
def test_conversations_that_the_users_side_spoilt_are_missing_scores(spoilt: int, passes: bool) -> None:
    good = [_of("refund", "session", "goal_completion", Score(1.0))] * (5 - spoilt)
    why = Unscored(Why.SIMULATOR_FAILED, "the simulated user spoilt the conversation")
    passed, text = _told(
        _suite(thresholds={"goal_completion": 0.8}), *good, *[_of("refund", "trial", "trial_correct", why)] * spoilt
    )[0]
    assert passed is passes
    assert passes or "simulator_failed" in text


@pytest.mark.parametrize(
    ("least", "label", "passes"),
    [
        ("high", "false information", False),
        ("critical", "false information", True),
        ("medium", "repetition", True),
        ("low", "repetition", False),
        (None, "unsafe action", True),
    ],
)
def test_a_group_of_failures_from_that_severity_on_fails_it(least: str | None, label: str, passes: bool) -> None:
    failure = Score(0.0, "It was so.", label=label)
    of_it = _of("refund", "turn", "agent_behavior_failure", failure)
    elsewhere = _of("other", "turn", "agent_behavior_failure", Score(0.0, "Deleted.", label="unsafe action"))
    suite = _suite(thresholds={"trial_correct": 0.5}, fail_on_error_severity=least)
    told = _told(suite, of_it, elsewhere, _of("refund", "trial", "trial_correct", Score(1.0)))
    assert [passed for passed, _ in told] == [True, passes]
    assert passes or told[1][1].startswith(f"scenario refund: failures (fail_on_error_severity {least}): 1 group")


def test_a_threshold_of_what_was_never_scored_is_told(tmp_path: Path) -> None:
    (of_mean, _) = _told(_suite(thresholds={"helpfulness": 3.5}))
    assert of_mean == (
        False,
        "scenario refund: turn.helpfulness (threshold 3.5): cannot be checked: no judge is configured; name one with "
        "--model, or take the threshold out",
    )


SUITE = """
cases:
- id: refund
  scenario:
    goal: Get the money back
    thresholds: {response: 0.9, trial_correct: 0.5}
  expected_outcome: {tools_called: [refund_order]}
- id: other
  scenario: {goal: Get it, thresholds: {response: 0.9}}
"""


def test_a_run_fails_by_its_scenarios_and_says_so_everywhere(tmp_path: Path) -> None:
    called = [("refund_order", {})]
    runs = [
        run(n, case="refund", trial=str(n), session=f"refund/{n}", calls=called, answer="" if n == 1 else "Done.")
        for n in (1, 2, 3)
    ]
    spoilt = {"pandaeval__simulator__failed": "m: A-9: the user cannot know that"}
    runs += [run(4, case="refund", trial="4", session="refund/4", answer="", **spoilt)]
    runs += [run(n, case="other", trial=str(n), session=f"other/{n}") for n in (5, 6)]
    (tmp_path / "suite.yaml").write_text(SUITE)
    words = ["evaluate", str(write(tmp_path / "runs.jsonl", runs)), "--cases", str(tmp_path / "suite.yaml")]
    done = CliRunner().invoke(app, words)
    CliRunner().invoke(app, [*words, "--format", "junit", "--output", str(tmp_path / "cases.xml")])
    assert done.exit_code == 1, done.output
    failed = [line for line in done.output.splitlines() if line.startswith("failed: ")]
    assert len(failed) == 2, failed
    assert failed[0].startswith(
        "failed: scenario refund: trace.response (threshold 0.9): the mean of 3 scores is 0.6667"
    )
    assert "1 of 4 results have no score (25%" in failed[0], "the spoilt one"
    assert failed[1].startswith("failed: scenario refund: trial.trial_correct (threshold 0.5): 1 of 4 results")
    assert "Scenarios" in done.output
    tests = {test.get("name"): test for test in ElementTree.parse(tmp_path / "cases.xml").iter("testcase")}
    assert tests["refund: trace.response"].find("failure") is not None
    assert tests["other: trace.response"].find("failure") is None
    assert tests["refund [4]"].find("skipped") is not None

    asked = CliRunner().invoke(app, [*words, "--format", "json"])
    results = [json.loads(line) for line in asked.stdout.splitlines() if line.startswith("{")]
    of_spoilt = [each for each in results if each["metadata"].get("trial") == "4"]
    assert {(each["level"], each["why"]) for each in of_spoilt} == {("trial", "simulator_failed")}


@pytest.mark.parametrize(
    ("thresholds", "why"),
    [
        ("{helpfulnes: 3.5}", "suite.yaml:6: cases[0].scenario.thresholds.helpfulnes: unknown metric; did you mean"),
        ("{helpfulness: 7}", "no result can reach 7: scores of turn.helpfulness end at 5"),
        ("{coherence: 0.5}", "is the name of several metrics; write trace.coherence or turn.coherence"),
        ("{coherence: -1}", "suite.yaml:6: cases[0].scenario.thresholds.coherence: input should be greater than"),
    ],
)
def test_a_threshold_that_nothing_can_reach_is_a_fault_of_the_file(tmp_path: Path, thresholds: str, why: str) -> None:
    text = SUITE.replace("{response: 0.9, trial_correct: 0.5}", thresholds)
    (tmp_path / "suite.yaml").write_text(text)
    done = CliRunner().invoke(app, ["evaluate", "-", "--cases", str(tmp_path / "suite.yaml")])
    assert done.exit_code == 2, done.output
    assert why in " ".join(done.output.split())
