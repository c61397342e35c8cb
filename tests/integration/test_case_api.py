"""The Python API for cases, in a separate pytest process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

CASES = """
cases:
- {id: green, inputs: {task: Refund order 17}, output_format: {contains: [refunded]}}
- {id: red, inputs: {task: Refund order 18}, output_format: {contains: [order 18]}}
- {id: hard, kind: capability, inputs: {task: Refund order 19}, output_format: {contains: [order 19]}}
- {id: open, inputs: {task: Refund order 20}, open: [expected_tools]}
"""
TRACED = """
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider

provider = TracerProvider()
trace.set_tracer_provider(provider)
tracer = provider.get_tracer(__name__)

def answer(message):
    about = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "find_order"}
    with tracer.start_as_current_span("execute_tool find_order", attributes=about):
        return "Order 17 is refunded."
"""
POLITE = """
from pandaeval_collector import Metric, Score

def evaluate(trial, context):
    return Score(float("please" in trial.answer), "whether the answer contains please")

METRIC = Metric(
    level="trial", name="polite", version="1", question="Is it polite?", kind="code", threshold=1.0, needs="an answer",
    evaluate=evaluate, layer="outcome",
)
"""
TESTS = """
import os

import pytest
from opentelemetry import trace

from pandaeval_lab import load_cases, run_cases

def answer(message, context):
    return f"Done: {message}"

def test_hand_written():
    results = run_cases("cases/shop.yaml", answer, only=["red", "green"], trials=2)
    assert not results.passed
    assert results["red"].passed and results["red"].correct == 2
    assert results["green"].failures[0].startswith("case green: 2 of 2 trials not correct")
    assert "user: Refund order 17" in results["green"].transcripts["1"]
    assert results.mean("trial_correct") == 0.5 == results.mean("trial.trial_correct")
    assert results["red"].mean("output_format") == 1.0
    assert str(results) == results.failures[0]

class Agent:
    async def send(self, message):
        return "Order 18 is refunded."

def test_api(tmp_path):
    suite = load_cases("cases")
    assert [case.id for case in suite.cases] == ["green", "red", "hard", "open"]
    results = run_cases(suite, Agent, output=tmp_path / "run", only=["red"])
    assert results.passed, results
    assert list(results) == ["red"]
    assert (results.folder / "results.jsonl").exists()
    assert "red" in (results.folder / "summary.txt").read_text()

@pytest.mark.parametrize("module", ["one", "two"])
def test_each_module_sends_the_spans_of_its_own_provider(module):
    found = run_cases("cases", f"{module}:answer", only=["green"])
    assert "find_order" in found["green"].transcripts["1"]

def test_a_run_leaves_nothing_behind():
    processors = []
    for _ in range(2):
        assert run_cases("cases", answer, only=["red"]).passed
        processors.append(len(trace.get_tracer_provider()._active_span_processor._span_processors))
    assert processors[0] == processors[1]
    assert "PANDAEVAL_ENDPOINT" not in os.environ

def test_graders_of_the_configuration():
    suite = load_cases("own.yaml", config="own_graders.yaml")
    assert run_cases(suite, answer, config="own_graders.yaml").passed
    results = run_cases("own.yaml", answer, config="own_graders.yaml")
    assert results.mean("polite") == 1.0

@pytest.fixture(scope="session")
def results():
    return run_cases("cases", answer, only=["red", "hard"])

@pytest.mark.parametrize("case", ["red", "hard"])
def test_case(results, case):
    assert results[case].passed, results[case].failures

def test_no_case_file():
    with pytest.raises(Exception, match="no case file was given"):
        load_cases([])
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for module in ("one", "two"):
        (tmp_path / f"{module}.py").write_text(TRACED)
    (tmp_path / "cases").mkdir()
    (tmp_path / "cases/shop.yaml").write_text(CASES)
    (tmp_path / "test_shop.py").write_text(TESTS)
    (tmp_path / "polite.py").write_text(POLITE)
    (tmp_path / "own_graders.yaml").write_text("metrics: {modules: [polite.py]}")
    (tmp_path / "own.yaml").write_text("cases: [{id: own, inputs: {task: Refund please}, graders: [polite]}]")
    return tmp_path


def _pytest(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PANDAEVAL", "PYTEST", "OTEL_"))}
    paths = os.pathsep.join(each for each in sys.path if each)
    environ = {**kept, "PYTHONPATH": paths, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-rA", *options]
    return subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, timeout=280)


def test_pytest_tests_can_run_cases_with_the_python_api(folder: Path) -> None:
    done = _pytest(folder, "test_shop.py")
    assert done.returncode == 0, done.stdout
    assert "9 passed" in done.stdout
