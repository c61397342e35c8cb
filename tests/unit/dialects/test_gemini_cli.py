"""Gemini CLI: objects of its own where messages should stand."""

from __future__ import annotations

import json
from typing import Any

from pandaeval_otel.model import Captured, Kind
from tests.unit.dialects.composed import ASK, SAID, seen, texts

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
