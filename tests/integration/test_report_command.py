"""``evaluate --format html``."""

from __future__ import annotations

import lzma
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from pandaeval_collector.cli import app
from pandaeval_lab.cli._formats import default_file
from support.judged import trace
from support.reports import parsed, report, result

GOLDEN = Path(__file__).parents[1] / "golden" / "captures"


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    packed = files("pandaeval_lab.cli._recordings").joinpath("sessions.otlp.jsonl.xz").read_bytes()
    file = tmp_path_factory.mktemp("recording") / "demo.jsonl"
    file.write_bytes(lzma.decompress(packed))
    return file


def _evaluate(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, ["evaluate", "--format", "html", *map(str, arguments)])


def test_a_report_has_the_results_of_the_json_output(recording: Path, tmp_path: Path) -> None:
    import json

    file = tmp_path / "report.html"
    outcome = _evaluate(recording, "--output", file)
    assert outcome.exit_code == 0, outcome.output
    assert "10 sessions, 30 traces" in outcome.stderr
    assert str(file) in outcome.stderr
    lines = CliRunner().invoke(app, ["evaluate", str(recording), "--format", "json"]).stdout.splitlines()
    expected = {
        (
            r["session_id" if r["level"] == "session" else "trace_id"],
            f"{r['level']}.{r['metric']}",
            r["score"],
            r["why"],
        )
        for r in map(json.loads, lines)
    }
    index = parsed(file.read_text()).index
    shown = {
        (unit["id"], r["metric"], r.get("score"), r.get("why"))
        for unit in (*index["traces"], *index["sessions"])
        for r in unit["results"]
    }
    assert {metric.partition(".")[0] for _, metric, _, _ in expected} == {"trace", "turn", "session"}
    assert shown == expected


def test_bad_sessions_are_listed_before_good_ones(recording: Path, tmp_path: Path) -> None:
    import json

    _evaluate(recording, "--output", tmp_path / "report.html")
    index = parsed((tmp_path / "report.html").read_text()).index
    expected = json.loads(files("pandaeval_lab.cli._recordings").joinpath("expected.json").read_text())
    ranked = [index["sessions"][at]["id"] for kind, at in index["order"] if kind == "s"]
    bad = set(expected["bad"])
    assert set(ranked[: len(bad)]) == bad


def test_the_default_output_is_stdout_for_a_pipe_and_a_file_for_a_terminal(recording: Path) -> None:
    outcome = _evaluate(recording)
    assert outcome.stdout.startswith("<!DOCTYPE html>")
    assert "open it in a browser" in outcome.stderr
    assert default_file(terminal=True) == Path("pandaeval-report.html")
    assert default_file(terminal=False) is None


def test_a_report_contains_file_names_without_folders(recording: Path, tmp_path: Path) -> None:
    _evaluate(recording, "--output", tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert parsed(page).index["about"]["sources"] == [recording.name]
    assert str(recording.parent) not in page


def test_a_report_of_all_golden_captures_has_details_of_every_trace(tmp_path: Path) -> None:
    found = sorted(each for each in GOLDEN.rglob("*") if each.name.endswith((".jsonl", ".jsonl.xz")))
    assert found
    outcome = _evaluate(*found, "--output", tmp_path / "report.html")
    assert outcome.exit_code == 0, outcome.output
    made = parsed((tmp_path / "report.html").read_text())
    assert len(made.details) == len(made.index["traces"]) > 100


def test_a_report_without_agent_traces_states_it(tmp_path: Path) -> None:
    source = tmp_path / "plain.jsonl"
    span = (
        '{"traceId":"0af7651916cd43dd8448eb211c80319c","spanId":"b7ad6b7169203331","name":"GET /",'
        '"startTimeUnixNano":"1","endTimeUnixNano":"2"}'
    )
    source.write_text('{"resourceSpans":[{"scopeSpans":[{"spans":[' + span + "]}]}]}\n")
    outcome = _evaluate(source, "--output", tmp_path / "report.html")
    assert outcome.exit_code == 0
    assert "No agent traces" in outcome.stderr
    index = parsed((tmp_path / "report.html").read_text()).index
    assert index["traces"] == []
    assert index["about"]["without_agents"] == 1


def test_an_empty_file_exits_with_2(tmp_path: Path) -> None:
    source = tmp_path / "empty.jsonl"
    source.touch()
    outcome = _evaluate(source, "--output", tmp_path / "report.html")
    assert outcome.exit_code == 2
    assert "the file is empty" in outcome.stderr


def test_a_missed_threshold_exits_with_1_and_still_writes_the_report(recording: Path, tmp_path: Path) -> None:
    config = tmp_path / "pandaeval.yaml"
    config.write_text("metrics: {thresholds: {trace.coherence: 0.99}}\n")
    outcome = _evaluate(recording, "--output", tmp_path / "report.html", "--config", config)
    assert outcome.exit_code == 1
    assert parsed((tmp_path / "report.html").read_text()).index["metrics"]["trace.coherence"]["threshold"] == 0.99


def test_a_report_counts_unreadable_lines(recording: Path, tmp_path: Path) -> None:
    source = tmp_path / "torn.jsonl"
    source.write_bytes(recording.read_bytes() + b'{"resourceSpans": [\n')
    _evaluate(source, "--output", tmp_path / "report.html")
    about = parsed((tmp_path / "report.html").read_text()).index["about"]
    assert about["unreadable"] == 1
    assert about["problems"]


def test_a_crashed_run_is_listed_before_a_failed_run() -> None:
    broken, off_topic = (replace(trace(), trace_id=f"{no:032x}", session_id=None) for no in (1, 2))
    made = report([replace(broken, error="TimeoutError"), off_topic], [result(off_topic, finding=0.1)])
    assert [made.index["traces"][at]["id"] for _, at in made.index["order"]] == [broken.trace_id, off_topic.trace_id]
