"""Strands."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pandaeval_otel.model import Captured, Kind, Message, Reasoning, Text, ToolDefinition, ToolRequest, ToolResponse
from tests.unit.dialects.composed import ASK, SAID, SCHEMA, event, seen, texts

SCOPE = "strands.telemetry.tracer"
AGENT = {"gen_ai.system": "strands-agents", "gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "trip_bot"}
TOOL = {
    "gen_ai.system": "strands-agents",
    "gen_ai.operation.name": "execute_tool",
    "gen_ai.tool.name": "get_weather",
    "gen_ai.tool.call.id": "c9",
}


def test_a_run_in_default_mode() -> None:
    span = seen(
        {**AGENT, "system_prompt": "Be brief.", "gen_ai.agent.tools": '["get_weather"]', "session.id": "s-1"},
        SCOPE,
        [
            event("gen_ai.user.message", content='[{"text": "Weather in Oslo?"}]'),
            event("gen_ai.choice", message=SAID, finish_reason="end_turn"),
        ],
    )
    assert (span.kind, span.agent_name, span.system) == (Kind.AGENT, "trip_bot", "Be brief.")
    assert span.input == (ASK,)
    assert span.output == (Message("assistant", (Text(SAID),), "end_turn"),)
    assert span.tools == (ToolDefinition("get_weather"),)
    assert span.session_ids == ((3, "s-1"),)


def test_a_model_call_in_bedrock_blocks() -> None:
    history = [{"toolResult": {"toolUseId": "c8", "status": "success", "content": [{"text": '{"temp_c": 4}'}]}}]
    made = [
        {"reasoningContent": {"reasoningText": {"text": "look out"}}},
        {"toolUse": {"toolUseId": "c9", "name": "get_weather", "input": {"city": "Oslo"}}},
    ]
    span = seen(
        {"gen_ai.operation.name": "chat", "gen_ai.request.model": "us.x"},
        SCOPE,
        [
            event("gen_ai.tool.message", content=json.dumps(history)),
            event("gen_ai.choice", message=json.dumps(made), finish_reason="tool_use"),
        ],
    )
    assert span.input == (Message("tool", (ToolResponse({"temp_c": 4}, "c8"),)),)
    assert span.output is not None
    assert span.output[0].parts == (Reasoning("look out"), ToolRequest("get_weather", {"city": "Oslo"}, "c9"))


def test_tool_arguments_and_result_are_read_from_events() -> None:
    span = seen(
        {**TOOL, "gen_ai.tool.status": "success"},
        SCOPE,
        [
            event("gen_ai.tool.message", role="tool", content='{"city": "Oslo"}', id="c9"),
            event("gen_ai.choice", message='[{"text": "{\\"temp_c\\": 4}"}]', id="c9"),
        ],
    )
    assert (span.arguments, span.result, span.error) == (Captured({"city": "Oslo"}), Captured({"temp_c": 4}), None)


@pytest.mark.parametrize("key", ["gen_ai.tool.status", "tool.status"])
def test_a_failed_tool_is_marked_by_an_attribute_of_either_name(key: str) -> None:
    failed = event("gen_ai.choice", message='[{"text": "Error: no wind"}]', id="c9")
    assert seen({**TOOL, key: "error"}, SCOPE, [failed]).error == "Error: no wind"
    assert seen({**TOOL, key: "error"}, SCOPE).error == "tool error"


def test_the_tool_definition_is_read_from_the_tool_span() -> None:
    attributes = {**TOOL, "gen_ai.tool.description": "Looks out.", "gen_ai.tool.json_schema": json.dumps(SCHEMA)}
    assert seen(attributes, SCOPE).tools == (ToolDefinition("get_weather", "Looks out.", SCHEMA),)


@pytest.mark.parametrize(
    ("attributes", "name"), [({"event_loop.cycle_id": "e1"}, "x"), ({}, "execute_event_loop_cycle")]
)
def test_event_loop_cycles_without_an_operation_are_steps(attributes: dict[str, Any], name: str) -> None:
    events = [event("gen_ai.user.message", content='[{"text": "Weather in Oslo?"}]')]
    assert seen(attributes, SCOPE, events, name=name).kind is Kind.STEP


def test_messages_on_several_details_events_are_merged() -> None:
    details = "gen_ai.client.inference.operation.details"
    given = [{"role": "user", "parts": [{"type": "text", "content": "Weather in Oslo?"}]}]
    made = [{"role": "assistant", "parts": [{"type": "text", "content": SAID}], "finish_reason": "end_turn"}]
    span = seen(
        AGENT,
        SCOPE,
        [
            event(details, **{"gen_ai.input.messages": json.dumps(given)}),
            event(details, **{"gen_ai.output.messages": json.dumps(made)}),
        ],
    )
    assert (span.input, texts(span.output)) == ((ASK,), [("assistant", SAID)])


def test_redacted_content_is_not_captured() -> None:
    span = seen(
        AGENT, SCOPE, [event("gen_ai.user.message", content="[REDACTED]"), event("gen_ai.choice", message="[REDACTED]")]
    )
    assert (span.input, span.output) == (None, None)
