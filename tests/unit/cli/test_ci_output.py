"""Output for CI: JUnit and JSON."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from click.testing import Result
from typer.testing import CliRunner

from pandaeval_collector.cli import app
from pandaeval_collector.store.failures import Failure
from pandaeval_lab.cli._ci import write_junit
from pandaeval_lab.cli._gates import GateOutcome, severity_gate
from pandaeval_lab.cli._summary import Summary
from pandaeval_lab.replay.root_causes import RootCause
from support.reports import parsed

HOSTILE = "a::error::b\n::set-env name=X::y%0A, | <b>`x`</b> [l](http://e) \x1b[31m \x00"
GATES = [
    GateOutcome(
        "trace.coherence", False, "trace.coherence (threshold 0.5): the mean of 2 scores is 0.1000", ("0 in trace ab",)
    ),
    GateOutcome("trace.response", True),
    GateOutcome("trace.tool_loop", True, "trace.tool_loop (threshold 0.5): passes unmeasured"),
]


def group(severity: str, title: str = "Made-up weather", number: int = 1) -> RootCause:
    failure = Failure(f"r{number}", "m", "false information", "It was made up.", trace_id="ab" * 16)
    return RootCause(title, "It answers without data.", severity, (failure,))


def summary(*groups: RootCause) -> Summary:
    made = Summary()
    fields = {"level": "trace", "outcome": "scored", "why": None, "success": False, "reason": "", "agent": "desk"}
    for number, name in enumerate(("coherence", "confidence")):
        made.add({**fields, "metric": name, "metadata": {}, "session_id": None, "trace_id": str(number), "score": 0.1})
    made.groups = groups
    return made


# -- severities ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("least", "failing"),
    [("critical", 1), ("high", 2), ("medium", 3), ("low", 4), (None, 0)],
)
def test_incidents_at_or_above_the_configured_severity_fail_the_gate(least: str | None, failing: int) -> None:
    ladder = ("low", "medium", "high", "critical")
    for passing, severity in enumerate(ladder):
        assert severity_gate([group(severity)], least).passed is (passing < len(ladder) - failing)
    gate = severity_gate([group(each) for each in ladder], least)
    assert gate.passed is (failing == 0)
    if failing:
        assert f"fail_on_error_severity {least}" in gate.text
        assert gate.examples[0] == "[low] Made-up weather (1 occurrence(s)): trace abababababab" or failing < 4


# -- JUnit -----------------------------------------------------------------------------------------------------------


def test_junit_reports_thresholds_incidents_and_metrics_without_a_threshold() -> None:
    target = io.StringIO()
    gates = [*GATES, severity_gate([group("critical")], "critical")]
    write_junit(target, gates, summary(group("critical"), group("low", HOSTILE, 2)), "critical")
    root = ElementTree.fromstring(target.getvalue().partition("\n")[2])
    suites = {suite.get("name"): suite for suite in root}
    counts = {name: (s.get("tests"), s.get("failures"), s.get("skipped")) for name, s in suites.items()}
    assert counts == {
        "pandaeval thresholds": ("3", "1", "1"),
        "pandaeval failures": ("2", "1", "0"),
        "pandaeval metrics": ("1", "0", "0"),
    }
    failure = root.find(".//testcase[@name='trace.coherence']/failure")
    assert failure is not None
    assert failure.text is not None
    assert failure.text.endswith("is 0.1000\n0 in trace ab")
    grave = root.find(".//failure[@type='critical']")
    assert grave is not None
    assert "trace abababababab: false information: It was made up." in (grave.text or "")
    assert root.find(".//testcase[@name='trace.confidence']/system-out") is not None


# -- the command -----------------------------------------------------------------------------------------------------


def _span(number: int, **attributes: str) -> dict[str, Any]:
    said = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "desk", **attributes}
    text = {"role": "user", "parts": [{"type": "text", "content": "When does it open?"}]}
    return {
        "traceId": f"{number:032x}",
        "spanId": f"{number:016x}",
        "name": "invoke_agent desk",
        "startTimeUnixNano": str(10**18 + number),
        "endTimeUnixNano": str(10**18 + number + 10**9),
        "status": {"code": 2, "message": "boom"},
        "attributes": [
            {"key": key, "value": {"stringValue": value}}
            for key, value in {**said, "gen_ai.input.messages": json.dumps([text])}.items()
        ],
    }


def evaluate(folder: Path, config: str, *options: str, **environ: str) -> Result:
    traces, settings = folder / "traces.jsonl", folder / "pandaeval.yaml"
    traces.write_text(json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [_span(1), _span(2)]}]}]}))
    settings.write_text(config)
    return CliRunner().invoke(app, ["evaluate", str(traces), "--config", str(settings), *options], env=environ)


def test_evaluate_fails_from_the_configured_incident_severity_on(tmp_path: Path) -> None:
    assert evaluate(tmp_path, "{}").exit_code == 0, "by default only critical incidents fail the run"
    done = evaluate(tmp_path, "gates: {fail_on_error_severity: medium}")
    assert done.exit_code == 1
    assert "Unique errors:\n  [medium] error: boom (2 occurrence(s))" in done.stdout
    assert "failed: failures (fail_on_error_severity medium): 1 incident" in done.stderr
    assert "  [medium] error: boom (2 occurrence(s)): trace 000000000000" in done.stderr


def test_failed_json_results_name_their_incident(tmp_path: Path) -> None:
    done = evaluate(tmp_path, "{}", "--format", "json")
    results = [json.loads(line) for line in done.stdout.splitlines()]
    groups = [each["metadata"]["failure_group"] for each in results if each["metric"] == "response"]
    assert [group["occurrences"] for group in groups] == [2, 2]
    assert len({group["id"] for group in groups}) == 1
    assert sum("failure_group" in each["metadata"] for each in results) == 2


def test_evaluate_with_format_junit_reports_a_missed_threshold(tmp_path: Path) -> None:
    settings = "metrics: {thresholds: {response: 0.5}}"
    done = evaluate(tmp_path, settings, "--format", "junit")
    assert done.exit_code == 1
    root = ElementTree.fromstring(done.stdout.partition("\n")[2])
    assert root.find(".//testcase[@name='trace.response']/failure") is not None
    assert "failed: trace.response (threshold 0.5): the mean of 2 scores is 0.0000" in done.stderr
    assert "  0 in trace 00000000000000000000000000000001: " in done.stderr


def test_the_html_report_lists_incidents(tmp_path: Path) -> None:
    output = tmp_path / "report.html"
    assert evaluate(tmp_path, "{}", "--format", "html", "--output", str(output)).exit_code == 0
    [shown] = parsed(output.read_text()).index["about"]["failures"]
    assert (shown["title"], shown["occurrences"]) == ("error: boom", 2)
