"""Lazily read values."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pandaeval_otel.model import Captured, ToolCall


class Reader:
    def __init__(self) -> None:
        self.read: list[Any] = []

    def __call__(self, value: Any) -> Any:
        self.read.append(value)
        return [value]


def test_a_captured_value_is_read_once_and_only_on_access() -> None:
    reader = Reader()
    captured = Captured("text", reader)
    assert not reader.read
    assert captured.value == ["text"]
    assert captured.value is captured.value
    assert reader.read == ["text"]


def test_captured_values_are_equal_if_they_read_as_the_same_value() -> None:
    assert Captured("x", str.upper) == Captured("X")
    assert Captured("x", str.upper) != Captured("x")
    assert hash(Captured("x", str.upper)) == hash(Captured("X"))
    assert repr(Captured("x", str.upper)) == "Captured(value='X')"
    assert Captured(None) != None  # noqa: E711 - a captured None differs from a missing value


def test_a_tool_call_reads_its_result_on_access() -> None:
    reader = Reader()
    call = ToolCall("look", result=Captured("text", reader), has_result=True)
    assert not reader.read
    assert call.result == ["text"]
    assert call.result is call.result
    assert reader.read == ["text"]
    assert call == ToolCall("look", result=["text"], has_result=True)
    assert replace(call, name="see").result == ["text"]
    assert ToolCall("look").result is None
