"""Emitters without recorded traces: spans written from their code and documentation."""

from __future__ import annotations

import json
from typing import Any

from pandaeval_otel.model import Captured, Kind, Message, Reasoning, Text, ToolDefinition, Usage
from tests.unit.dialects.composed import ASK, BRIEF, CALL, SAID, SCHEMA, seen, texts

RESULT = '{"temp_c": 4}'
DEFINED = [{"type": "function", "name": "get_weather", "description": "", "parameters": SCHEMA}]


def message(role: str, *parts: dict[str, Any] | None, **more: Any) -> dict[str, Any]:
    return {"role": role, "parts": None if parts == (None,) else list(parts), **more}


def text(content: str) -> dict[str, Any]:
    return {"type": "text", "content": content}


def call(arguments: Any) -> dict[str, Any]:
    return {"type": "tool_call", "id": "c9", "name": "get_weather", "arguments": arguments}


def test_envoy_ai_gateway_system_messages_and_tool_results_are_read() -> None:
    given = [
        message("system", text("Be brief.")),
        message("user", text("Weather in Oslo?")),
        message("assistant", call('{"city": "Oslo"}')),
        message("tool", {"type": "tool_call_response", "id": "c9", "content": RESULT}),
        message("assistant", None),
    ]
    span = seen(
        {
            "gen_ai.operation.name": "chat",
            "gen_ai.request.model": "gpt-x",
            "gen_ai.input.messages": json.dumps(given),
            "gen_ai.output.messages": json.dumps([message("assistant", text(SAID), finish_reason="stop")]),
            "gen_ai.usage.input_tokens": 30,
            "gen_ai.usage.output_tokens": 9,
        },
        "envoyproxy/ai-gateway",
        name="chat gpt-x",
    )
    assert span.input is not None
    assert span.input[:3] == (BRIEF, ASK, Message("assistant", (CALL,)))
    assert [response.result for part in span.input for response in part.tool_responses] == [{"temp_c": 4}]
    assert (span.kind, span.system, texts(span.output)) == (Kind.LLM, "Be brief.", [("assistant", SAID)])
    assert span.usage == Usage(30, 9)


def test_envoy_ai_gateway_with_openinference_attributes_is_read() -> None:
    span = seen(
        {
            "openinference.span.kind": "LLM",
            "llm.system": "openai",
            "llm.model_name": "gpt-x",
            "input.value": "{}",
            "input.mime_type": "application/json",
            "llm.input_messages.0.message.role": "user",
            "llm.input_messages.0.message.content": "Weather in Oslo?",
            "llm.output_messages.0.message.role": "assistant",
            "llm.output_messages.0.message.content": SAID,
            "llm.token_count.prompt": 30,
            "llm.token_count.completion": 9,
        },
        "envoyproxy/ai-gateway",
        name="ChatCompletion",
    )
    assert (span.kind, span.input, texts(span.output), span.usage) == (
        Kind.LLM,
        (ASK,),
        [("assistant", SAID)],
        Usage(30, 9),
    )


def test_vs_code_copilot_request_reasoning_and_tool_call_are_read() -> None:
    prompt = "<context>\nThe current date is May 1.\n</context>\n<userRequest>\nWeather in Oslo?\n</userRequest>"
    shared = {"gen_ai.provider.name": "github", "gen_ai.conversation.id": "chat-1", "copilot_chat.session_id": "chat-1"}
    given = json.dumps([message("user", text(prompt))])
    run = seen(
        {
            **shared,
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.agent.name": "GitHub Copilot Chat",
            "gen_ai.input.messages": given,
            "gen_ai.output.messages": json.dumps([message("assistant", text(SAID))]),
            "copilot_chat.user_request": "Weather in Oslo?",
            "copilot_chat.turn_count": 2,
        },
        "copilot-chat",
        name="invoke_agent GitHub Copilot Chat",
    )
    assert (run.kind, run.agent_name, run.input) == (Kind.AGENT, "GitHub Copilot Chat", (ASK,))
    assert (run.session_ids[0][1], texts(run.output)) == ("chat-1", [("assistant", SAID)])
    model = seen(
        {
            **shared,
            "gen_ai.operation.name": "chat",
            "gen_ai.request.model": "gpt-x",
            "gen_ai.input.messages": given,
            "copilot_chat.user_request": "Weather in Oslo?",
            "gen_ai.output.messages": json.dumps([message("assistant", text(SAID), call({"city": "Oslo"}))]),
            "copilot_chat.reasoning_content": "Look it up.",
            "gen_ai.tool.definitions": json.dumps(DEFINED),
        },
        "copilot-chat",
        name="chat gpt-x",
    )
    assert model.output == (Message("assistant", (Reasoning("Look it up."), Text(SAID), CALL)),)
    assert model.tools == (ToolDefinition("get_weather", parameters=SCHEMA),)
    tool = seen(
        {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": "get_weather",
            "gen_ai.tool.type": "function",
            "gen_ai.tool.call.id": "c9",
            "gen_ai.tool.call.arguments": '{"city": "Oslo"}',
            "gen_ai.tool.call.result": RESULT,
            "copilot_chat.chat_session_id": "chat-1",
        },
        "copilot-chat",
        name="execute_tool get_weather",
    )
    assert (tool.kind, tool.arguments, tool.result) == (Kind.TOOL, Captured({"city": "Oslo"}), Captured({"temp_c": 4}))


def test_microsoft_extensions_ai_for_dotnet_is_read() -> None:
    given = [
        message("system", text("Be brief.")),
        message("user", text("Weather in Oslo?"), {"type": "Contoso.MapContent", "content": {}}),
    ]
    made = message("assistant", {"type": "reasoning", "content": "Look it up."}, call({"city": "Oslo"}))
    span = seen(
        {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": "openai",
            "gen_ai.request.model": "gpt-x",
            "gen_ai.response.id": "r-1",
            "gen_ai.conversation.id": "chat-1",
            "gen_ai.response.finish_reasons": '["tool_calls"]',
            "gen_ai.input.messages": json.dumps(given),
            "gen_ai.output.messages": json.dumps([{**made, "finish_reason": "tool_call"}]),
            "gen_ai.tool.definitions": json.dumps(DEFINED),
            "gen_ai.usage.input_tokens": 30,
            "gen_ai.usage.output_tokens": 9,
        },
        "Experimental.Microsoft.Extensions.AI",
        name="chat gpt-x",
    )
    assert texts(span.input) == [("system", "Be brief."), ("user", "Weather in Oslo?")]
    assert span.output == (Message("assistant", (Reasoning("Look it up."), CALL), "tool_call"),)
    assert (span.session_ids[0][1], span.usage) == ("chat-1", Usage(30, 9))
    assert seen({}, "Experimental.Microsoft.Extensions.AI", name="orchestrate_tools").kind is Kind.OTHER
