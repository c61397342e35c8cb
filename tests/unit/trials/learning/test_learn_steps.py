"""``pandaeval learn steps``: which step breaks a run, from labels of steps."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from pandaeval_collector.analysis.stats.learned import STEP, LearnedModel
from pandaeval_collector.cli import app
from pandaeval_collector.scoring.evaluator.prepared import LearnedModels
from pandaeval_lab.labels.step_learning import read_steps
from support.step_runs import AGENT, step_runs, write


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, [*map(str, arguments)], env={"COLUMNS": "300"})


def test_ten_labels_suffice_for_what_is_plain(tmp_path: Path) -> None:
    result = run("learn", "steps", *write(tmp_path, list(step_runs(10))), "-o", tmp_path / "models")
    assert result.exit_code == 0, result.output
    file = tmp_path / "models" / f"step-{AGENT}.json"
    assert str(file) in result.stdout
    learned = LearnedModel.of_json(file.read_text())
    assert (learned.level, learned.agent, learned.labels, learned.metric) == (STEP, AGENT, 10, "trace.blame")
    assert LearnedModels(str(tmp_path / "models")).all() == {(STEP, AGENT): learned}


def test_figures_are_of_unseen_runs_beside_chance_and_the_last_step(tmp_path: Path) -> None:
    result = run("learn", "steps", *write(tmp_path, list(step_runs(40, named_right=1.0))), "-o", tmp_path)
    assert (
        "of 40 runs, each unseen, the wrong step is named in 1.00 (at random 0.11, the last step 0.00)" in result.stdout
    )
    assert "among three in 1.00 (at random 0.34)" in result.stdout


def test_too_few_labels_make_no_model(tmp_path: Path) -> None:
    result = run("learn", "steps", *write(tmp_path, list(step_runs(9))), "-o", tmp_path / "models")
    assert result.exit_code == 1
    assert f"{AGENT}: 9 labels of steps: it takes 10" in result.stdout
    assert not (tmp_path / "models").exists()


def test_labels_of_any_step_teach_nothing(tmp_path: Path) -> None:
    result = run("learn", "steps", *write(tmp_path, list(step_runs(40, named_right=0.0))), "-o", tmp_path / "models")
    assert result.exit_code == 1
    assert "nothing certain is learned" in result.stdout
    assert not (tmp_path / "models").exists()


def test_naming_the_last_step_is_not_learned(tmp_path: Path) -> None:
    made = list(step_runs(20))
    last = [json.loads(each.request)["resourceSpans"][0]["scopeSpans"][0]["spans"][-1]["spanId"] for each in made]
    made = [replace(each, named=span) for each, span in zip(made, last, strict=True)]
    result = run("learn", "steps", *write(tmp_path, made), "-o", tmp_path / "models")
    assert result.exit_code == 1
    assert "the last step 1.00" in result.stdout


def test_a_dry_run_writes_nothing_and_labels_of_no_step_are_told(tmp_path: Path) -> None:
    made = list(step_runs(12))
    root = json.loads(made[0].request)["resourceSpans"][0]["scopeSpans"][0]["spans"][0]["spanId"]
    labels, traces = write(tmp_path, [replace(made[0], named=root), *made[1:]])
    labels.write_text(f"{labels.read_text()}{'f' * 32},{'1' * 16}\n")
    result = run("learn", "steps", labels, traces, "-o", tmp_path / "models", "--dry-run")
    assert (result.exit_code, (tmp_path / "models").exists()) == (0, False)
    assert "left out: 2 traces" in result.stderr
    assert "of 11 runs" in result.stdout


def test_files_of_labels(tmp_path: Path) -> None:
    file = tmp_path / "steps"
    file.write_text('{"trace_id": "AB", "span_id": "1"}\n{"trace_id": "ab", "span_id": "2", "note": "x"}\n')
    assert read_steps(file) == {"ab": {"1", "2"}}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("trace_id,step\na,b\n", "line 1: no column span_id. The first line names the columns: trace_id, span_id"),
        ("trace_id,span_id\na,\n", "line 2: trace_id or span_id is missing"),
        ('{"trace_id": "a"}\n', "line 1: trace_id or span_id is missing"),
        ('{"trace_id"\n', "line 1: no JSON object"),
    ],
)
def test_mistakes_in_them_are_told(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "steps.csv"
    file.write_text(text)
    result = run("learn", "steps", file, tmp_path / "none.jsonl")
    assert result.exit_code == 2
    assert said in result.stderr
