"""What was learned from labels of steps names the step of a run that a judge finds wrong without saying where."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from pandaeval_collector.cli import app
from support.asked import GOOD, said
from support.judge import JudgeServer, Say, rubric_of
from support.judged_files import environ
from support.step_runs import AGENT, StepRun, step_runs, write


def evaluated(traces: Path, models: Path, monkeypatch: pytest.MonkeyPatch, step: str | None) -> list[dict[str, Any]]:
    """The blame of each run, where the judge says ``step`` of all."""
    things = [{"thing": "The opening time.", "became": "missing", "shown_by": None}]
    wrong = {"things": things, "correct": False, "sure": 5, "first_wrong_step": step}

    def reply(number: int, body: dict[str, Any]) -> Say:
        name = rubric_of(body)
        return Say(
            json.dumps(json.loads(said(body["messages"], name, GOOD)) | (wrong if name == "correctness" else {}))
        )

    with JudgeServer(reply) as server:
        for name, value in {**environ(server), "PANDAEVAL_LEARN__FOLDER": str(models)}.items():
            monkeypatch.setenv(name, value)
        outcome = CliRunner().invoke(
            app, ["evaluate", str(traces), "--metrics", "correctness,blame", "--format", "json"]
        )
    assert outcome.exit_code == 0, outcome.output
    return [each for each in map(json.loads, outcome.stdout.splitlines()) if each["metric"] == "blame"]


def test_it_is_learned_and_names_the_step_where_nothing_else_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    labels, traces = write(tmp_path, list(step_runs(12)))
    outcome = CliRunner().invoke(app, ["learn", "steps", str(labels), str(traces), "-o", str(tmp_path / "models")])
    assert outcome.exit_code == 0, outcome.output
    others: Mapping[str, StepRun] = {each.trace_id: each for each in step_runs(5, seed=1)}
    (tmp_path / "others").mkdir()
    _, traces = write(tmp_path / "others", [*others.values()])

    assert evaluated(traces, tmp_path / "none", monkeypatch, None) == [], "nothing was learned, so nobody is named"
    told = evaluated(traces, tmp_path / "models", monkeypatch, None)
    assert {each["trace_id"]: each["metadata"]["step"]["span_id"] for each in told} == {
        each.trace_id: each.guilty for each in others.values()
    }
    version = json.loads((tmp_path / "models" / f"step-{AGENT}.json").read_text())["version"]
    assert all(each["metadata"]["learned"] == {"version": version, "labels": 12} for each in told)
    assert all("learned from 12 labels" in each["reason"] for each in told)
    assert all(len(each["metadata"]["candidates"]) == 3 for each in told)

    named = evaluated(traces, tmp_path / "models", monkeypatch, "call 1")
    assert all(each["metadata"]["step"]["reasons"] == ["correctness names it"] for each in named)
    assert len(named) == 5

    labels, traces_again = write(tmp_path, list(step_runs(15, seed=2)))
    again = CliRunner().invoke(app, ["learn", "steps", str(labels), str(traces_again), "-o", str(tmp_path / "models")])
    assert again.exit_code == 0, again.output
    anew = evaluated(traces, tmp_path / "models", monkeypatch, None)
    assert not {each["id"] for each in anew} & {each["id"] for each in told}, "another model, other results"
