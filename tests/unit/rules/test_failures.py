"""Results that say they are errors, and results that only speak of errors."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pandaeval_collector.rules._failures import Told, error_of, failed, is_absence, tells
from support.told_failures import FAILED, FINE, UNSURE

from pandaeval_otel.model import ToolCall


def called(result: Any = None, error: str | None = None) -> ToolCall:
    return ToolCall("get_line", result=result, error=error, has_result=True)


@pytest.mark.parametrize("result", FAILED, ids=repr)
def test_errors(result: Any) -> None:
    assert tells(called(result)) is Told.FAILED
    assert failed(called(result))


@pytest.mark.parametrize("result", FINE, ids=repr)
def test_no_errors(result: Any) -> None:
    assert tells(called(result)) is Told.NOTHING


@pytest.mark.parametrize("result", UNSURE, ids=repr)
def test_what_may_be_read_both_ways(result: Any) -> None:
    assert tells(called(result)) is Told.UNSURE
    assert not failed(called(result))


@pytest.mark.parametrize("result", [each for each in FAILED if isinstance(each, dict)], ids=repr)
def test_an_object_tells_the_same_as_its_text(result: Any) -> None:
    assert failed(called(json.dumps(result)))


@pytest.mark.parametrize("result", [each for each in FINE if isinstance(each, dict | list)], ids=repr)
def test_the_text_of_an_object_tells_no_more_than_it(result: Any) -> None:
    assert tells(called(json.dumps(result))) is Told.NOTHING


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
