"""Results that say they are errors, and results that only speak of errors."""

from __future__ import annotations

from typing import Any

import pytest
from pandaeval_collector.rules._failures import error_of, failed, is_absence

from pandaeval_otel.model import ToolCall


def called(result: Any = None, error: str | None = None) -> ToolCall:
    return ToolCall("get_line", result=result, error=error, has_result=True)


@pytest.mark.parametrize(
    "result",
    [
        "Error: timeout",
        "error",
        "Error executing tool 'book_ferry' with arguments",
        "An error occurred while running the tool. Please try again.",
        "Error - code 7",
        "RuntimeError: booking backend timeout",
        "httpx.ReadTimeoutError: 30 s",
        "Traceback (most recent call last):\n  File ...",
        "Failed to invoke Tool `book_ferry` with parameters {...}",
        "Call id: call_1\nError:\nCode execution failed at line 1",
        "Tool execution failed: no route",
        {"error": "timeout"},
        {"error": {"code": 7, "message": "timeout"}},
        '{"error": "timeout"}',
        {"isError": True, "content": [{"type": "text", "text": "no"}]},
        {"is_error": True},
        {"success": False, "reason": "full"},
        {"status": "error", "message": "full"},
        [{"type": "text", "text": "Error: timeout"}],
        {"result": '{"error": "timeout"}'},
        {"result": "Error: timeout"},
    ],
)
def test_errors(result: Any) -> None:
    assert failed(called(result))


@pytest.mark.parametrize(
    "result",
    [
        "Error handling in Go is done by values.",
        "Errors of measurement were small.",
        "3 results: 'Error: file not found' and how to mend it",
        ["Error: one", "Error: two"],
        {"results": [{"title": "Error: file not found"}]},
        {"results": [{"error": "x"}], "query": "error"},
        {"error": None, "value": 3},
        {"error": "", "value": 3},
        {"error": False},
        {"error": 0.05, "value": 3.1},
        {"status": "failed", "job": 7},
        {"title": "error"},
        {"success": True},
        "{not json",
        None,
        "",
        7,
    ],
)
def test_no_errors(result: Any) -> None:
    assert not failed(called(result))


def test_a_status_is_an_error_whatever_the_result() -> None:
    assert failed(called({"rows": []}, error="timeout"))


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (called("x", "timeout"), "timeout"),
        (called({"error": {"message": "full"}}), "full"),
        (called([{"type": "text", "text": "Error: full"}]), "Error: full"),
        (called({"isError": True, "content": [{"text": "no"}]}), "no"),
        (called({"success": False}), ""),
    ],
)
def test_what_went_wrong(call: ToolCall, told: str) -> None:
    assert error_of(call) == told


def test_what_is_not_there() -> None:
    assert is_absence(called("Error: user not found"))
    assert is_absence(called({"error": "no such order"}))
    assert not is_absence(called("Error: timeout"))


def test_results_nested_without_end_are_no_errors() -> None:
    deep: Any = "Error: x"
    for _ in range(2000):
        deep = [deep]
    assert not failed(called(deep))
    assert error_of(called(deep)) == ""
