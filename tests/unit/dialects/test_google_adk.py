"""Google ADK, schemas 1 and 2."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pandaeval_otel.model import Captured, Kind, Message, Reasoning, Text, ToolDefinition, Usage
from tests.unit.dialects.composed import ASK, CALL, SAID, SCHEMA, log, seen, texts

SCOPE = "gcp.vertex.agent"
REQUEST = {
    "model": "gemini-x",
    "config": {
        "system_instruction": "Be brief.",
        "tools": [
            {"function_declarations": [{"name": "get_weather", "description": "Looks out.", "parameters": SCHEMA}]}
        ],
    },
    "contents": [{"role": "user", "parts": [{"text": "Weather in Oslo?"}]}],
}
RESPONSE = {
    "model_version": "gemini-x-001",
    "content": {
        "role": "model",
        "parts": [
            {"text": "look out", "thought": True},
            {"function_call": {"id": "c9", "name": "get_weather", "args": {"city": "Oslo"}}},
        ],
    },
    "finish_reason": "STOP",
    "usage_metadata": {"prompt_token_count": 21, "candidates_token_count": 9, "thoughts_token_count": 4},
}


def call_llm(request: Any, response: Any, **attributes: Any) -> dict[str, Any]:
    return {
        "gen_ai.system": "gcp.vertex.agent",
        "gcp.vertex.agent.session_id": "s-1",
        "gcp.vertex.agent.llm_request": request if isinstance(request, str) else json.dumps(request),
        "gcp.vertex.agent.llm_response": response if isinstance(response, str) else json.dumps(response),
        **attributes,
    }


def test_a_model_call_of_schema_1() -> None:
    span = seen(call_llm(REQUEST, RESPONSE), SCOPE, name="call_llm")
    assert (span.kind, span.request_model, span.response_model) == (Kind.LLM, "gemini-x", "gemini-x-001")
    assert (span.input, span.system) == ((ASK,), "Be brief.")
    assert span.output == (Message("assistant", (Reasoning("look out"), CALL), "STOP"),)
    assert span.tools == (ToolDefinition("get_weather", "Looks out.", SCHEMA),)
    assert span.usage == Usage(input=21, output=13, reasoning=4)
    assert span.session_ids == ((4, "s-1"),)


def test_empty_objects_are_read_as_content_that_was_not_captured() -> None:
    span = seen(call_llm("{}", "{}"), SCOPE, name="call_llm")
    assert (span.kind, span.input, span.output, span.tools) == (Kind.LLM, None, None, None)


def test_a_truncated_request_is_read_up_to_the_cut() -> None:
    span = seen(call_llm(json.dumps(REQUEST)[:-12], RESPONSE), SCOPE, name="call_llm")
    assert span.request_model == "gemini-x"
    assert texts(span.input) == [("user", "Weather in")]
    assert span.notes == ("messages were cut short by a length limit",)


def test_a_failed_response_is_an_error_and_no_answer() -> None:
    span = seen(call_llm(REQUEST, {"error_code": "429", "error_message": "quota"}), SCOPE, name="call_llm")
    assert (span.output, span.error) == (None, "quota")


TOOL = {
    "gen_ai.operation.name": "execute_tool",
    "gen_ai.tool.name": "get_weather",
    "gen_ai.tool.call.id": "c9",
    "gcp.vertex.agent.llm_request": "{}",
    "gcp.vertex.agent.llm_response": "{}",
}


@pytest.mark.parametrize(
    ("attributes", "arguments", "result"),
    [
        (
            {"gcp.vertex.agent.tool_call_args": '{"city": "Oslo"}', "gcp.vertex.agent.tool_response": '{"temp_c": 4}'},
            Captured({"city": "Oslo"}),
            Captured({"temp_c": 4}),
        ),
        (
            {
                "gcp.vertex.agent.tool_call_args": "{}",
                "gcp.vertex.agent.tool_response": '{"result": "{\\"temp_c\\": 4}"}',
            },
            Captured({}),
            Captured({"temp_c": 4}),
        ),
        ({"gcp.vertex.agent.tool_call_args": "{}", "gcp.vertex.agent.tool_response": "{}"}, None, None),
        ({"gen_ai.tool.call.result": '{"result": "wet"}'}, None, Captured("wet")),
        ({"gcp.vertex.agent.tool_response": "<not serializable>"}, None, None),
    ],
)
def test_tool_calls(attributes: dict[str, Any], arguments: Any, result: Any) -> None:
    span = seen({**TOOL, **attributes}, SCOPE, name="execute_tool get_weather")
    assert (span.kind, span.tool_name) == (Kind.TOOL, "get_weather")
    assert (span.arguments, span.result) == (arguments, result)


def test_a_placeholder_tool_call_id_is_dropped() -> None:
    assert seen({**TOOL, "gen_ai.tool.call.id": "<not specified>"}, SCOPE).tool_call_id == ""


@pytest.mark.parametrize("name", ["execute_tool (merged)", "execute_tool get_weather"])
def test_the_merged_span_of_parallel_calls_is_no_tool_call(name: str) -> None:
    merged = {**TOOL, "gen_ai.tool.name": "(merged tools)", "gcp.vertex.agent.tool_call_args": "N/A"}
    assert seen(merged, SCOPE, name=name).kind is Kind.STEP


@pytest.mark.parametrize(
    ("name", "kind", "agent", "tool"),
    [
        ("invocation", Kind.WORKFLOW, "", ""),
        ("agent_run [trip_bot]", Kind.AGENT, "trip_bot", ""),
        ("tool_call [get_weather]", Kind.TOOL, "", "get_weather"),
        ("call_llm", Kind.LLM, "", ""),
        ("send_data", Kind.STEP, "", ""),
    ],
)
def test_names_of_older_spans_set_kind_agent_and_tool(name: str, kind: Kind, agent: str, tool: str) -> None:
    span = seen({}, SCOPE, name=name)
    assert (span.kind, span.agent_name, span.tool_name) == (kind, agent, tool)


def test_span_names_in_other_scopes_are_ignored() -> None:
    assert seen({}, "app", name="invocation").kind is Kind.OTHER


def chat(*parts: dict[str, Any], thought: int) -> dict[str, Any]:
    return {
        "gen_ai.operation.name": "generate_content",
        "gen_ai.usage.reasoning.output_tokens": thought,
        "gen_ai.output.messages": json.dumps([{"role": "assistant", "parts": parts, "finish_reason": "stop"}]),
    }


FIRST, SECOND = {"type": "text", "content": "look out"}, {"type": "text", "content": SAID}


def test_the_first_text_is_read_as_reasoning_if_reasoning_tokens_are_counted() -> None:
    span = seen(chat(FIRST, SECOND, thought=4), SCOPE)
    assert span.output == (Message("assistant", (Reasoning("look out"), Text(SAID)), "stop"),)
    assert span.notes == ("the first text part was read as thoughts, because the span counts reasoning tokens",)


@pytest.mark.parametrize(("parts", "thought"), [((FIRST, SECOND), 0), ((SECOND,), 4)])
def test_text_stays_text_without_reasoning_tokens_or_a_second_text(parts: tuple[Any, ...], thought: int) -> None:
    span = seen(chat(*parts, thought=thought), SCOPE)
    assert span.output is not None
    assert all(type(part) is Text for part in span.output[0].parts)
    assert span.notes == ()


def test_elided_log_records_are_no_content() -> None:
    span = seen(
        {"gen_ai.operation.name": "generate_content", "gen_ai.request.model": "gemini-x"},
        SCOPE,
        logs=[log("gen_ai.user.message", {"content": "<elided>"}), log("gen_ai.choice", {"content": "<elided>"})],
    )
    assert (span.input, span.output) == (None, None)


def test_openinference_model_data_on_an_agent_span_is_one_model_call() -> None:
    mixed = {
        "openinference.span.kind": "LLM",
        "gen_ai.operation.name": "generate_content",
        "input.value": json.dumps(REQUEST),
        "output.value": json.dumps(RESPONSE),
        "llm.output_messages.0.message.role": "model",
        "llm.output_messages.0.message.contents.0.message_content.type": "text",
        "llm.output_messages.0.message.contents.0.message_content.text": "of the call before",
        "llm.output_messages.0.message.tool_calls.1.tool_call.function.name": "of_the_call_before",
    }
    span = seen(mixed, SCOPE, name="invoke_agent desk")
    assert span.output is not None
    assert span.input is not None
    assert (span.kind, span.input, span.usage) == (Kind.LLM, (ASK,), Usage(input=21, output=13, reasoning=4))
    assert span.output[0].parts == (Reasoning("look out"), CALL)
    assert span.tools == (ToolDefinition("get_weather", "Looks out.", SCHEMA),)


def test_an_error_event_in_place_of_an_answer_is_no_output() -> None:
    event = {"error_code": "INVALID_ARGUMENT", "error_message": "400", "invocation_id": "e-1", "author": "desk"}
    span = seen(
        {"openinference.span.kind": "CHAIN", "output.value": json.dumps(event)},
        "openinference.instrumentation.google_adk",
        name="invocation [app]",
    )
    assert span.output is None
