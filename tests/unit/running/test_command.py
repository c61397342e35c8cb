"""Usage errors and prompts of ``cases run``."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from pandaeval_collector.cli import app
from pandaeval_lab.cases.files import read_suite
from pandaeval_lab.cli._case_run import CaseRunOptions, chosen as _chosen
from pandaeval_lab.running.simulated import RULES
from support.deploy import ROOT

SUITE = """
cases:
- {id: refund-1, inputs: {task: Refund order 17}}
- {id: refund-2, inputs: {task: Refund order 18}}
"""
ENTRIES = {
    "named": ("./app.py:answer", "lives"),
    "unset": ("{url: 'http://127.0.0.1:9/x', headers: {x: '${NO_SUCH_KEY}'}}", "live"),
    "several": ("{url: 'http://127.0.0.1:9/x', python: 'a:b'}", "live"),
    "key": ("{url: 'http://127.0.0.1:9/x', heders: {}}", "live"),
}
"""Entry of an agent, and the agent of the case, by the name of the file."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "suite.yaml").write_text(SUITE)
    for name, (entry, agent) in ENTRIES.items():
        text = f"agents: {{live: {entry}}}\ncases: [{{id: a, agent: {agent}, inputs: {{task: x}}}}]"
        (tmp_path / f"{name}.yaml").write_text(text)
    (tmp_path / "mute.yaml").write_text("cases: [{id: mute}]")
    (tmp_path / "played.yaml").write_text("cases: [{id: played, scenario: {goal: Get it}}]")
    (tmp_path / "wrong.yaml").write_text("cases: [{id: played, scenario: {gaol: Get it}}]")
    return tmp_path


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("suite.yaml --agent a:b --only refund-3", "suite.yaml has no case of this name; the nearest is refund-"),
        ("suite.yaml --agent a:b --only x", "suite.yaml has no case of this name; it has refund"),
        ("suite.yaml --agent a:b -o /proc", "--output /proc: No such file or directory; name a writable folder"),
        ("suite.yaml --agent a:b --only refund-1 --baseline x", "--baseline compares whole suites; omit --only"),
        ("suite.yaml --agent a:b --turn-timeout soon", "--turn-timeout soon: is not a duration; write 10s"),
        ("suite.yaml --agent http://127.0.0.1:9/x", "cannot be reached (Connection refused): start it first"),
        (
            "suite.yaml --agent http://me:secret@127.0.0.1:9/x?key=secret",
            "the agent http://127.0.0.1:9/x cannot be reached (Connection refused): start it first",
        ),
        (
            "suite.yaml --agent http://me:secret@host/${NO_SUCH_KEY}",
            "agent http://host/${NO_SUCH_KEY}, url: the environment variable NO_SUCH_KEY is not set",
        ),
        ("suite.yaml --agent http://[x", "cannot be reached (Invalid IPv6 URL): start it first"),
        ("suite.yaml --agent http://127.0.0.1:99999", "cannot be reached (Port out of range 0-65535): start it first"),
        ("suite.yaml --agent a:b -o suite.yaml", "--output suite.yaml: File exists; name a writable folder"),
        ("suite.yaml --agent a:b --baseline nowhere.jsonl", "nowhere.jsonl cannot be read"),
        (
            "mute.yaml --agent a:b",
            "case mute has no user messages: give it inputs.task, or give each interaction an input",
        ),
        ("played.yaml --agent a:b", "case played has no user messages: name a model for its user with --simulate"),
        ("suite.yaml", "no agent is named: use --agent, as in --agent app:answer, or write agents in the case file"),
        ("named.yaml", "agents has no lives; it has live"),
        ("unset.yaml", "agent live, headers, x: the environment variable NO_SUCH_KEY is not set"),
        ("several.yaml", "agents.live: write exactly one of python and url"),
        ("key.yaml", "heders: is not a field of an agent; did you mean headers?"),
        ("wrong.yaml --agent a:b", "gaol: is not a field of scenario; did you mean goal?"),
        ("nowhere.yaml --agent a:b", "nowhere.yaml: cannot be read"),
    ],
)
def test_a_usage_error_exits_with_code_2_and_a_cure(folder: Path, words: str, why: str) -> None:
    done = CliRunner().invoke(app, ["cases", "run", *words.split()])
    assert done.exit_code == 2, done.output
    assert why in " ".join(done.output.split())


def test_the_prompts_command_shows_the_rules_of_the_simulated_user() -> None:
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
def test_the_only_option_selects_cases_by_id_or_pattern(
    folder: Path, only: list[str] | None, chosen: list[str]
) -> None:
    options = CaseRunOptions([str(folder / "suite.yaml")], "a:b", only=only)
    assert [case.id for case in _chosen(read_suite(folder / "suite.yaml"), options).cases] == chosen


def test_the_documented_agents_are_a_valid_case_file(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "guides" / "case-agents.md").read_text()
    (tmp_path / "suite.yaml").write_text(re.findall(r"```yaml\n(agents:.*?)```", text, re.DOTALL)[0])
    suite = read_suite(tmp_path / "suite.yaml")
    agents = suite.agents
    assert agents["shop"].python
    assert agents["live"].url
    assert agents["model"].url
    assert not any(entry.is_remote for entry in agents.values())
    assert suite.cases[0].agent == "live"
