"""``pandaeval judge align`` with a flawed scripted judge."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from click.testing import Result
from typer.testing import CliRunner

from pandaeval_collector.base.errors import UserError
from pandaeval_collector.cli import app
from pandaeval_collector.config import load
from pandaeval_lab.alignment.file_judging import FileJudging
from pandaeval_lab.replay.files import Input
from support.judge import JudgeServer
from support.refunds import COMMENT, USEFUL, USELESS, flawed, trace_id, written

_RUNS = 60


def _align(server: JudgeServer, *arguments: str) -> Result:
    environ = {"PANDAEVAL_JUDGE__API_BASE": server.url, "OPENAI_API_KEY": "sk-test", "COLUMNS": "200"}
    return CliRunner().invoke(app, ["judge", "align", "--model", "openai/gpt-4o-mini", *arguments], env=environ)


@pytest.mark.slow
def test_align_finds_the_flaw_of_a_judge_and_adopts_the_useful_ruling(tmp_path: Path) -> None:
    traces, labels = written(tmp_path, _RUNS)
    file = tmp_path / "rulings.yaml"
    with JudgeServer(flawed) as server:
        done = _align(server, str(labels), str(traces), "--rulings", str(file), "--format", "json")
        assert done.exit_code == 0, done.output
        asked = [body for _, body in server.requests]
    summary = json.loads(done.stdout)
    assert (summary["labelled"], summary["errors"] > 0) == (_RUNS, True)
    assert {each["text"]: each["state"] for each in summary["tried"]} == {USELESS: "rejected", USEFUL: "adopted"}
    assert any(COMMENT in str(body) for body in asked), "reviewer comments must be shown to the proposing model"
    kept = yaml.safe_load(file.read_text())
    assert [each.get("state", "adopted") for each in kept] == ["rejected", "adopted"]
    assert kept[1]["figures"]["held_out_gain_low"] > 0
    with JudgeServer(flawed) as server:
        environ = {"PANDAEVAL_JUDGE__API_BASE": server.url, "OPENAI_API_KEY": "sk-test"}
        environ |= {"PANDAEVAL_JUDGE__MODEL": "openai/gpt-4o-mini", "PANDAEVAL_JUDGE__RULINGS": str(file)}
        command = ["evaluate", str(traces), "--metrics", "task_completion", "--format", "json"]
        results = [json.loads(line) for line in CliRunner().invoke(app, command, env=environ).stdout.splitlines()]
    assert sum(result["success"] is False for result in results) == _RUNS // 3
    assert all("+" in result["evaluator"]["version"] for result in results)


def test_align_without_a_model_names_the_missing_option(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["judge", "align", "labels.csv"])
    assert (done.exit_code, "name a model with --model" in done.stderr) == (2, True), done.output


def test_labels_may_name_a_custom_metric_of_the_configuration(tmp_path: Path) -> None:
    metric, config, labels = (tmp_path / name for name in ("own.yaml", "pandaeval.yaml", "labels.csv"))
    metric.write_text("{name: depth, criteria: It goes into depth.}")
    config.write_text(f"metrics: {{modules: ['{metric}']}}")
    labels.write_text(f"trace_id,metric,label\n{'a' * 32},depth,pass\n")
    named = ["--model", "openai/gpt-4o-mini", "--config", str(config)]
    done = CliRunner().invoke(app, ["judge", "align", str(labels), *named], env={"OPENAI_API_KEY": "sk-test"})
    assert (done.exit_code, "name files or the address" in done.stderr) == (2, True), done.output


def test_daily_limit_applies_to_all_passes_together(tmp_path: Path) -> None:
    traces, _ = written(tmp_path, 2)
    with JudgeServer(flawed) as server:
        overrides = {"judge.model": "openai/gpt-4o-mini", "judge.api_base": server.url, "judge.daily_usd": 1.0}
        config, units = load(None, {}, {**overrides, "judge.detail": "all"}), {trace_id(0): None}
        requests = [*Input(str(traces)).requests()]
        judging = FileJudging(config, requests, "trace.task_completion", "", {"OPENAI_API_KEY": "sk-test"})
        assert judging.first(units)
        assert 0.0 < judging.spent < 1.0
        assert judging.remaining().judge.daily_usd == 1.0 - judging.spent
        judging.spent, calls = 1.0, len(server.requests)
        with pytest.raises(UserError, match=r"judge\.daily_usd"):
            judging.first(units)
        assert len(server.requests) == calls
