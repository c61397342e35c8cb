"""The GitHub Action and the GitLab template: their own script lines, with a failing and a passing case."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import yaml

from support.deploy import DEPLOY, check

ACTION, TEMPLATE = DEPLOY / "github/action.yml", DEPLOY / "gitlab/cases.gitlab-ci.yml"
AGENT = "def answer(message):\n    return 'Order 17 is refunded.'\n"
CASES = """
cases:
- {id: green, inputs: {task: Refund order 17}, output_format: {contains: [refunded]}}
- {id: red, inputs: {task: Refund order 18}, output_format: {contains: [order 18]}}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "app.py").write_text(AGENT)
    (tmp_path / "cases").mkdir()
    (tmp_path / "cases/shop.yaml").write_text(CASES)
    return tmp_path


def _bash(folder: Path, script: str, variables: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PANDAEVAL", "GITHUB", "OTEL_"))}
    path = f"{Path(sys.executable).parent}{os.pathsep}{kept['PATH']}"
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script]
    return subprocess.run(
        command, cwd=folder, env={**kept, "PATH": path, **variables}, capture_output=True, text=True, timeout=240
    )


def _github(folder: Path, given: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    action: dict[str, Any] = yaml.safe_load(ACTION.read_text())
    inputs = {name: each["default"] for name, each in action["inputs"].items()} | given
    step = next(each for each in action["runs"]["steps"] if each["name"] == "Run the cases")
    variables = {name: inputs[text.split("inputs.")[1].split(" ")[0]] for name, text in step["env"].items()}
    marks = {"GITHUB_ACTIONS": "true"}
    return _bash(folder, step["run"], {**variables, **marks})


def _gitlab(folder: Path, given: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    job = yaml.safe_load(TEMPLATE.read_text())[".pandaeval-cases"]
    return _bash(folder, "\n".join(job["script"]), {**job["variables"], **given})


def _failed(folder: Path) -> list[str]:
    cases = ElementTree.parse(folder / "pandaeval-run/cases.xml").iter("testcase")
    return [str(case.get("name")) for case in cases if case.find("failure") is not None]


def test_a_failing_case_fails_the_github_action_with_an_annotation_and_junit(folder: Path) -> None:
    done = _github(folder, {"agent": "app:answer"})
    assert done.returncode == 1, done.stderr
    assert "::error title=pandaeval::case red: 1 of 1 trial not correct" in done.stderr
    assert "case green" not in done.stderr
    assert _failed(folder) == ["red [1]"]


def test_a_failing_case_fails_the_gitlab_job_with_a_junit_report(folder: Path) -> None:
    done = _gitlab(folder, {"CASES_AGENT": "app:answer"})
    assert done.returncode == 1, done.stderr
    assert "failed: case red: 1 of 1 trial not correct" in done.stderr
    assert "::error" not in done.stderr
    assert _failed(folder) == ["red [1]"]


@pytest.mark.parametrize("run", [_github, _gitlab])
@pytest.mark.slow
def test_passing_cases_pass_with_extra_options(folder: Path, run: Any) -> None:
    given = {"agent": "app:answer", "options": "--only green"}
    names = {"CASES_AGENT": "app:answer", "CASES_OPTIONS": "--only green"}
    done = run(folder, given if run is _github else names)
    assert done.returncode == 0, done.stderr
    assert _failed(folder) == []


@pytest.mark.parametrize(("file", "schema"), [(ACTION, "vendor.github-actions"), (TEMPLATE, "vendor.gitlab-ci")])
def test_templates_match_their_schemas(file: Path, schema: str) -> None:
    check("check_jsonschema", "--builtin-schema", schema, file)
