"""LiteLLM."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pandaeval_otel.dialects._messages import messages_of
from pandaeval_otel.model import Kind, Reasoning, Text, ToolRequest, ToolResponse, Usage
from tests.unit.dialects.composed import seen

ANSWER = [{"role": "assistant", "parts": [{"type": "text", "content": "I look it up."}], "finish_reason": "tool_calls"}]
REQUEST = {
    "litellm.call_id": "c-1",
    "gen_ai.operation.name": "chat",
    "gen_ai.request.model": "gpt-4o-mini",
    "gen_ai.output.messages": json.dumps(ANSWER),
    "gen_ai.completion.0.function_call.name": "weather",
    "gen_ai.completion.0.function_call.arguments": '{"city": "Oslo"}',
    "gen_ai.completion.1.function_call.name": "tides",
    "gen_ai.completion.1.function_call.arguments": "{}",
}
CHOICE = {
    "finish_reason": "tool_calls",
    "message": {
        "content": None,
        "role": "assistant",
        "tool_calls": [{"id": "call_1", "function": {"arguments": '{"city": "Oslo"}', "name": "weather"}}],
        "reasoning_content": "The weather first.",
    },
}


def test_tool_calls_in_separate_attributes_are_added_to_the_answer() -> None:
    span = seen(REQUEST, "litellm", name="litellm_request")
    assert span.kind is Kind.LLM
    assert span.output is not None
    [message] = span.output
    assert message.parts == (
        Text("I look it up."),
        ToolRequest("weather", {"city": "Oslo"}, ""),
        ToolRequest("tides", {}, ""),
    )


def test_an_answer_with_only_tool_calls_is_read() -> None:
    attributes = {key: value for key, value in REQUEST.items() if key != "gen_ai.output.messages"}
    output = seen(attributes, "litellm", name="litellm_request").output
    assert output is not None
    assert [part.name for part in output[0].parts if isinstance(part, ToolRequest)] == ["weather", "tides"]


@pytest.mark.parametrize(
    "attributes",
    [
        {"metadata.requester_metadata": "{'session_id': 's-1'}"},
        {"metadata.spend_logs_metadata": '{"session_id": "s-1"}'},
        {"metadata.session_id": "s-1"},
        {"metadata.litellm_session_id": "s-1"},
    ],
)
def test_sessions_in_the_metadata(attributes: dict[str, Any]) -> None:
    assert [name for _, name in seen({**REQUEST, **attributes}, "litellm").session_ids] == ["s-1"]


def test_openai_request_and_response_bodies_are_read() -> None:
    attributes = {
        "llm.openai.messages": str(
            [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Weather?"}]
        ),
        "llm.openai.choices": str([CHOICE]),
        "llm.openai.tools": str(
            [{"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}]
        ),
        "llm.openai.usage": str({"prompt_tokens": 5, "completion_tokens": 7, "total_tokens": 12}),
        "llm.openai.id": "chatcmpl-1",
        "llm.openai.model": "gpt-4o-mini",
    }
    span = seen(attributes, "litellm", name="raw_gen_ai_request")
    assert (span.kind, span.response_id, span.request_model, span.system) == (
        Kind.LLM,
        "chatcmpl-1",
        "gpt-4o-mini",
        "Be kind.",
    )
    assert span.usage == Usage(5, 7)
    assert span.tools is not None
    assert [tool.name for tool in span.tools] == ["weather"]
    assert span.output is not None
    assert span.output[0].parts == (Reasoning("The weather first."), ToolRequest("weather", {"city": "Oslo"}, "call_1"))


def test_anthropic_request_and_response_bodies_are_read() -> None:
    attributes = {
        "llm.anthropic.system": "Be kind.",
        "llm.anthropic.messages": str([{"role": "user", "content": [{"type": "text", "text": "Weather?"}]}]),
        "llm.anthropic.content": str([{"type": "text", "text": "Rain."}]),
        "llm.anthropic.usage": str({"input_tokens": 5, "output_tokens": 7}),
    }
    span = seen(attributes, "litellm", name="raw_gen_ai_request")
    assert span.output is not None
    assert (span.system, span.output[0].text, span.usage) == ("Be kind.", "Rain.", Usage(5, 7))


CALL = {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Oslo"}'}}


@pytest.mark.parametrize("as_text", [True, False])
def test_chat_fields_beside_parts_are_read(as_text: bool) -> None:
    value: Any = [
        {"role": "assistant", "parts": [], "tool_calls": [CALL], "reasoning_content": "The weather first."},
        {"role": "tool", "parts": [{"type": "text", "content": '{"wind": 7}'}], "tool_call_id": "call_1"},
    ]
    found = messages_of(json.dumps(value) if as_text else value, "user")
    assert found is not None
    asked, answered = found
    assert asked.parts == (Reasoning("The weather first."), ToolRequest("weather", {"city": "Oslo"}, "call_1"))
    assert answered.parts == (ToolResponse({"wind": 7}, "call_1"),)


def test_a_tool_call_in_both_parts_and_tool_calls_counts_once() -> None:
    part = {"type": "tool_call", "id": "call_1", "name": "weather", "arguments": {"city": "Oslo"}}
    found = messages_of([{"role": "assistant", "parts": [part], "tool_calls": [CALL]}], "assistant")
    assert found is not None
    assert found[0].parts == (ToolRequest("weather", {"city": "Oslo"}, "call_1"),)
