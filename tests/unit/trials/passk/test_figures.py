"""Figures of repeated trials."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from typer.testing import CliRunner

from pandaeval_collector.cli import app
from pandaeval_lab.passk.attempts import CaseOutcomes, CaseTrials, trials
from pandaeval_lab.passk.figures import conversation, figures, task_results
from support.repeated import trials_of, written

BENCH = Path(__file__).parents[3] / "lab" / "bench" / "passk_tau.py"
MADE = {"refund": [True] * 4, "cancel <b>": [True, False, True, None], "change": [False] * 3}


def tau() -> ModuleType:
    spec = importlib.util.spec_from_file_location("passk_tau", BENCH)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.skipif(not (tau().DATA / "tau-bench").exists(), reason="the labelled sets are not here")
def test_pass_k_of_tau_bench_equals_the_published_figures() -> None:
    found = tau().of_tau()
    assert [f"{each.pow.value:.3f}" for each in found.suite] == ["0.420", "0.273", "0.220", "0.200"]
    assert [f"{each.at.value:.3f}" for each in found.suite] == ["0.420", "0.567", "0.660", "0.720"]


def test_undetermined_trials_and_too_few_trials_give_notices_and_bounds() -> None:
    found = figures(trials(trials_of(MADE)), (1, 4))
    assert any("1 trials are undetermined" in notice for notice in found.notices)
    assert any("k = 4: 2 of 3 cases" in notice for notice in found.notices)
    cancel = next(each for each in found.cases if each.case.id.startswith("cancel") and each.k == 1)
    assert cancel.pow_bounds == pytest.approx((2 / 4, 3 / 4))


def test_results_of_a_case_have_all_estimators_and_a_score_if_trials_suffice() -> None:
    found = {
        (each.metric, each.unit.id, each.finding.metadata["k"]): each
        for each in task_results(figures(trials(trials_of(MADE)), (2, 4)))
    }
    cancel = found["pass_pow_k", "cancel <b>", 2].to_dict()
    assert (cancel["level"], cancel["outcome"], cancel["score"]) == ("task", "scored", pytest.approx(1 / 3))
    about = cancel["metadata"]
    assert (about["n"], about["c"], about["undetermined"]) == (3, 2, 1)
    assert about["plug_in"] == pytest.approx(4 / 9)
    assert about["bayesian"]["ci_low"] < about["bayesian"]["median"] < about["bayesian"]["ci_high"]
    assert found["pass_at_k", "refund", 4].label is None, "its interval exceeds the band"
    assert found["pass_pow_k", "change", 4].why == "insufficient_evidence"


@pytest.mark.parametrize(
    ("n", "c", "k", "label"),
    [
        (1, 1, 1, None),
        (5, 5, 1, None),
        (40, 40, 1, None),
        (100, 100, 1, "reliable"),
        (100, 99, 3, "reliable"),
        (2, 0, 1, None),
        (30, 2, 1, "needs_improvement"),
        (60, 30, 8, "inconsistent"),
    ],
)
def test_a_band_is_given_only_if_the_whole_interval_lies_in_it(n: int, c: int, k: int, label: str | None) -> None:
    case = CaseOutcomes("a", {(str(at), ""): at < c for at in range(n)})
    [found] = figures(CaseTrials("trial.trial_correct", "case", (case,)), (k,)).cases
    assert found.label == label


def test_the_metadata_value_named_like_the_metric_equals_the_score() -> None:
    case = CaseOutcomes("talk", {(str(at), ""): at > 1 for at in range(5)})
    for each in task_results(figures(CaseTrials("turn.helpfulness", "conversation", (case,)), (1, 2))):
        if each.score is not None:
            assert each.finding.metadata[each.metric] == each.score


def test_result_ids_are_stable_and_differ_by_k() -> None:
    first, again = ([each.id for each in task_results(figures(trials(trials_of(MADE)), (2,)))] for _ in range(2))
    assert first == again
    other = [each.id for each in task_results(figures(trials(trials_of(MADE)), (3,)))]
    assert len({*first, *other}) == 12


@pytest.mark.parametrize(
    ("steps", "correct"),
    [([True, True], True), ([True, False, None], False), ([True, None], None)],
)
def test_a_conversation_is_correct_if_all_its_steps_are(steps: list[bool | None], correct: bool | None) -> None:
    case = CaseOutcomes("s", {(str(at), ""): passed for at, passed in enumerate(steps)})
    assert conversation(case)["is_correct"] is correct


class TestCommand:
    def run(self, *arguments: str, code: int = 0) -> Any:
        found = CliRunner().invoke(app, ["passk", *arguments])
        assert found.exit_code == code, found.output
        return found

    def test_output_dash_writes_to_standard_output(self, tmp_path: Path) -> None:
        results = str(written(tmp_path / "r.jsonl", trials_of(MADE)))
        assert self.run(results, "--output", "-").stdout == self.run(results).stdout

    def test_the_table_lists_the_worst_cases_first(self, tmp_path: Path) -> None:
        output = self.run(str(written(tmp_path / "r.jsonl", trials_of(MADE))), "--k", "2").stdout
        assert "trial.trial_correct: all cases" in output
        assert output.index("change") < output.index("cancel <b>") < output.index("refund")

    def test_json_has_two_results_for_each_case_and_for_the_suite(self, tmp_path: Path) -> None:
        file = written(tmp_path / "r.jsonl", trials_of(MADE))
        out = tmp_path / "out.jsonl"
        self.run(str(file), "--k", "3", "--format", "json", "--output", str(out))
        lines = [json.loads(line) for line in out.read_text().splitlines()]
        assert len(lines) == 2 * 3 + 2
        assert {line["level"] for line in lines} == {"task"}
        assert [line["score"] for line in lines[-2:]] == pytest.approx([2 / 3, 1 / 3])

    def test_counting_conversations_as_cases_prints_a_warning(self, tmp_path: Path) -> None:
        steps = [
            {**each, "level": "trace", "metric": "task_completion", "session_id": "s", "metadata": {}}
            for each in trials_of({"a": [True, False]})
        ]
        result = self.run(str(written(tmp_path / "r.jsonl", steps)), "--k", "1")
        assert "each conversation counts as one case" in result.stderr
        assert "fewer than 30" in result.stderr

    @pytest.mark.parametrize("k", ["0", "x", "", "1,2000"])
    def test_an_invalid_k_is_an_error(self, tmp_path: Path, k: str) -> None:
        self.run(str(written(tmp_path / "r.jsonl", trials_of(MADE))), "--k", k, code=2)

    def test_an_invalid_results_file_is_an_error(self, tmp_path: Path) -> None:
        (tmp_path / "r.jsonl").write_text('{"a": 1}\n')
        assert "line 1: no result" in self.run(str(tmp_path / "r.jsonl"), code=2).stderr
