"""The prompts as people see them are those that a judge gets."""

from __future__ import annotations

from pathlib import Path

import pytest
from pandaeval_collector.cli import app
from pandaeval_collector.judge.prompt import SYSTEM
from pandaeval_collector.metric import registry
from typer.testing import CliRunner

CAPTURE = Path(__file__).parents[2] / "golden" / "captures" / "langgraph_genai" / "good.otlp.jsonl"


def run(*arguments: str, code: int = 0) -> str:
    outcome = CliRunner().invoke(app, ["prompts", *arguments])
    assert outcome.exit_code == code, outcome.output
    return outcome.output


@pytest.mark.parametrize("columns", ["40", "200"])
def test_every_judged_metric_shows_its_question(columns: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """In its very words: no line is broken to fit a window."""
    monkeypatch.setenv("COLUMNS", columns)
    shown = run()
    for metric in registry().values():
        if metric.kind == "llm":
            assert f": {metric.name}, version {metric.version} ===" in shown
    assert ": task, version" in shown, "extractions are prompts too"
    assert SYSTEM.splitlines()[0] in shown


def test_a_prompt_is_filled_with_a_trace() -> None:
    if not CAPTURE.is_file():
        pytest.skip("the capture is not there")
    empty, filled = run("confidence"), run("confidence", "--trace", str(CAPTURE))
    assert "(the record of the run)" in empty
    assert "WHAT THE USER ASKED" in filled
    assert "call 1:" in filled


def test_what_has_no_prompt_says_so() -> None:
    assert "asks no model" in run("coherence", code=2)
    assert "unknown metric" in run("nonsense", code=2)
