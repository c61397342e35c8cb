"""``pandaeval evaluate --cases`` over recorded trials."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from typer.testing import CliRunner

from pandaeval_collector.cli import app
from support.reports import parsed
from support.trials import run, write

SUITE = """
name: invoices
cases:
- id: send
  description: Finalize before sending
  inputs: {task: "Send invoice inv_1"}
  expected_outcome: {invoice_status: sent, end_state: {lines: {count: 2}}}
  expected_tools:
  - {tool_name: finalize_invoice, parameters: {id: inv_1}}
  - {tool_name: send_invoice, parameters: {id: inv_1}}
  forbidden_tools: [delete_*]
  required_order: [finalize_invoice, send_invoice]
  minimum_steps: 2
- id: refuse
  kind: capability
  inputs: {task: Delete all}
  expected_tools: []
"""
RIGHT = [("finalize_invoice", {"id": "inv_1"}), ("send_invoice", {"id": "inv_1"})]
SENT = {"invoice_status": "sent", "lines": {"count": 2, "more": 1}}
METRICS = "trial_correct"


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("cases")
    runs = [
        run(1, case="send", trial="1", calls=RIGHT, state=SENT),
        run(2, case="send", trial="2", calls=RIGHT[1:], state={"invoice_status": "draft"}),
        run(3, calls=[*RIGHT, ("delete_invoice", {"id": "inv_1"})], event_state=SENT),  # matched by its input
        run(4, case="refuse", trial="1", task="Delete all", answer="That I may not do."),
        run(5, case="unknown", task="x"),
        run(6, task="Something else"),
    ]
    (folder / "suite.yaml").write_text(SUITE)
    return write(folder / "traces.jsonl", runs), folder / "suite.yaml"


def evaluate(files: tuple[Path, Path], *options: str) -> Any:
    return CliRunner().invoke(app, ["evaluate", str(files[0]), "--cases", str(files[1]), *options])


@pytest.fixture(scope="module")
def told(files: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, list[dict[str, Any]], Path]:
    report = tmp_path_factory.mktemp("report") / "layers.xml"
    asked = ("trial_correct", "response", "forbidden_tools", "tool_correctness", "trial.plan_quality", "end_state")
    metrics = ("--metrics", ",".join((*asked, "tool_routing_accuracy")))
    evaluate(files, *metrics, "--format", "junit", "--output", str(report))
    done = evaluate(files, "--format", "json", *metrics)
    return done, [json.loads(line) for line in done.stdout.splitlines()], report


def of(results: list[dict[str, Any]], metric: str) -> dict[tuple[str, str], dict[str, Any]]:
    found = [each for each in results if each["metric"] == metric and each["level"] == "trial"]
    return {(each["metadata"]["case"], each["metadata"]["trial"]): each for each in found}


BY_INPUT = f"{3:032x}"


def test_trial_results_appear_beside_trace_and_task_results(told: tuple[Any, list[dict[str, Any]], Path]) -> None:
    _, results, _ = told
    assert {each["level"] for each in results} == {"trace", "trial", "task"}
    correct = of(results, "trial_correct")
    assert {key: each["score"] for key, each in correct.items()} == {
        ("send", "1"): 1.0,
        ("send", "2"): 0.0,
        ("send", BY_INPUT): 0.0,
        ("refuse", "1"): 1.0,
    }
    right = correct["send", "1"]
    assert right["metadata"]["layer"] == "outcome"
    assert right["metadata"]["case_kind"] == "regression"
    assert right["metadata"]["suite"] == "invoices"
    graders = {"end_state", "forbidden_tools", "tool_correctness", "required_order"}
    assert {*right["metadata"]["graders"]} == graders
    assert right["evaluator"]["kind"] == "code"
    assert correct["refuse", "1"]["metadata"]["case_kind"] == "capability"


def test_each_case_has_pass_at_k_and_pass_pow_k_results(told: tuple[Any, list[dict[str, Any]], Path]) -> None:
    _, results, _ = told
    figures = {
        (each["metric"], each["metadata"]["case"], each["metadata"]["k"]): each["score"]
        for each in results
        if each["level"] == "task"
    }
    assert figures == {
        ("pass_at_k", "send", 1): pytest.approx(1 / 3),
        ("pass_at_k", "send", 3): pytest.approx(1.0),
        ("pass_pow_k", "send", 1): pytest.approx(1 / 3),
        ("pass_pow_k", "send", 3): 0.0,
        ("pass_at_k", "refuse", 1): 1.0,
        ("pass_at_k", "refuse", 3): None,
        ("pass_pow_k", "refuse", 1): 1.0,
        ("pass_pow_k", "refuse", 3): None,
    }


def test_graders_report_scores_and_reasons(told: tuple[Any, list[dict[str, Any]], Path]) -> None:
    _, results, _ = told
    assert of(results, "end_state")["send", "2"]["reason"] == (
        "invoice_status: expected 'sent', is 'draft'; lines: expected {'count': 2}, is None"
    )
    assert of(results, "end_state")["send", BY_INPUT]["success"] is True
    assert of(results, "forbidden_tools")["send", BY_INPUT]["reason"] == "called: delete_invoice"
    tools = of(results, "tool_correctness")["send", "2"]
    assert tools["score"] == pytest.approx(0.25 * (2 / 3 + 0.5 + 0.5 + 1.0))
    assert tools["metadata"]["gates"] is True
    plan = of(results, "plan_quality")
    assert plan["send", "2"]["score"] == 0.5
    assert plan["send", BY_INPUT]["metadata"]["extra_steps"] == 1
    assert plan["refuse", "1"]["outcome"] == "assumed"


def trials_of(report: Path) -> dict[str, dict[str, Any]]:
    """Return JUnit trials: broken layer, reason, layer states."""
    trials = {}
    for test in ElementTree.parse(report).iter("testcase"):
        layers = {str(each.get("name")).removeprefix("layer."): each.get("value") for each in test.iter("property")}
        broke = [failure.get("type") for failure in test.iter("failure")]
        untold = [skipped.get("message") for skipped in test.iter("skipped")]
        trials[str(test.get("name"))] = {"broke": (broke or [None])[0], "untold": (untold or [None])[0], **layers}
    return trials


def test_junit_report_shows_the_broken_layer_of_each_trial(told: tuple[Any, list[dict[str, Any]], Path]) -> None:
    done, _, path = told
    assert {name: trial["broke"] for name, trial in trials_of(path).items()} == {
        "send [1]": None,
        "send [2]": "action",
        f"send [{BY_INPUT}]": "action",
        "refuse [1]": None,
    }
    assert "1 traces name the case unknown, which is not in the file" in done.stderr


def test_junit_report_does_not_depend_on_the_selected_metrics(
    files: tuple[Path, Path], told: tuple[Any, list[dict[str, Any]], Path], tmp_path: Path
) -> None:
    done = evaluate(files, "--format", "json", "--metrics", "trial_correct")
    evaluate(files, "--format", "junit", "--metrics", "trial_correct", "--output", str(tmp_path / "r.xml"))
    assert {json.loads(line)["metric"] for line in done.stdout.splitlines()} == {
        "trial_correct",
        "pass_at_k",
        "pass_pow_k",
    }
    assert trials_of(tmp_path / "r.xml") == trials_of(told[2])
    second = trials_of(tmp_path / "r.xml")["send [2]"]
    assert [second[layer] for layer in ("reasoning", "action", "outcome")] == ["-", "fail", "fail"]


def test_reasoning_layer_is_not_graded_without_a_plan(tmp_path: Path) -> None:
    suite = "- {id: send, expected_tools: [{tool_name: look}, {tool_name: book}]}\n- {id: idle, expected_tools: []}\n"
    (tmp_path / "suite.yaml").write_text(suite)
    runs = [run(1, case="send", trial="1", calls=[("pay", {})]), run(2, case="idle", trial="1", calls=[("pay", {})])]
    done = evaluate(
        (write(tmp_path / "t.jsonl", runs), tmp_path / "suite.yaml"),
        *("--format", "junit", "--output", str(tmp_path / "r.xml")),
    )
    assert done.exit_code == 0, done.output
    trials = trials_of(tmp_path / "r.xml")
    assert (trials["send [1]"]["broke"], trials["send [1]"]["reasoning"]) == ("action", "-")
    assert trials["idle [1]"]["reasoning"] == "-", "nothing to compare with"


def test_layer_without_graders_is_hidden_and_its_requirements_are_named(
    files: tuple[Path, Path], tmp_path: Path
) -> None:
    (tmp_path / "suite.yaml").write_text("- {id: send, forbidden_tools: [delete_*]}\n")
    done = evaluate((files[0], tmp_path / "suite.yaml"), "--metrics", "trial_correct")
    (row,) = (line for line in done.stdout.splitlines() if line.startswith("send"))
    assert row.split()[3:] == ["pass"], "layers that grade nothing have no column"
    assert "to grade reasoning and action, give the case expected_tools" in " ".join(done.stdout.split())


def test_table_has_one_row_per_case_and_junit_one_test_per_trial(files: tuple[Path, Path], tmp_path: Path) -> None:
    done = evaluate(files, "--metrics", "trial_correct")
    evaluate(files, "--metrics", "trial_correct", "--format", "junit", "--output", str(tmp_path / "out.xml"))
    assert done.exit_code == 0, done.output
    rows = {
        line.split()[0]: line.split()[1:] for line in done.stdout.splitlines() if line.startswith(("send", "refuse"))
    }
    assert rows["send"][:2] == ["regression", "1/3"]
    assert rows["refuse"][:2] == ["capability", "1/1"]
    root = ElementTree.parse(tmp_path / "out.xml").getroot()
    assert root.attrib == {"name": "pandaeval", "tests": "4", "failures": "2", "errors": "0", "skipped": "0"}
    suites = {each.get("name"): each.get("tests") for each in root if each.tag == "testsuite"}
    assert suites == {
        "pandaeval regression": "3",
        "pandaeval capability": "1",
        "pandaeval thresholds": "0",
        "pandaeval failures": "0",
    }


def test_evaluate_fails_below_a_configured_trial_threshold(files: tuple[Path, Path], tmp_path: Path) -> None:
    config = tmp_path / "pandaeval.yaml"
    config.write_text("metrics: {thresholds: {trial_correct: 0.9}, enabled: [trial_correct]}\n")
    done = evaluate(files, "--config", str(config))
    assert done.exit_code == 1
    assert "trial.trial_correct (threshold 0.9): the mean of 4 scores is 0.5000" in done.stderr


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("- id: a\n- id: b\n- id: a\n", "suite.yaml:3: cases[2].id: the id a is also the id of cases[0]; rename"),
        ("", "suite.yaml: is empty; write a list of cases, such as - id: refund-3"),
        ("# cases\n", "suite.yaml: contains no cases; write a list of cases, such as - id: refund-3"),
        ("name: x\ncases:\n", "suite.yaml:2: cases: is empty; write a list, such as [{id: refund-3}]"),
        ('{"resourceSpans": []}\n{}', "suite.yaml: contains traces, not cases; pass cases with --cases"),
        ("- id: 12\n", "suite.yaml:1: cases[0].id: is not a text, but 12; put it into quotes"),
        ("- id: ''\n", "suite.yaml:1: cases[0].id: is empty"),
        ("- id: a\n  inputs: Do it\n", "cases[0].inputs: is not a map, such as {task: Send invoice inv_1}, but"),
        ("- id: a\n  task: Do it\n", "suite.yaml:2: cases[0].task: is not a field of a case; `pandaeval cases"),
        ("- id: a\n  expected_tools: send\n", "expected_tools: is not a list, such as [{tool_name: search}], but"),
        ("- id: a\n  expected_tools: [send]\n", "[0]: is not a map, such as {tool_name: search}, but 'send'"),
        ("- id: a\n  expected_tools:\n  - name: x\n    arguments: {}\n",
         "suite.yaml:4: cases[0].expected_tools[0].arguments: is not a field of an expected call; did you mean"),
        ("- id: a\n  expected_tools: [{name: x, compare_args: {a: exactly}}]\n",
         "compare_args.a: input should be 'exact', 'text', 'number', 'unordered' or 'any', and is 'exactly'"),
        ("- id: a\n  counted_calls: {tools: change}\n",
         "cases[0].counted_calls.tools: input should be 'all' or 'changing', and is 'change'"),
        ("- id: a\n  output_format: {containz: [x]}\n", "is not a field of output_format; did you mean contains?"),
        ("- id: a\n  thresholds: {end_state: 75}\n", "input should be less than or equal to 1, and is 75"),
        ("- id: a\n  forbiden_tools: [x]\n", "suite.yaml:2: cases[0].forbiden_tools: is not a field of a case; did you "
         "mean forbidden_tools?"),
        ("- id: a\n  graders:\n  - end_stat\n", "suite.yaml:3: cases[0].graders[0]: there is no grader end_stat; did "
         "you mean end_state?"),
        ("- id: a\n  - b", "suite.yaml:2: is not valid YAML"),
        ("- id: a\n  expected_outcome: {x: &a {y: *a}}\n", "suite.yaml:2: is not valid YAML: it refers to itself"),
        ("cases: []", "suite.yaml:1: cases: is empty; write a list of cases"),
        ("- text", "suite.yaml:1: cases[0]: is not a map, such as {id: refund-3}, but 'text'"),
        ("- {description: x}", "suite.yaml:1: cases[0].id: is missing"),
        ("- id: a\n  tool_schemas: {x: {type: 5}}\n", "suite.yaml:2: cases[0].tool_schemas.x: is not a supported JSON"),
        ("- id: a\n  tool_weights: {selection: 1}\n", "give all of selection, parameters, sequence, utilization"),
        ("- id: a\n  minimum_steps: 0\n", "suite.yaml:2: cases[0].minimum_steps: input should be greater than"),
    ],
)  # fmt: skip
def test_error_in_a_suite_names_its_position_and_a_correction(
    files: tuple[Path, Path], tmp_path: Path, text: str, said: str
) -> None:
    wrong = tmp_path / "suite.yaml"
    wrong.write_text(text)
    done = CliRunner().invoke(app, ["evaluate", str(files[0]), "--cases", str(wrong)])
    assert done.exit_code == 2
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1  # without follow-up errors


def test_errors_in_a_suite_are_listed_in_file_order(tmp_path: Path) -> None:
    (tmp_path / "suite.yaml").write_text("- id: 1\n  kind: x\n- id: b\n  expected_tools: [x]\n  task: y\n- id: ''\n")
    done = CliRunner().invoke(app, ["evaluate", "-", "--cases", str(tmp_path / "suite.yaml")])
    lines = [line.split("suite.yaml:")[1].split(":")[0] for line in done.stderr.splitlines()]
    assert lines == ["1", "2", "4", "5", "6"]


def noticed(files: tuple[Path, Path], tmp_path: Path, suite: str) -> str:
    (tmp_path / "suite.yaml").write_text(suite)
    return str(evaluate((files[0], tmp_path / "suite.yaml"), "--metrics", "trial_correct").stderr)


def test_doubtful_cases_are_reported(files: tuple[Path, Path], tmp_path: Path) -> None:
    idle = noticed(
        files, tmp_path, "- {id: send}\n- {id: refuse, expected_tools: []}\n- {id: x, open: [expected_answer]}\n"
    )
    assert "cases without an expectation (send)" in idle
    same = "- {id: a, inputs: {task: x}, exit_code: 0}\n- {id: b, inputs: {task: x}, exit_code: 0}\n"
    assert "a, b have the same inputs.task: the spans must name the case" in noticed(files, tmp_path, same)
    assert "without anything" not in noticed(files, tmp_path, same)
    other = noticed(files, tmp_path, "- {id: a, inputs: {task: send invoice inv_1}, exit_code: 0}\n")
    assert "if its first user message equals inputs.task, such as 'Send invoice inv_1'" in other


def test_undecided_trial_has_a_reason(files: tuple[Path, Path], tmp_path: Path) -> None:
    (tmp_path / "suite.yaml").write_text("- {id: send}\n- {id: refuse, expected_answer: No.}\n")
    evaluate(
        (files[0], tmp_path / "suite.yaml"),
        *("--metrics", "trial_correct", "--format", "junit", "--output", str(tmp_path / "r.xml")),
    )
    trials = trials_of(tmp_path / "r.xml")
    assert trials["send [1]"]["untold"] == "the case contains no expectation that a run can fail"
    assert str(trials["refuse [1]"]["untold"]).startswith("answer_correctness: no judge is configured; set --model")
    assert trials["refuse [1]"]["outcome"] == "unscored"  # although the run ended normally


def test_the_html_report_has_a_row_for_each_case(files: tuple[Path, Path], tmp_path: Path) -> None:
    evaluate(files, "--format", "html", "--output", str(tmp_path / "report.html"), "--metrics", "trial_correct")
    index = parsed((tmp_path / "report.html").read_text(encoding="utf-8")).index
    rows = {each["case"]: each for each in index["about"]["cases"]}
    assert (rows["send"]["correct"], rows["send"]["trials"]) == (1, 3)
    assert rows["refuse"]["broke"] is None


@pytest.mark.parametrize(
    ("expected", "problem"),
    [
        ("forbidden_tools: [send_*]", "1 of 1 trial not correct: forbidden_tools: called: send_invoice"),
        (
            "expected_answer: Sent.",
            "none of 1 trial is correct, and a grader has no score: answer_correctness: no judge",
        ),
    ],
)
@pytest.mark.parametrize("kind", ["regression", "capability"])
def test_failing_regression_case_causes_a_notice_and_only_a_threshold_fails_evaluate(
    tmp_path: Path, kind: str, expected: str, problem: str
) -> None:
    suite, config = tmp_path / "suite.yaml", tmp_path / "pandaeval.yaml"
    suite.write_text(f"- {{id: send, kind: {kind}, inputs: {{task: Send it}}, {expected}}}\n")
    config.write_text("metrics: {thresholds: {trial_correct: 1}}\n")
    traces = write(tmp_path / "t.jsonl", [run(1, case="send", trial="1", calls=[("send_invoice", {})])])
    done = evaluate((traces, suite), "--metrics", "trial_correct")
    assert done.exit_code == 0, done.output
    assert (f"notice: case send: {problem}" in done.stderr) == (kind == "regression")
    assert ("only configured gates fail evaluate" in done.stderr) == (kind == "regression")
    assert evaluate((traces, suite), "--metrics", "trial_correct", "--config", str(config)).exit_code == 1
