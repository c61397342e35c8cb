"""Vercel AI SDK, four releases."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pandaeval_otel.model import (
    Captured,
    Kind,
    Message,
    Reasoning,
    Text,
    ToolDefinition,
    ToolRequest,
    ToolResponse,
    Usage,
)
from tests.unit.dialects.composed import ASK, CALL, SAID, SCHEMA, seen, texts

OUTER = {
    "ai.operationId": "ai.generateText",
    "ai.telemetry.functionId": "trip_bot",
    "ai.telemetry.metadata.sessionId": "s-1",
    "ai.telemetry.metadata.userId": "u-1",
    "ai.model.id": "gpt-x",
    "ai.prompt": '{"system":"Be brief.","prompt":"Weather in Oslo?"}',
    "ai.response.text": SAID,
    "ai.response.finishReason": "stop",
    "ai.usage.promptTokens": 21,
    "ai.usage.completionTokens": 9,
}


def test_the_outer_span_is_the_run() -> None:
    span = seen(OUTER, "ai", name="ai.generateText trip_bot")
    assert (span.kind, span.agent_name, span.request_model) == (Kind.AGENT, "trip_bot", "gpt-x")
    assert (span.input, span.system) == ((ASK,), "Be brief.")
    assert span.output == (Message("assistant", (Text(SAID),), "stop"),)
    assert span.usage == Usage(input=21, output=9)
    assert (span.session_ids, span.user_id) == (((4, "s-1"),), "u-1")


@pytest.mark.parametrize("key", ["sessionId", "session_id", "threadId", "chatId", "conversationId"])
def test_session_ids_are_read_from_common_metadata_keys(key: str) -> None:
    assert seen({"ai.operationId": "ai.streamText", f"ai.telemetry.metadata.{key}": "s-1"}).session_ids == ((4, "s-1"),)


@pytest.mark.parametrize(
    "prompt",
    [
        {"messages": [{"role": "user", "content": [{"type": "text", "text": "Weather in Oslo?"}]}]},
        {"prompt": [{"role": "user", "content": "Weather in Oslo?"}]},
        "Weather in Oslo?",
    ],
)
def test_prompts_may_be_text_or_messages(prompt: Any) -> None:
    value = prompt if isinstance(prompt, str) else json.dumps(prompt)
    assert seen({"ai.operationId": "ai.streamText", "ai.prompt": value}).input == (ASK,)


def test_a_model_call_with_reasoning_and_calls() -> None:
    history = [
        {"role": "user", "content": [{"type": "text", "text": "Weather in Oslo?"}]},
        {
            "role": "assistant",
            "content": [{"type": "tool-call", "toolCallId": "c9", "toolName": "get_weather", "args": {"city": "Oslo"}}],
        },
        {
            "role": "tool",
            "content": [
                {
                    "type": "tool-result",
                    "toolCallId": "c9",
                    "toolName": "get_weather",
                    "output": {"type": "error-text", "value": "no wind"},
                }
            ],
        },
    ]
    tool = {"type": "function", "name": "get_weather", "description": "Looks out.", "inputSchema": SCHEMA}
    call = {"toolCallId": "c9", "toolName": "get_weather", "input": '{"city": "Oslo"}'}
    span = seen(
        {
            "ai.operationId": "ai.streamText.doStream",
            "ai.prompt.messages": json.dumps(history),
            "ai.prompt.tools": [json.dumps(tool)],
            "ai.response.text": "",
            "ai.response.reasoning": "look again",
            "ai.response.toolCalls": json.dumps([call]),
            "ai.response.finishReason": "tool-calls",
            "ai.response.model": "gpt-x-0901",
            "ai.response.id": "chatcmpl-1",
            "ai.usage.inputTokens": 21,
            "ai.usage.outputTokens": 9,
            "ai.usage.reasoningTokens": 4,
            "ai.usage.cachedInputTokens": 5,
            "gen_ai.request.model": "gpt-x",
        }
    )
    assert span.kind is Kind.LLM
    assert span.input is not None
    assert span.input[1].tool_requests == (CALL,)
    assert span.input[2].tool_responses == (
        ToolResponse({"content": "no wind", "is_error": True}, "c9", "get_weather"),
    )
    assert span.output == (Message("assistant", (Reasoning("look again"), CALL), "tool-calls"),)
    assert span.tools == (ToolDefinition("get_weather", "Looks out.", SCHEMA),)
    assert (span.response_model, span.response_id) == ("gpt-x-0901", "chatcmpl-1")
    assert span.usage == Usage(input=21, output=9, cache_read=5, reasoning=4)


def test_tool_call_spans_are_read() -> None:
    span = seen(
        {
            "ai.operationId": "ai.toolCall",
            "ai.toolCall.name": "get_weather",
            "ai.toolCall.id": "c9",
            "ai.toolCall.args": '{"city":"Oslo"}',
            "ai.toolCall.result": '{"temp_c":4}',
        }
    )
    assert (span.kind, span.tool_name, span.tool_call_id) == (Kind.TOOL, "get_weather", "c9")
    assert (span.arguments, span.result) == (Captured({"city": "Oslo"}), Captured({"temp_c": 4}))


@pytest.mark.parametrize(
    ("operation", "kind"),
    [
        ("ai.generateObject", Kind.AGENT),
        ("ai.generateObject.doGenerate", Kind.LLM),
        ("ai.embedMany", Kind.EMBEDDING),
        ("ai.embedMany.doEmbed", Kind.EMBEDDING),
        ("ai.rerank", Kind.STEP),
        ("ai.somethingNew", Kind.STEP),
    ],
)
def test_operation_ids_set_kinds(operation: str, kind: Kind) -> None:
    assert seen({"ai.operationId": operation}).kind is kind
    assert seen(name=operation).kind is kind


def test_a_generated_object_is_the_answer() -> None:
    span = seen({"ai.operationId": "ai.generateObject", "ai.response.object": '{"temp":4}'})
    assert texts(span.output) == [("assistant", '{"temp":4}')]


def test_content_that_was_switched_off_is_not_captured() -> None:
    span = seen({"ai.operationId": "ai.generateText", "ai.model.id": "gpt-x"})
    assert (span.input, span.output, span.tools) == (None, None, None)


def test_the_answer_of_release_3_is_read_from_its_own_attributes() -> None:
    span = seen({"ai.operationId": "ai.generateText", "ai.result.text": SAID, "ai.finishReason": "stop"})
    assert span.output == (Message("assistant", (Text(SAID),), "stop"),)


def run_of_7(*parts: dict[str, Any], reason: str = "stop") -> dict[str, Any]:
    return {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.request.model": "gpt-x",
        "gen_ai.output.messages": json.dumps([{"role": "assistant", "parts": parts, "finish_reason": reason}]),
    }


TEXT = {"type": "text", "content": SAID}
REQUEST = {"type": "tool_call", "id": "c9", "name": "get_weather", "arguments": {"city": "Oslo"}}


def test_the_answer_of_release_7_is_moved_after_its_tool_calls() -> None:
    span = seen(run_of_7(TEXT, REQUEST), "gen_ai", name="invoke_agent gpt-x")
    assert span.output == (Message("assistant", (CALL,)), Message("assistant", (Text(SAID),), "stop"))


def test_a_message_with_pending_tool_calls_keeps_its_order() -> None:
    span = seen(run_of_7(TEXT, REQUEST, reason="tool_call"), "gen_ai")
    assert span.output == (
        Message("assistant", (Text(SAID), ToolRequest("get_weather", {"city": "Oslo"}, "c9")), "tool_call"),
    )


def test_the_model_name_is_not_used_as_the_agent_name() -> None:
    assert seen(run_of_7(TEXT), "gen_ai", name="invoke_agent gpt-x").agent_name == ""


def test_the_session_of_release_7_is_read_from_its_context() -> None:
    attributes = {"gen_ai.operation.name": "agent_step", "ai.settings.context.threadId": "t-1"}
    span = seen(attributes, "gen_ai", name="step 1")
    assert (span.kind, span.session_ids) == (Kind.STEP, ((4, "t-1"),))


@pytest.mark.parametrize(("reason", "hosted"), [("stop", True), ("tool-calls", False)])
def test_tool_calls_in_the_final_answer_are_marked_as_hosted(reason: str, hosted: bool) -> None:
    """Only the finish reason shows a pending call."""
    calls = '[{"toolCallId": "t1", "toolName": "google_search", "input": "{}"}]'
    span = seen(
        {**OUTER, "ai.response.toolCalls": calls, "ai.response.finishReason": reason}, "ai", name="ai.generateText"
    )
    asked = ToolRequest("google_search", {}, "t1", hosted)
    parts = [part for message in span.output or () for part in message.parts]
    assert parts == ([asked, Text(SAID)] if hosted else [Text(SAID), asked])
