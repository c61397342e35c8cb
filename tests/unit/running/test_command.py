"""Usage errors and prompts of ``cases run``."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from pandaeval_collector.cli import app
from pandaeval_lab.cases.files import read_suite
from pandaeval_lab.cli._case_run import CaseRunOptions, chosen as _chosen
from pandaeval_lab.running.simulated import RULES

SUITE = """
cases:
- {id: refund-1, inputs: {task: Refund order 17}}
- {id: refund-2, inputs: {task: Refund order 18}}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "suite.yaml").write_text(SUITE)
    (tmp_path / "mute.yaml").write_text("cases: [{id: mute}]")
    (tmp_path / "played.yaml").write_text("cases: [{id: played, scenario: {goal: Get it}}]")
    (tmp_path / "wrong.yaml").write_text("cases: [{id: played, scenario: {gaol: Get it}}]")
    return tmp_path


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("suite.yaml --agent a:b --only refund-3", "suite.yaml has no such case; the nearest is refund-"),
        ("suite.yaml --agent a:b --only x", "suite.yaml has no such case; it has refund"),
        ("suite.yaml --agent a:b -o /proc", "--output /proc: No such file or directory; name a writable folder"),
        ("suite.yaml --agent a:b --only refund-1 --baseline x", "--baseline compares whole suites; omit --only"),
        ("suite.yaml --agent a:b --turn-timeout soon", "--turn-timeout soon: is not a duration; write 10s"),
        ("suite.yaml --agent http://127.0.0.1:9/x", "cannot be reached (Connection refused): start it first"),
        ("suite.yaml --agent a:b -o suite.yaml", "--output suite.yaml: File exists; name a writable folder"),
        ("suite.yaml --agent a:b --baseline nowhere.jsonl", "nowhere.jsonl cannot be read"),
        ("mute.yaml --agent a:b", "case mute has no user messages: give it inputs.task or interactions"),
        ("played.yaml --agent a:b", "case played has no user messages: name a model for its user with --simulate"),
        ("wrong.yaml --agent a:b", "gaol: is no field of scenario; did you mean goal?"),
        ("nowhere.yaml --agent a:b", "nowhere.yaml: cannot be read"),
    ],
)
def test_a_mistake_ends_with_its_place_and_cure(folder: Path, words: str, why: str) -> None:
    done = CliRunner().invoke(app, ["cases", "run", *words.split()])
    assert done.exit_code == 2, done.output
    assert why in " ".join(done.output.split())


def test_what_the_simulated_user_is_told_is_shown() -> None:
    done = CliRunner().invoke(app, ["prompts", "simulated_user"])
    assert done.exit_code == 0, done.output
    assert RULES in done.output
    assert "version 2" in done.output


@pytest.mark.parametrize(
    ("only", "chosen"),
    [
        (None, ["refund-1", "refund-2"]),
        (["refund-2"], ["refund-2"]),
        (["*-1", "refund-2"], ["refund-1", "refund-2"]),
    ],
)
def test_some_cases_are_chosen(folder: Path, only: list[str] | None, chosen: list[str]) -> None:
    options = CaseRunOptions([str(folder / "suite.yaml")], ["a:b"], only=only)
    assert [case.id for case in _chosen(read_suite(folder / "suite.yaml"), options).cases] == chosen
