"""Pipecat."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pandaeval_otel.model import Captured, Kind, ToolDefinition
from tests.unit.dialects.composed import ASK, BRIEF, SAID, SCHEMA, seen, texts

LLM = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "gpt-x", "gen_ai.output.type": "text"}


@pytest.mark.parametrize(
    ("name", "attributes", "kind"),
    [
        ("conversation", {"conversation.id": "c-1"}, Kind.STEP),
        ("turn", {"turn.number": 1}, Kind.AGENT),
        ("llm", LLM, Kind.LLM),
        ("stt", {"gen_ai.operation.name": "stt", "gen_ai.request.model": "nova", "transcript": "Hi"}, Kind.STEP),
        ("tts", {"gen_ai.operation.name": "tts", "gen_ai.request.model": "sonic", "text": "Hi"}, Kind.STEP),
        ("function_call", {"tool.function_name": "t"}, Kind.TOOL),
        ("llm_tool_call", {"tool.function_name": "t"}, Kind.TOOL),
        ("llm_tool_result", {"tool.function_name": "t"}, Kind.STEP),
    ],
)
def test_span_name_and_operation_set_the_kind(name: str, attributes: dict[str, Any], kind: Kind) -> None:
    assert seen(attributes, "pipecat", name=name).kind is kind


def test_the_conversation_id_is_the_session() -> None:
    assert seen({"conversation.id": "c-1", "turn.number": 2}, "pipecat.turn", name="turn").session_ids == ((4, "c-1"),)


def test_a_model_call() -> None:
    function = {"name": "get_weather", "description": "Tells.", "parameters": SCHEMA}
    attributes = {
        **LLM,
        "input": json.dumps(
            [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Weather in Oslo?"}]
        ),
        "output": SAID,
        "tools": json.dumps([{"type": "function", "function": function}]),
    }
    span = seen(attributes, "pipecat", name="llm")
    assert (span.input, span.system, texts(span.output)) == ((BRIEF, ASK), "Be brief.", [("assistant", SAID)])
    assert span.tools == (ToolDefinition("get_weather", "Tells.", SCHEMA),)


def test_a_tool() -> None:
    attributes = {
        "tool.function_name": "get_weather",
        "tool.call_id": "c9",
        "tool.arguments": '{"city": "Oslo"}',
        "tool.result": '{"temp_c": 4}',
        "tool.result_status": "completed",
    }
    span = seen(attributes, "pipecat", name="function_call")
    assert (span.tool_name, span.tool_call_id, span.error) == ("get_weather", "c9", None)
    assert (span.arguments, span.result) == (Captured({"city": "Oslo"}), Captured({"temp_c": 4}))


def test_a_tool_that_failed() -> None:
    attributes = {"tool.function_name": "t", "tool.result": '{"error": "no wind"}', "tool.result_status": "error"}
    assert seen(attributes, "pipecat", name="function_call").error == '{"error": "no wind"}'
