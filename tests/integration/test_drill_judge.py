"""A judge on the copies of a drill, with a budget and failed calls."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from typer.testing import CliRunner

from pandaeval_collector.cli._app import app
from support.drilled import requests
from support.judge import JudgeAnswer, JudgeServer, text_of, verdict

pytestmark = pytest.mark.slow
FAULTS = "false_success,half_answer"
COUNT = 2
METRIC = "trace.confidence"


def sees_errors(number: int, body: dict[str, Any]) -> JudgeAnswer:
    """Doubt runs with a failed tool."""
    return JudgeAnswer(verdict(body, confidence=0.1 if _failed(body) else 0.9))


def breaks_down(number: int, body: dict[str, Any]) -> JudgeAnswer:
    """Fail on runs with a failed tool."""
    return JudgeAnswer(status=400) if _failed(body) else JudgeAnswer(verdict(body, confidence=0.9))


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


def test_judge_verdicts_on_copies_are_counted_with_cost(traces: Path, tmp_path: Path) -> None:
    with JudgeServer(sees_errors) as server:
        found = drill(traces, server, tmp_path)
        asked = len(server.requests)
    assert found.exit_code == 0, found.output
    summary = json.loads(found.stdout)
    copies = {
        name: (fault["by_metric"].get("confidence", {}).get("hits", 0), fault["n"])
        for name, fault in summary["faults"].items()
    }
    assert copies == {"false_success": (COUNT, COUNT), "half_answer": (0, COUNT)}
    assert summary["untouched"]["confidence"]["hits"] == 0
    originals = summary["untouched"]["confidence"]["n"]
    assert summary["judge"]["model"] == "openai/gpt-4o-mini"
    assert summary["judge"]["cost_usd"] > 0
    assert asked == originals + 2 * COUNT, "each copy and each original must be judged once"


def test_a_failed_judge_call_counts_as_silent(traces: Path, tmp_path: Path) -> None:
    with JudgeServer(breaks_down) as server:
        summary = json.loads(drill(traces, server, tmp_path, "--faults", "false_success").stdout)
    fault = summary["faults"]["false_success"]
    assert "confidence" not in fault["by_metric"]
    assert fault["silent"]["confidence"] == COUNT


def test_no_judge_is_called_with_budget_0(traces: Path, tmp_path: Path) -> None:
    with JudgeServer(sees_errors) as server:
        summary = json.loads(drill(traces, server, tmp_path, "--budget", "0").stdout)
        assert not server.requests
    assert "confidence" not in summary["untouched"]


def test_drill_table_shows_the_judge_cost(traces: Path, tmp_path: Path) -> None:
    with JudgeServer(sees_errors) as server:
        found = drill(traces, server, tmp_path, form="table")
    assert "judge: openai/gpt-4o-mini, $" in found.stdout
