"""Cases from recorded runs: content, secrets, grades."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from pandaeval_collector.cli import app
from pandaeval_lab.cases.files import case_file, freeze, read_suite
from support.secrets import make, plant
from support.trials import run, write

CALLS = [
    ("get_invoice", {"id": "inv_1", "date": "2026-01-05", "code": "1e5", "ok": "yes"}, {"status": "draft"}),
    ("send_invoice", {"id": "inv_1"}, "Error: not finalized"),
    ("send_invoice", {"id": "inv_1"}, {"status": "sent"}),
]
TOOLS = [{"name": "send_invoice", "description": "Sends", "parameters": {"type": "object"}}]


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    runs = [
        run(1, calls=CALLS[:1], session="s 1", tools=TOOLS),
        run(2, task="Now send it", calls=CALLS[1:], session="s 1"),
        run(3, task="Other"),
    ]
    return write(tmp_path_factory.mktemp("frozen") / "traces.jsonl", runs)


def frozen(traces: Path, id_: str, output: Path, *options: str) -> str:
    done = CliRunner().invoke(
        app, ["cases", "from-trace", id_, "--file", str(traces), "--output", str(output), *options]
    )
    assert done.exit_code == 0, done.output
    return output.read_text()


def test_session_becomes_a_case_with_open_expectations(traces: Path, tmp_path: Path) -> None:
    text = frozen(traces, "s 1", tmp_path / "case.yaml", "--case", "late")
    (case,) = read_suite(tmp_path / "case.yaml").cases
    assert (case.id, case.description, case.kind, case.source) == (
        "late",
        "",
        "regression",
        "session s 1",
    )
    assert case.task == "Send invoice inv_1"
    assert case.open == ("expected_tools",)
    assert case.recorded is not None
    assert case.recorded.messages == ("Send invoice inv_1", "Now send it")
    assert [call.tool_name for call in case.recorded.calls] == ["get_invoice", "send_invoice", "send_invoice"]
    assert case.recorded.calls[0].parameters == CALLS[0][1], "texts are not read as dates, numbers or booleans"
    assert case.recorded.calls[2].result == {"status": "sent"}
    assert [tool.name for tool in case.recorded.tools] == ["send_invoice"]
    assert text.startswith("# Made from a recorded run")


@pytest.mark.parametrize(("expected", "word"), [("send_invoice", "1/1"), ("cancel_invoice", "0/1")])
def test_expectations_added_to_a_recorded_case_decide_the_trial(
    traces: Path, tmp_path: Path, expected: str, word: str
) -> None:
    path = tmp_path / "case.yaml"
    case = yaml.safe_load(frozen(traces, "s 1", path))["cases"][0]
    case.pop("open")
    case["expected_tools"] = [{"tool_name": expected, "parameters": {"id": "inv_1"}}]
    path.write_text(yaml.safe_dump([case]))
    options = ["--cases", str(path), "--metrics", "trial_correct"]
    done = CliRunner().invoke(app, ["evaluate", str(traces), *options])
    row = next(line for line in done.stdout.splitlines() if line.startswith("frozen-s 1"))
    assert row.split()[3] == word


def test_planted_secrets_are_not_written_to_a_case(traces: Path) -> None:
    inspected = CliRunner().invoke(app, ["inspect", str(traces), "--format", "json"]).stdout.splitlines()
    told = [each for each in map(json.loads, inspected) if each["session_id"] == "s 1"]
    draw = random.Random(5)
    secrets = [make(draw, number) for number in range(72)]
    for number, secret in enumerate(secrets):
        assert secret.value not in "".join(case_file([freeze(plant(draw, told, secret, number), "c")])), secret.text


def test_unknown_id_is_an_error(traces: Path) -> None:
    done = CliRunner().invoke(app, ["cases", "from-trace", "nobody", "--file", str(traces)])
    assert done.exit_code == 2
    assert "nobody: no trace or session in the files has this ID" in done.stderr


def test_case_schema_is_printed_and_a_trace_becomes_a_case(traces: Path, tmp_path: Path) -> None:
    schema = CliRunner().invoke(app, ["cases", "schema"])
    assert '"required_order"' in schema.stdout
    frozen(traces, f"{3:032x}", tmp_path / "case.yaml")
    (case,) = read_suite(tmp_path / "case.yaml").cases
    assert (case.id, case.kind, bool(case.open)) == (f"frozen-{3:032x}", "regression", True)
