"""Shown prompts equal sent prompts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from pandaeval_collector.cli import app
from pandaeval_collector.judge.pack import Pack
from pandaeval_collector.judge.prompt import SYSTEM, messages, repair, response_format
from pandaeval_collector.judge.rubric import rubric_of
from pandaeval_collector.scoring.metric import JudgedMetric
from pandaeval_collector.scoring.registry import GRADERS, registry

JUDGED = [metric for metric in registry((GRADERS,)).values() if isinstance(metric, JudgedMetric)]
CAPTURE = Path(__file__).parents[2] / "golden" / "captures" / "langgraph_genai" / "good.otlp.jsonl"


def run(*arguments: str, code: int = 0) -> str:
    outcome = CliRunner().invoke(app, ["prompts", *arguments])
    assert outcome.exit_code == code, outcome.output
    return outcome.output


@pytest.mark.parametrize("columns", ["40", "200"])
def test_every_judged_metric_shows_its_question(columns: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    shown = run()
    for metric in JUDGED:
        assert f": {metric.asks}, version {metric.rubrics[-1].version} ===" in shown
    assert ": task, version" in shown, "extractions are prompts too"
    assert SYSTEM.splitlines()[0] in shown


def test_the_prompts_that_group_failures_are_shown() -> None:
    alone = run("error_deduplication")
    assert "Which failures have the same root cause?" in alone
    assert "confidence, version" not in alone
    assert "Which group has\nthe same root cause" in run("same_cause")
    assert alone.strip() in run()


@pytest.mark.parametrize("level", ["trace", "turn"])
def test_the_shared_prompt_of_a_level_is_shown(level: str) -> None:
    own = [each.part for each in JUDGED if each.part is not None and each.level == level]
    parts = (*dict.fromkeys(needed for part in own for needed in part.needs), *own)
    ours = messages(Pack("(the record of the run)", "CODE", "", 0, ()), rubric_of(parts))
    shown = run(level)
    assert all(message["content"] in shown for message in ours)
    assert shown.strip() in run()


def test_a_prompt_is_filled_with_a_trace() -> None:
    if not CAPTURE.is_file():
        pytest.skip("the capture is not there")
    empty, filled = run("confidence"), run("confidence", "--trace", str(CAPTURE))
    assert "(the record of the run)" in empty
    assert "WHAT THE USER ASKED" in filled
    assert "call 1:" in filled


def test_every_message_and_response_format_sent_to_the_judge_is_shown() -> None:
    shown = run()
    for metric in JUDGED:
        for rubric in metric.rubrics:
            ours = messages(Pack("(the record of the run)", "CODE", "", 0, ()), rubric)
            assert all(message["content"] in shown for message in ours), rubric.name
            assert json.dumps(response_format(rubric), ensure_ascii=False, indent=1) in shown, rubric.name
    assert repair("(what is wrong with the reply)")["content"] in shown


def test_results_of_other_metrics_in_a_prompt_are_shown_as_placeholders() -> None:
    shown = run("plan_quality", "--trace", str(CAPTURE))
    question = shown.partition(": plan_quality, version")[2]
    assert 'plan: ["(the reason of the judge)"]' in question


def test_metrics_without_a_prompt_and_unknown_metrics_are_rejected() -> None:
    assert "calls no model" in run("trace.coherence", code=2)
    assert "unknown metric" in run("nonsense", code=2)


def test_adopted_rulings_are_part_of_the_question(tmp_path: Path) -> None:
    file, config = tmp_path / "rulings.yaml", tmp_path / "config.yaml"
    file.write_text(
        "- {metric: trace.confidence, text: Heed hedges., state: adopted}\n"
        "- {metric: trace.confidence, text: Heed tone., state: rejected}\n"
    )
    config.write_text(f"judge: {{rulings: {file}}}\n")
    shown = run("confidence", "--config", str(config))
    assert "- Heed hedges." in shown
    assert "Heed tone." not in shown
    assert "Heed hedges." not in run("plan_quality", "--config", str(config))


def test_a_session_prompt_is_filled_with_all_its_traces() -> None:
    shown = run("session.correctness", "--trace", str(CAPTURE.with_name("good_session.otlp.jsonl")))
    assert ": conversation, version" in shown
    assert "calls: 5\nturns: 4" in shown
    assert "[with" not in shown.partition("# Criteria")[2].partition("Answer with one")[0], "only relevant criteria"
