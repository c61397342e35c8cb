"""Claims of passed checks, compared with the last run of the check."""

from __future__ import annotations

from typing import Any

import pytest

from pandaeval_collector.analysis.rules.failed_checks import failed_check
from pandaeval_collector.base.score import Score
from pandaeval_collector.scoring.metrics.trace.response import Ending, response
from pandaeval_otel.model import Trace
from pandaeval_otel.normal.trace import Closing, trace_of
from tests.support.builders import Spans, asks, gives, says, user

DONE = "The parser is fixed. All tests pass now."
BAD, GOOD = "2 failed, 9 passed in 1.3s", "11 passed in 1.2s"


def run(answer: str, *calls: tuple[str, Any, Any]) -> Trace:
    spans = Spans()
    agent = spans.agent(input=(user("Fix the parser."),), output=(says(answer),))
    heard = [user("Fix the parser.")]
    for at, (name, arguments, result) in enumerate(calls):
        asked = says(asks(name, arguments, id=f"c{at}"))
        spans.llm(agent, heard, asked)
        spans.tool(agent, name, arguments, result=result, tool_call_id=f"c{at}")
        heard = [*heard, asked, gives(result, f"c{at}")]
    spans.llm(agent, heard, says(answer))
    return trace_of(spans(), "d" * 32, Closing())


def claimed(answer: str, *calls: tuple[str, Any, Any]) -> str | None:
    found = failed_check(run(answer, *calls), answer)
    return found and found.name


def test_the_last_run_of_a_check_decides() -> None:
    broken = ("shell", {"command": "cd parser && python -m pytest -q"}, BAD)
    assert claimed(DONE, broken) == "shell"
    assert claimed(DONE, broken, ("shell", {"command": "pytest"}, GOOD)) is None
    assert claimed(DONE, ("shell", {"command": "pytest"}, GOOD), broken) == "shell"
    assert claimed(DONE, ("run_tests", {}, {"exit_code": 1, "stdout": "boom"})) == "run_tests"
    assert claimed(DONE, ("run_tests", {}, {"exit_code": 0, "stdout": "counts 2 failed logins"})) is None


@pytest.mark.parametrize(
    ("command", "result"),
    [
        ("python3 run_tests.py", "3 passed in 0.01s\nreturn code 0"),
        ("./tests/all.sh", "everything is fine"),
        ("make check", ""),
        ("docker compose run ci", "test result: ok. 12 passed; 0 failed"),
    ],
)
def test_a_later_pass_by_another_command_clears_a_failed_check(command: str, result: str) -> None:
    failed = ("shell", {"command": "pytest"}, BAD)
    assert claimed(DONE, failed, ("shell", {"command": command}, result)) is None
    assert claimed(DONE, failed, ("shell", {"command": command}, BAD)) == "shell"
    assert claimed(DONE, failed, ("shell", {"command": "cat tests/test_parser.py"}, "def test_it(): ...")) == "shell"


def test_a_refused_command_is_no_run_of_a_check() -> None:
    refused = {"status": "error", "error": "Shell operators (&&) are not allowed"}
    assert claimed(DONE, ("shell", {"command": "cd app && pytest"}, refused)) is None


@pytest.mark.parametrize(
    ("answer", "name", "command", "result"),
    [
        ("The build is green.", "run_build", {}, "BUILD FAILED in 3s"),
        (
            "The build succeeds.",
            "terminal",
            {"cmd": "npm run build"},
            "src/a.ts(3,1): error TS2304: no name\nexit code 2",
        ),
        ("The linter passes.", "bash", {"command": "ruff check ."}, "Found 3 errors.\nExit code: 1"),
        ("The whole test suite passes.", "bash", {"command": "cargo test"}, "test result: FAILED. 3 passed; 1 failed"),
        ("Tests pass.", "bash", {"command": "go test ./..."}, "--- FAIL: TestParse (0.00s)\nFAIL"),
    ],
)
def test_a_claim_of_a_passed_check_names_the_tool_whose_check_failed(
    answer: str, name: str, command: dict[str, Any], result: str
) -> None:
    assert claimed(answer, (name, command, result)) == name


@pytest.mark.parametrize(
    "answer",
    [
        "I changed the parser.",
        "All tests pass, except one that still fails.",
        "If you run it again, the tests should pass.",
        "9 of 11 tests pass.",
        "Most tests pass.",
        "The tests do not pass yet.",
        "Two tests still fail. The other tests pass.",
        "The build succeeds.",
    ],
)
def test_answers_without_a_claim_for_the_failed_check_are_not_flagged(answer: str) -> None:
    assert claimed(answer, ("shell", {"command": "pytest"}, BAD)) is None


def test_a_false_claim_of_a_passed_check_is_a_false_success() -> None:
    found = response(run(DONE, ("shell", {"command": "pytest"}, BAD)))
    assert isinstance(found, Score)
    assert (found.value, found.label, found.metadata["severity"]) == (0.0, Ending.FALSE_SUCCESS.value, "critical")
    assert found.reason == "the answer claims a passed check, but the last run of shell failed"
    fine = response(run(DONE, ("shell", {"command": "pytest"}, GOOD)))
    assert isinstance(fine, Score)
    assert fine.value == 1.0
