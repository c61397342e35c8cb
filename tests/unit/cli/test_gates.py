"""Thresholds fail a run; missing scores without a valid reason fail it too."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from typer.testing import CliRunner

from pandaeval_collector.cli import app
from pandaeval_collector.config import Config
from pandaeval_collector.show.view.rates import OutcomeCounts
from pandaeval_collector.store.failures import Failure
from pandaeval_lab.cli._gates import outcome_of, severity_gate, unscored_notes
from pandaeval_lab.cli._names import with_trials
from pandaeval_lab.cli._summary import Summary
from pandaeval_lab.replay.root_causes import RootCause

KEY = "trace.coherence"
Counts = dict[tuple[str, str], int]


def _tally(counts: Counts) -> OutcomeCounts:
    tally = OutcomeCounts()
    for (outcome, why), count in counts.items():
        tally.add(outcome, None, why, count)
    return tally


def _one(counts: Counts, mean: float | None = None, threshold: float = 0.5, most: float = 0.2) -> tuple[bool, str]:
    return outcome_of(threshold, most, _tally(counts), mean or 0.0)


def test_the_mean_score_decides_the_gate() -> None:
    assert _one({("scored", ""): 4}, 0.5 - 1e-12) == (True, "")
    passed, text = _one({("scored", ""): 4}, 0.49)
    assert not passed
    assert text.startswith("the mean of 4 scores is 0.4900")


@pytest.mark.parametrize(
    ("mean", "passes"),
    [(0.5, True), (0.5 - 1e-9, True), (math.nextafter(0.5 - 1e-9, 0.0), False), (0.5 - 1e-3, False), (0.6, True)],
)
def test_the_threshold_is_met_within_1e_9(mean: float, passes: bool) -> None:
    assert _one({("scored", ""): 4}, mean)[0] is passes


@pytest.mark.parametrize(("missing", "passes"), [(1, True), (2, True), (3, False)])
def test_the_gate_passes_up_to_the_allowed_share_of_missing_scores(missing: int, passes: bool) -> None:
    assert _one({("scored", ""): 10 - missing, ("unscored", "timeout"): missing}, 0.9)[0] is passes


def test_reasons_are_sorted_by_count_and_a_timeout_cure_wins_over_missing_content() -> None:
    counts = {("unscored", "over_budget"): 2, ("unscored", "timeout"): 3, ("unscored", "no_content"): 9}
    assert _one(counts)[1] == (
        "none of 14 results has a score (no_content 9, timeout 3, over_budget 2). "
        "The judge or the metric took too long. For a judge, raise judge.timeout, or lower judge.concurrency. "
        "For a metric without a judge, raise line.timeout."
    )


def test_a_reason_without_a_cure_is_listed_alone() -> None:
    assert _one({("unscored", "later"): 1})[1].endswith("none of 1 result has a score (later 1)")


@pytest.mark.parametrize(
    ("unclear", "others", "passes", "says"),
    [
        (4, 0, True, "passes unmeasured: 0 decided, 4 unclear"),
        (4, 1, True, ""),
        (3, 2, True, ""),
    ],
)
def test_unclear_verdicts_fail_no_gate(unclear: int, others: int, passes: bool, says: str) -> None:
    tally = OutcomeCounts()
    tally.add("scored", None, None, unclear, "unclear")
    tally.add("scored", True, None, others, "pass")
    assert outcome_of(0.5, 0.2, tally, 0.9 if others else 0.0) == (passes, says)


def test_unclear_verdicts_do_not_hide_missing_scores() -> None:
    tally = OutcomeCounts()
    tally.add("scored", None, None, 2, "unclear")
    tally.add("unscored", None, "timeout", 1)
    passed, text = outcome_of(0.5, 0.2, tally, 0.0)
    assert not passed
    assert "1 of 3 results have no score" in text


def test_a_threshold_of_zero_is_checked() -> None:
    assert not _one({("unscored", "judge_failed"): 1}, threshold=0.0)[0]
    assert _one({("scored", ""): 1}, 0.0, threshold=0.0)[0]


@pytest.mark.parametrize(
    ("counts", "passes", "says"),
    [
        ({("assumed", ""): 3}, True, "nothing to evaluate in 3 results (assumed)"),
        (
            {("unscored", "no_content"): 3},
            False,
            "none of 3 results has a score (no_content 3). These runs lack content",
        ),
        ({("unscored", "no_content"): 1, ("assumed", ""): 2}, False, "none of 1 result has a score"),
        ({("unscored", "judge_failed"): 1, ("unscored", "no_content"): 8}, False, "none of 9 results has a score"),
        ({("unscored", "not_sampled"): 2}, False, "judge.sample is below 1"),
        ({("unscored", "metric_error"): 2, ("assumed", ""): 2}, False, "A metric or the embedder raised an error"),
    ],
)
def test_a_gate_without_scores_fails_unless_all_results_are_assumed(counts: Counts, passes: bool, says: str) -> None:
    passed, text = _one(counts)
    assert passed is passes
    assert says in text


def test_too_many_results_without_a_score_fail_the_gate() -> None:
    counts = {("scored", ""): 7, ("unscored", "judge_failed"): 3}
    passed, text = _one(counts, 0.9)
    assert not passed
    assert (
        "3 of 10 results have no score (30%, and gates.max_unscored is 20%), most often because of judge_failed" in text
    )
    assert _one(counts, 0.9, most=0.3) == (True, "")


def test_results_not_captured_or_not_sampled_do_not_count_as_unscored() -> None:
    counts = {("scored", ""): 4, ("unscored", "no_content"): 90, ("unscored", "not_sampled"): 90}
    assert _one(counts, 0.9) == (True, "")
    assert not _one({**counts, ("unscored", "timeout"): 2}, 0.9)[0]


def test_a_low_mean_and_missing_scores_are_both_reported() -> None:
    text = _one({("scored", ""): 1, ("unscored", "timeout"): 1}, 0.1)[1]
    assert "is 0.1000; --format json shows all of them, --format html shows the failures; 1 of 2" in text
    assert "raise judge.timeout" in text


def test_the_gate_value_is_in_the_raw_scale_of_the_metric() -> None:
    summary = Summary()
    fields = {"level": "turn", "metric": "helpfulness", "outcome": "scored", "why": None, "success": True}
    fields |= {"reason": "", "agent": "", "metadata": {}, "session_id": None, "trace_id": "1", "span_id": "2"}
    for raw in (4, 5):
        summary.add({**fields, "raw": raw, "score": (raw - 1) / 4})
    assert summary.values() == {"turn.helpfulness": 4.5}
    assert summary.means() == {"turn.helpfulness": 0.875}


@pytest.mark.parametrize(("threshold", "passes"), [(3.5, True), (3.8, True), (3.81, False)])
def test_the_mean_of_raw_values_is_compared_with_the_threshold(threshold: float, passes: bool) -> None:
    """Mean of 4.2, 3.1, 4.5, 3.8, 4.0, 3.2: 3.8."""
    summary = Summary()
    fields = {"level": "turn", "metric": "helpfulness", "outcome": "scored", "why": None, "success": True}
    fields |= {"reason": "", "agent": "", "metadata": {}, "session_id": None, "trace_id": "1", "span_id": "2"}
    for raw in (4.2, 3.1, 4.5, 3.8, 4.0, 3.2):
        summary.add({**fields, "raw": raw, "score": (raw - 1) / 4})
    key = "turn.helpfulness"
    assert summary.values() == {key: pytest.approx(3.8, abs=1e-12)}
    assert outcome_of(threshold, 0.2, summary.tallies[key], summary.values()[key])[0] is passes
    assert [each.value for each in summary.worst(key)] == [3.1, 3.2, 3.8]


# -- the command ---------------------------------------------------------------------------------------------------


def _span(number: int, **attributes: str) -> dict[str, Any]:
    return {
        "traceId": f"{number:032x}",
        "spanId": f"{number:016x}",
        "name": "invoke_agent desk",
        "startTimeUnixNano": str(10**18 + number),
        "endTimeUnixNano": str(10**18 + number + 10**9),
        "attributes": [
            {"key": key, "value": {"stringValue": value}}
            for key, value in {
                "gen_ai.operation.name": "invoke_agent",
                "gen_ai.agent.name": "desk",
                **attributes,
            }.items()
        ],
    }


def _text(role: str, text: str) -> str:
    return json.dumps([{"role": role, "parts": [{"type": "text", "content": text}]}])


def _said(question: str, answer: str) -> dict[str, str]:
    return {
        "gen_ai.input.messages": _text("user", question),
        "gen_ai.output.messages": _text("assistant", answer),
    }


def _evaluate(folder: Path, spans: list[dict[str, Any]], config: str, *options: str) -> Result:
    traces, settings = folder / "traces.jsonl", folder / "pandaeval.yaml"
    traces.write_text(json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}))
    settings.write_text(config)
    return CliRunner().invoke(app, ["evaluate", str(traces), "--config", str(settings), *options])


ON_TOPIC = _said("When does the library in Turin open?", "The library in Turin opens at nine in the morning.")


def test_a_session_metric_without_session_ids_passes_with_a_notice(tmp_path: Path) -> None:
    config = "metrics: {thresholds: {agent_reliability: 0.5, loop_detection: 0.5}}"
    done = _evaluate(tmp_path, [_span(1, **ON_TOPIC)], config)
    assert done.exit_code == 0, done.output
    for key in ("session.agent_reliability", "trace.loop_detection"):
        assert (
            f"notice: {key} (threshold 0.5): passes unmeasured: no trace of the input has a session id; have the "
            "application set gen_ai.conversation.id (or session.id) on its spans" in done.stderr
        )


def test_a_threshold_without_scores_fails_with_a_hint_to_capture_content(tmp_path: Path) -> None:
    done = _evaluate(tmp_path, [_span(1), _span(2)], "metrics: {thresholds: {trace.coherence: 0.5}}")
    assert done.exit_code == 1, done.output
    assert "failed: trace.coherence (threshold 0.5): none of 2 results has a score (no_content 2)" in done.stderr
    assert "To capture content" in done.stderr
    also_missed = _evaluate(
        tmp_path, [_span(1), _span(2, **ON_TOPIC)], "metrics: {thresholds: {trace.coherence: 0.99}}"
    )
    assert also_missed.exit_code == 1
    assert "failed: trace.coherence (threshold 0.99): the mean of 1 score is" in also_missed.stderr


def test_a_judged_metric_without_a_judge_cannot_be_checked(tmp_path: Path) -> None:
    done = _evaluate(tmp_path, [_span(1, **ON_TOPIC)], "metrics: {thresholds: {task_completion: 0.5}}")
    assert done.exit_code == 1
    assert "failed: trace.task_completion (threshold 0.5): cannot be checked: no judge is configured" in done.stderr


def test_thresholds_of_metrics_that_did_not_run_are_not_checked(tmp_path: Path) -> None:
    config = "metrics: {thresholds: {task_completion: 0.5, trace.coherence: 0.99}}"
    done = _evaluate(tmp_path, [_span(1, **ON_TOPIC)], config, "--metrics", "response")
    assert done.exit_code == 0, done.output
    assert done.stderr.count(": not checked: the metric is not selected (--metrics, metrics.enabled)\n") == 2


def test_a_result_below_a_default_threshold_does_not_fail_the_run(tmp_path: Path) -> None:
    silent = _said("When does the library in Turin open?", "")
    done = _evaluate(tmp_path, [_span(1, **silent)], "{}", "--format", "json")
    assert done.exit_code == 0, done.output
    results = map(json.loads, done.stdout.splitlines())
    assert [result["success"] for result in results if result["metric"] == "response"] == [False]


def test_a_metric_that_applies_to_nothing_passes_and_names_its_requirement(tmp_path: Path) -> None:
    done = _evaluate(tmp_path, [_span(1, **ON_TOPIC)], "metrics: {thresholds: {tool_loop: 0.5}}")
    assert done.exit_code == 0, done.output
    assert "does not apply to the input (it needs tool calls)" in done.stderr


def test_a_trial_metric_without_trials_cannot_be_checked(tmp_path: Path) -> None:
    done = _evaluate(tmp_path, [_span(1, **ON_TOPIC)], "metrics: {thresholds: {trial_correct: 0.5}}")
    assert done.exit_code == 1
    assert done.stderr.splitlines()[-1] == (
        "failed: trial.trial_correct (threshold 0.5): cannot be checked: no trace of the input is a trial of a case; "
        "name a case file with --cases"
    )


def test_gates_pass_with_a_notice_if_there_are_no_agent_traces(tmp_path: Path) -> None:
    span = _span(1) | {"name": "GET /", "attributes": []}
    done = _evaluate(tmp_path, [span], "metrics: {thresholds: {trace.coherence: 0.5}}")
    assert done.exit_code == 0, done.output
    assert "notice: trace.coherence (threshold 0.5): passes unmeasured: the input has no agent traces\n" in done.stderr


@pytest.mark.parametrize(
    ("metric", "only", "expected"),
    [
        ("trace.argument_correctness", "gen_ai.agent.name: [nobody]", True),
        ("trace.argument_correctness", "service.name: [nothing]", True),
        ("trace.argument_correctness", "tier: [gold]", True),
        ("trace.tool_loop", "gen_ai.agent.name: [nobody]", False),
    ],
)
def test_the_notice_names_judge_only_as_a_reason_for_judged_metrics(
    tmp_path: Path, metric: str, only: str, expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    config = f"{{metrics: {{thresholds: {{{metric}: 0.5}}}}, judge: {{model: openai/none, only: {{{only}}}}}}}"
    done = _evaluate(tmp_path, [_span(1, **ON_TOPIC)], config, "--metrics", metric)
    assert done.stderr.endswith("); judge.only excludes traces\n" if expected else ")\n")
    assert "passes unmeasured: the metric does not apply to the input (it needs " in done.stderr


def test_a_missed_threshold_lists_the_worst_traces_first(tmp_path: Path) -> None:
    off_topic = _said("When does the library in Turin open?", "Medieval masons marked every block of stone they cut.")
    config = "metrics: {thresholds: {trace.coherence: 0.99}}"
    done = _evaluate(tmp_path, [_span(1, **ON_TOPIC), _span(2, **off_topic)], config)
    assert done.exit_code == 1
    examples = [line for line in done.stderr.splitlines() if " in trace " in line]
    assert [line.split(":")[0].split()[-1] for line in examples] == [f"{2:032x}", f"{1:032x}"], "worst trace first"
    assert examples[0].startswith("  0 in trace ")


NOTHING = "trace.tool_loop has no result: the metric does not apply to the input (it needs tool calls)"
NO_TRIAL = "has no result: cannot be checked: no trace of the input is a trial of a case; name a case file with --cases"


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ("tool_loop", [NOTHING]),
        ("trace.coherence", []),
        ("trial.tool_correctness", [f"trial.tool_correctness {NO_TRIAL}"]),
        ("end_state", []),
    ],
)
def test_a_metric_selected_by_name_without_results_gets_a_reason(
    tmp_path: Path, asked: str, expected: list[str]
) -> None:
    done = _evaluate(tmp_path, [_span(1, **ON_TOPIC)], "{}", "--metrics", asked)
    assert done.exit_code == 0, done.output
    found_notes = [line.partition(": ")[2] for line in done.stderr.splitlines() if "has no result" in line]
    assert found_notes == expected


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("trial.exit_code", ["trial.end_state has no result: the metric does not apply to the input"]),
        ("trace.coherence", []),
    ],
)
def test_a_bare_metric_name_means_trials_only_if_a_trial_was_graded(given: str, expected: list[str]) -> None:
    summary = Summary()
    summary.agents_traces, summary.tallies[given] = 1, OutcomeCounts(1)
    found_notes = unscored_notes(with_trials(Config()), summary, ["end_state"])
    assert [each.partition(" (it needs")[0] for each in found_notes] == expected


def test_the_gate_text_counts_incidents_in_singular_and_plural() -> None:
    failure = Failure("r1", "m", "false information", "It was made up.", trace_id="ab" * 16)
    group = RootCause("Made-up weather", "It answers without data.", "critical", (failure,))
    assert " 1 incident with this severity" in severity_gate([group], "critical").text
    assert " 2 incidents with this severity" in severity_gate([group] * 2, "critical").text
