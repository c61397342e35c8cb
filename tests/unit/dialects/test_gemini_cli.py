"""Gemini CLI."""

from __future__ import annotations

import json
from typing import Any

from pandaeval_otel.model import Captured, Kind, ToolDefinition
from pandaeval_otel.normal.speech import asked
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


def test_a_model_call_in_the_apis_form() -> None:
    made = [{"content": {"role": "model", "parts": [{"text": SAID}]}, "finishReason": "STOP"}]
    span = seen(told("llm_call", ASKED, made), SCOPE)
    assert (span.kind, span.input, texts(span.output)) == (Kind.LLM, (ASK,), [("assistant", SAID)])


def test_what_was_cut_is_read_as_far_as_it_goes() -> None:
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


def test_a_subagent_tells_the_model_more_than_the_screen() -> None:
    made = {"llmContent": [{"text": SAID}], "returnDisplay": "done"}
    span = seen(told("agent_call", "Weather in Oslo?", made), SCOPE)
    assert (span.kind, span.input, texts(span.output)) == (Kind.AGENT, (ASK,), [("assistant", SAID)])


def test_what_it_tells_of_the_session_is_not_what_the_user_said() -> None:
    context = "<session_context>\nThis is the Gemini CLI.\n</session_context>"
    apart = [{"role": "user", "parts": [{"text": context}, {"text": "Weather in Oslo?"}]}]
    joined = [{"role": "user", "parts": [{"text": f"{context}\n\nWeather in Oslo?"}]}]
    for given in (apart, joined):
        assert asked(seen(told("llm_call", given, []), SCOPE)).text == "Weather in Oslo?"


def test_a_block_that_does_not_end_and_one_of_the_users_stay() -> None:
    for text in ("<session_context> and no end", "<b>Oslo</b>?", "Oslo? <session_context>x</session_context>"):
        span = seen(told("llm_call", [{"role": "user", "parts": [{"text": text}]}], []), SCOPE)
        assert asked(span).text == text


def test_a_message_of_nothing_but_context_is_kept() -> None:
    text = "<session_context>x</session_context>"
    assert asked(seen(told("llm_call", [{"role": "user", "parts": [{"text": text}]}], []), SCOPE)).text == text


def test_tools_as_the_api_declares_them() -> None:
    declared = [{"functionDeclarations": [{"name": "get_weather", "parametersJsonSchema": SCHEMA}]}]
    span = seen(told("llm_call", ASKED, [], **{"gen_ai.tool.definitions": json.dumps(declared)}), SCOPE)
    assert span.tools == (ToolDefinition("get_weather", parameters=SCHEMA),)


def test_what_schedules_calls_is_no_work_of_its_own() -> None:
    calls = [{"callId": "c9", "name": "get_weather", "args": {"city": "Oslo"}}]
    assert seen(told("schedule_tool_calls", calls, [{"request": calls[0]}]), SCOPE).kind is Kind.OTHER
