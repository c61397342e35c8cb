"""Agenta."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pandaeval_otel.model import Captured, Kind, Span, ToolDefinition, Usage
from tests.unit.dialects.composed import ASK, BRIEF, CALL, SAID, SCHEMA, seen as normal, texts

WIRE = {"id": "c9", "type": "function", "function": {"name": "get_weather", "arguments": '{"city": "Oslo"}'}}
TOOL = {"type": "function", "function": {"name": "get_weather", "parameters": SCHEMA}}
MESSAGES = [{"role": "system", "content": BRIEF.text}, {"role": "user", "content": ASK.text}]


def seen(node: str, given: dict[str, Any], made: dict[str, Any], **more: Any) -> Span:
    held = {f"ag.data.inputs.{key}": value for key, value in given.items()}
    held |= {f"ag.data.outputs.{key}": value for key, value in made.items()}
    attributes = {"ag.type.node": node, "ag.session.id": "s-1", **held, **more}
    return normal(attributes, "agenta.tracer", name="get_weather")


def as_json(value: Any) -> str:
    return f"@ag.type=json:{json.dumps(value)}"


@pytest.mark.parametrize("node", ["CHAT", "completion", "TASK"])
def test_a_model_call(node: str) -> None:
    made = {"role": "assistant", "content": SAID, "tool_calls": as_json([WIRE])}
    spent = {"ag.metrics.unit.tokens.prompt": 12, "ag.metrics.unit.tokens.completion": 3}
    found = seen(node, {"messages": as_json(MESSAGES), "tools": as_json([TOOL])}, made, **spent)
    assert (found.kind, found.system, found.usage) == (Kind.LLM, BRIEF.text, Usage(12, 3))
    assert texts(found.input) == [("system", BRIEF.text), ("user", ASK.text)]
    assert texts(found.output) == [("assistant", SAID)]
    assert [request for message in found.output or () for request in message.tool_requests] == [CALL]
    assert found.tools == (ToolDefinition("get_weather", "", SCHEMA),)


def test_a_run_and_its_tool() -> None:
    found = seen("workflow", {"question": ASK.text, "history": as_json([])}, {"__default__": SAID})
    assert (found.kind, found.agent_name, found.session_ids) == (Kind.WORKFLOW, "get_weather", ((4, "s-1"),))
    assert texts(found.input) + texts(found.output) == [("user", ASK.text), ("assistant", SAID)]
    found = seen("TOOL", {"city": "Oslo", "days": 2}, {"__default__": '{"temp_c": 4}'})
    assert (found.kind, found.tool_name) == (Kind.TOOL, "get_weather")
    assert (found.arguments, found.result) == (Captured({"city": "Oslo", "days": 2}), Captured({"temp_c": 4}))
    assert seen("TASK", {"city": "Oslo"}, {"__default__": "4"}).kind is Kind.STEP
