"""Logfire's own integrations."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pandaeval_otel.model import Captured, Kind, Message, Reasoning, ToolDefinition
from pandaeval_otel.model.raw import STATUS_ERROR
from tests.unit.dialects.composed import ASK, CALL, SAID, seen, texts

SCOPE = "logfire.openai_agents"
USER = {"role": "user", "content": "Weather in Oslo?"}


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("OpenAI Agents trace: {name}", Kind.WORKFLOW),
        ("Agent run: {name!r}", Kind.AGENT),
        ("Function: {name}", Kind.TOOL),
        ("Responses API with {gen_ai.request.model!r}", Kind.LLM),
        ("Chat completion with {gen_ai.request.model!r}", Kind.LLM),
        ("Guardrail {name!r} {triggered=}", Kind.GUARDRAIL),
        ("Handoff: {from_agent} → {to_agent}", Kind.STEP),
        ("Turn {turn} for agent trip_bot", Kind.STEP),
    ],
)
def test_span_name_templates_set_kinds(name: str, kind: Kind) -> None:
    assert seen({"gen_ai.system": "openai"}, SCOPE, name=name).kind is kind


def test_the_group_id_of_a_run_is_its_session() -> None:
    assert seen({"group_id": "chat-1"}, SCOPE, name="OpenAI Agents trace: {name}").session_ids == ((4, "chat-1"),)


def test_agents_and_their_tools() -> None:
    span = seen({"name": "trip_bot", "tools": '["get_weather"]'}, SCOPE, name="Agent run: {name!r}")
    assert (span.agent_name, span.tools) == ("trip_bot", (ToolDefinition("get_weather"),))


def test_a_function_span_is_read_as_a_tool_call() -> None:
    attributes = {"name": "get_weather", "input": '{"city": "Oslo"}', "output": '{"temp_c": 4}'}
    span = seen(attributes, SCOPE, name="Function: {name}")
    assert (span.tool_name, span.arguments, span.result) == (
        "get_weather",
        Captured({"city": "Oslo"}),
        Captured({"temp_c": 4}),
    )


def test_the_error_is_read_from_an_attribute() -> None:
    attributes = {"name": "x", "error": '{"message": "Error running tool", "data": {"error": "no wind"}}'}
    span = seen(attributes, SCOPE, name="Function: {name}", status_code=STATUS_ERROR)
    assert span.error == "Error running tool: no wind"


def test_responses_api_items_of_the_sdk_are_read() -> None:
    output = [
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "look out"}]},
        {"type": "function_call", "call_id": "c9", "name": "get_weather", "arguments": '{"city": "Oslo"}'},
    ]
    response = {
        "id": "resp_1",
        "output": output,
        "instructions": "Be brief.",
        "tools": [{"type": "function", "name": "t"}],
    }
    attributes = {"raw_input": json.dumps([USER]), "response": json.dumps(response), "gen_ai.response.id": "resp_1"}
    span = seen(attributes, SCOPE, name="Responses API")
    assert (span.input, span.system) == ((ASK,), "Be brief.")
    assert span.output is not None
    assert [part for message in span.output for part in message.parts] == [Reasoning("look out"), CALL]
    assert span.tools == (ToolDefinition("t"),)


def test_events_are_read_if_there_are_no_sdk_items() -> None:
    events = [
        {"event.name": "gen_ai.user.message", **USER},
        {"event.name": "gen_ai.unknown", "content": "reasoning\n\nSee JSON for details"},
        {"event.name": "gen_ai.assistant.message", "role": "assistant", "content": SAID},
    ]
    span = seen({"events": json.dumps(events)}, SCOPE, name="Responses API")
    assert (span.input, texts(span.output)) == ((ASK,), [("assistant", SAID)])


def test_request_and_response_of_a_provider_client_are_read() -> None:
    request = {"model": "gpt-x", "messages": [USER], "tools": [{"type": "function", "function": {"name": "t"}}]}
    response = {"message": {"role": "assistant", "content": SAID}, "usage": {}}
    attributes = {"request_data": json.dumps(request), "response_data": json.dumps(response)}
    span = seen(attributes, "logfire.openai", name="Chat Completion with {request_data[model]!r}")
    assert (span.kind, span.request_model, span.input) == (Kind.LLM, "gpt-x", (ASK,))
    assert (texts(span.output), span.tools) == ([("assistant", SAID)], (ToolDefinition("t"),))


def test_a_streamed_answer_is_read_from_its_combined_text() -> None:
    attributes: dict[str, Any] = {
        "request_data": json.dumps({"model": "gpt-x", "messages": [USER]}),
        "response_data": json.dumps({"combined_chunk_content": SAID, "chunk_count": 3}),
    }
    assert texts(seen(attributes, "logfire.openai").output) == [("assistant", SAID)]


def test_genai_messages_are_not_read_by_the_logfire_dialect() -> None:
    given = json.dumps([{"role": "user", "parts": [{"type": "text", "content": "Weather in Oslo?"}]}])
    attributes = {"request_data": '{"model": "gpt-x"}', "gen_ai.input.messages": given, "gen_ai.operation.name": "chat"}
    span = seen(attributes, "logfire.openai")
    assert (span.kind, span.input) == (Kind.LLM, (ASK,))
    assert "logfire" not in span.dialects


def test_a_pending_span_is_a_step_and_no_run() -> None:
    attributes = {"agent_name": "a", "model_name": "m", "logfire.span_type": "pending_span"}
    assert seen(attributes, "pydantic-ai", name="invoke_agent a").kind is Kind.STEP


def test_a_chat_completion_is_read_from_input_and_output() -> None:
    attributes = {"input": json.dumps([USER]), "output": json.dumps([{"role": "assistant", "content": SAID}])}
    span = seen(attributes, SCOPE, name="Chat completion with {gen_ai.request.model!r}")
    assert (span.input, span.output) == ((ASK,), (Message("assistant", span.output[0].parts if span.output else ()),))
    assert texts(span.output) == [("assistant", SAID)]
