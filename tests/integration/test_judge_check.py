"""``pandaeval judge check`` against a scripted server."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from typer.testing import CliRunner

from pandaeval_collector.cli import app
from support import check_judges
from support.check_judges import Opinion
from support.judge import FAULTS, Behave, JudgeAnswer, JudgeServer
from support.processors import until

_FEW = ("--attacks", "4")


def _check(behave: Behave, *options: str) -> tuple[Result, int]:
    """Return the output and number of calls."""
    with JudgeServer(behave) as server:
        environ = {"PANDAEVAL_JUDGE__API_BASE": server.url, "OPENAI_API_KEY": "sk-test", "COLUMNS": "250"}
        done = CliRunner().invoke(app, ["judge", "check", "--model", "openai/gpt-4o-mini", *options], env=environ)
        return done, len(server.requests)


def test_a_good_judge_passes_with_the_announced_number_of_calls() -> None:
    done, calls = _check(check_judges.serving(check_judges.good), *_FEW)
    assert done.exit_code == 0, done.output
    assert "openai/gpt-4o-mini: passed all 5 probes" in done.stdout
    assert re.search(
        r"openai/gpt-4o-mini: fit for correctness; a session takes \d,\d{3} tokens, \$0\.00\d+", done.stdout
    )
    announcement = re.search(r"(\d+) questions: one call each.*about [\d,]+ tokens, \$0\.\d+", done.stderr)
    assert announcement
    assert int(announcement[1]) == calls == 12 + 3 * 7 + 14 + 7 + 4


def test_a_judge_that_passes_everything_is_not_fit() -> None:
    done, _ = _check(check_judges.serving(check_judges.constant), "--attacks", "1")
    assert done.exit_code == 1, done.output
    assert "openai/gpt-4o-mini: not fit for correctness" in done.stdout
    assert "6 of 12" in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("opinion", [check_judges.constant, check_judges.obedient, check_judges.noisy])
def test_a_bad_judge_fails(opinion: Opinion) -> None:
    done, _ = _check(check_judges.serving(opinion), *_FEW, "--format", "json")
    assert done.exit_code == 1, done.output
    summary = json.loads(done.stdout)
    assert summary["complete"]
    assert not summary["passed"]
    assert any(not figure["passed"] for figure in summary["figures"].values())


@pytest.mark.slow
def test_exit_code_is_2_if_the_model_cannot_be_called() -> None:
    done, calls = _check(FAULTS["401"])
    assert done.exit_code == 2
    assert "cannot be called" in done.stderr
    assert calls < 8


@pytest.mark.slow
def test_ctrl_c_prints_the_figures_so_far() -> None:
    def slowly(number: int, body: dict[str, Any]) -> JudgeAnswer:
        return replace(check_judges.serving(check_judges.good)(number, body), hang_s=0.2)

    command = [sys.executable, "-c", "from pandaeval_collector.cli import main; main()", "judge", "check"]
    with JudgeServer(slowly) as server:
        environ = {**os.environ, "PANDAEVAL_JUDGE__API_BASE": server.url, "OPENAI_API_KEY": "sk-test"}
        asked = [*command, "--model", "openai/gpt-4o-mini", "--attacks", "120"]
        with subprocess.Popen(asked, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            until(lambda: len(server.requests) > 30, "asking", 120.0)
            process.send_signal(signal.SIGINT)
            out, error = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "NOT CONCLUDED" in out
    assert "Is it right about known runs?" in out
    assert "Traceback" not in error


def test_judge_check_names_a_missing_model_or_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["judge", "check"])
    assert (done.exit_code, done.stderr) == (2, "name a model with --model, or set judge.model\n")
    environ = {"PANDAEVAL_JUDGE__API_KEY_ENV": "NO_SUCH_KEY"}
    done = CliRunner().invoke(app, ["judge", "check", "--model", "openai/x"], env=environ)
    assert done.exit_code == 2
    assert "NO_SUCH_KEY" in done.stderr
