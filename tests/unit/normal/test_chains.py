"""Spans inside spans: the work grows linearly with the length of the chain."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

import pytest

from pandaeval_otel.model import Kind, Message, Span, Text, ToolRequest
from pandaeval_otel.normal.trace import Closing, trace_of

LENGTHS = (60, 240)
MOST_RATIO = 6.0
"""Maximum ratio of executed lines for a chain four times as long: linear is 4, quadratic 16."""
CALL = (Message("assistant", (ToolRequest("search", {}, "c1"),)),)
ANSWER = (Message("assistant", (Text("Done."),)),)
CHAINS = {
    "agents": (Kind.AGENT,),
    "model calls": (Kind.LLM,),
    "tool calls": (Kind.TOOL,),
    "evaluations": (Kind.EVALUATION,),
    "agents in tool calls": (Kind.AGENT, Kind.TOOL),
    "model calls in agents": (Kind.LLM, Kind.AGENT),
}


def chain(kinds: tuple[Kind, ...], length: int, output: tuple[Message, ...]) -> list[Span]:
    return [
        Span(
            trace_id="0" * 32,
            span_id=f"{number:016x}",
            parent_id=f"{number - 1:016x}" if number > 1 else "",
            name="step",
            kind=kinds[number % len(kinds)],
            start_ns=number,
            end_ns=2 * length - number,
            error="no stock" if number == length else None,
            output=output,
            tool_name="search",
            agent_name="desk",
        )
        for number in range(1, length + 1)
    ]


def executed_lines(spans: list[Span]) -> int:
    executed = 0

    def count(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal executed
        executed += event == "line"
        return count

    before = sys.gettrace()
    sys.settrace(count)
    try:
        trace_of(spans, "digest", Closing())
    finally:
        sys.settrace(before)
    return executed


@pytest.mark.parametrize("output", [CALL, ANSWER], ids=["which call a tool", "which answer"])
@pytest.mark.parametrize("name", CHAINS)
def test_work_grows_linearly_with_the_length_of_a_chain(name: str, output: tuple[Message, ...]) -> None:
    few, many = (executed_lines(chain(CHAINS[name], length, output)) for length in LENGTHS)
    assert many / few <= MOST_RATIO
