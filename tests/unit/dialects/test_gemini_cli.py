"""Gemini CLI."""

from __future__ import annotations

import json
from typing import Any

from pandaeval_otel.model import Captured, Kind, ToolDefinition
from pandaeval_otel.normal.speech import question_of
from tests.unit.dialects.composed import ASK, SAID, SCHEMA, seen, texts

SCOPE = "gemini-cli"
ASKED = [{"role": "user", "parts": [{"text": "Weather in Oslo?"}]}]


def told(operation: str, given: Any, made: Any, **more: Any) -> dict[str, Any]:
    return {
        "gen_ai.operation.name": operation,
        "gen_ai.input.messages": given if isinstance(given, str) else json.dumps(given),
        "gen_ai.output.messages": made if isinstance(made, str) else json.dumps(made),
        **more,
    }


def test_a_model_call_in_gemini_api_format() -> None:
    made = [{"content": {"role": "model", "parts": [{"text": SAID}]}, "finishReason": "STOP"}]
    span = seen(told("llm_call", ASKED, made), SCOPE)
    assert (span.kind, span.input, texts(span.output)) == (Kind.LLM, (ASK,), [("assistant", SAID)])


def test_truncated_messages_are_read_up_to_the_cut() -> None:
    history = [*ASKED, {"role": "model", "parts": [{"text": "x" * 200}]}]
    cut = f"{json.dumps(history)[:150]}...[TRUNCATED: original length 300]"
    span = seen(told("llm_call", cut, "[]"), SCOPE)
    assert span.input is not None
    assert span.input[0] == ASK
    assert span.notes


def test_a_tool() -> None:
    request = {"callId": "c9", "name": "get_weather", "args": {"city": "Oslo"}}
    parts = [{"functionResponse": {"id": "c9", "name": "get_weather", "response": {"temp_c": 4}}}]
    call = {"status": "success", "request": request, "response": {"callId": "c9", "responseParts": parts}}
    span = seen(
        told("tool_call", request, call, **{"gen_ai.tool.name": "get_weather", "gen_ai.tool.call_id": "c9"}), SCOPE
    )
    assert (span.kind, span.tool_name, span.tool_call_id) == (Kind.TOOL, "get_weather", "c9")
    assert (span.arguments, span.result, span.error) == (Captured({"city": "Oslo"}), Captured({"temp_c": 4}), None)


def test_a_tool_that_failed() -> None:
    call = {"status": "error", "response": {"responseParts": [], "error": {"message": "no wind"}}}
    assert seen(told("tool_call", {"args": {}}, call), SCOPE).error == "no wind"


def test_subagent_output_is_the_llm_content_and_not_the_display_text() -> None:
    made = {"llmContent": [{"text": SAID}], "returnDisplay": "done"}
    span = seen(told("agent_call", "Weather in Oslo?", made), SCOPE)
    assert (span.kind, span.input, texts(span.output)) == (Kind.AGENT, (ASK,), [("assistant", SAID)])


def test_session_context_is_removed_from_the_question() -> None:
    context = "<session_context>\nThis is the Gemini CLI.\n</session_context>"
    apart = [{"role": "user", "parts": [{"text": context}, {"text": "Weather in Oslo?"}]}]
    joined = [{"role": "user", "parts": [{"text": f"{context}\n\nWeather in Oslo?"}]}]
    for given in (apart, joined):
        assert question_of(seen(told("llm_call", given, []), SCOPE)).text == "Weather in Oslo?"


def test_unclosed_tags_and_tags_of_the_user_stay_in_the_question() -> None:
    for text in ("<session_context> and no end", "<b>Oslo</b>?", "Oslo? <session_context>x</session_context>"):
        span = seen(told("llm_call", [{"role": "user", "parts": [{"text": text}]}], []), SCOPE)
        assert question_of(span).text == text


def test_a_message_with_only_session_context_is_kept() -> None:
    text = "<session_context>x</session_context>"
    assert question_of(seen(told("llm_call", [{"role": "user", "parts": [{"text": text}]}], []), SCOPE)).text == text


def test_tool_definitions_in_gemini_api_format_are_read() -> None:
    declared = [{"functionDeclarations": [{"name": "get_weather", "parametersJsonSchema": SCHEMA}]}]
    span = seen(told("llm_call", ASKED, [], **{"gen_ai.tool.definitions": json.dumps(declared)}), SCOPE)
    assert span.tools == (ToolDefinition("get_weather", parameters=SCHEMA),)


def test_the_span_that_schedules_tool_calls_has_kind_other() -> None:
    calls = [{"callId": "c9", "name": "get_weather", "args": {"city": "Oslo"}}]
    assert seen(told("schedule_tool_calls", calls, [{"request": calls[0]}]), SCOPE).kind is Kind.OTHER
