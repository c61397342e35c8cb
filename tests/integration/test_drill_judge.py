"""A judge on a drill's copies: budget and failed calls."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from typer.testing import CliRunner

from pandaeval_collector.cli._app import app
from support.drilled import requests
from support.judge import JudgeServer, Say, text_of, verdict

pytestmark = pytest.mark.slow
FAULTS = "false_success,wrong_unit"
COUNT = 2
METRIC = "trace.confidence"


def sees_errors(number: int, body: dict[str, Any]) -> Say:
    """Doubt runs with a failed tool."""
    return Say(verdict(body, confidence=0.1 if _failed(body) else 0.9))


def breaks_down(number: int, body: dict[str, Any]) -> Say:
    """Fail on runs with a failed tool."""
    return Say(status=400) if _failed(body) else Say(verdict(body, confidence=0.9))


def _failed(body: dict[str, Any]) -> bool:
    return any("Error: " in text_of(message) for message in body["messages"])


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("drill") / "traces.pb"
    file.write_bytes(b"".join(len(each.data).to_bytes(4) + each.data for each in requests(COUNT)))
    return file


def drill(traces: Path, server: JudgeServer, tmp_path: Path, *more: str, form: str = "json") -> Result:
    config = tmp_path / "judged.yaml"
    judge = {"model": "openai/gpt-4o-mini", "api_base": server.url, "api_key_env": "JUDGE_KEY"}
    enabled = ["trace.response", "trace.tool_loop", METRIC]
    config.write_text(json.dumps({"judge": judge, "metrics": {"enabled": enabled}}))
    asked = ["drill", str(traces), "--faults", FAULTS, "--config", str(config), "--judge", "--format", form, *more]
    return CliRunner().invoke(app, asked, env={"JUDGE_KEY": "sk-test"})


def test_the_judges_verdicts_are_counted_as_those_of_other_metrics(traces: Path, tmp_path: Path) -> None:
    with JudgeServer(sees_errors) as server:
        found = drill(traces, server, tmp_path)
        asked = len(server.requests)
    assert found.exit_code == 0, found.output
    told = json.loads(found.stdout)
    judged, units = told["judge"], told["faults"]["wrong_unit"]["n"]
    assert judged["runs"] == COUNT + units
    assert {name: (fault["noticed"]["hits"], fault["n"]) for name, fault in judged["faults"].items()} == {
        "false_success": (COUNT, COUNT),
        "wrong_unit": (0, units),
    }
    assert {name: (share["hits"], share["n"]) for name, share in judged["untouched"].items()} == {
        "confidence": (0, COUNT + units)
    }
    assert judged["cost_usd"] > 0
    assert judged["runs"] < asked <= 2 * judged["runs"], "each copy, and each original once"


def test_a_call_that_fails_is_neither_noticed_nor_passed(traces: Path, tmp_path: Path) -> None:
    with JudgeServer(breaks_down) as server:
        found = drill(traces, server, tmp_path, "--faults", "false_success", form="table")
    assert found.exit_code == 0, found.output
    assert "not judged" in found.stdout
    with JudgeServer(breaks_down) as server:
        judged = json.loads(drill(traces, server, tmp_path).stdout)["judge"]
    fault = judged["faults"]["false_success"]
    assert (fault["n"], sum(fault["not_applicable"].values())) == (0, COUNT)


def test_an_empty_budget_asks_nobody(traces: Path, tmp_path: Path) -> None:
    with JudgeServer(sees_errors) as server:
        judged = json.loads(drill(traces, server, tmp_path, "--budget", "0").stdout)["judge"]
        assert not server.requests
    assert [fault["n"] for fault in judged["faults"].values()] == [0, 0]
