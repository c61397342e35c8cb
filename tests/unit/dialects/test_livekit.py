"""LiveKit Agents."""

from __future__ import annotations

import json

import pytest

from pandaeval_otel.model import Captured, Kind, Message, ToolDefinition
from tests.unit.dialects.composed import ASK, CALL, SAID, seen, texts

SCOPE = "livekit-agents"
CHAT = {
    "items": [
        {"id": "i0", "type": "message", "role": "system", "content": ["Be brief."]},
        {"id": "i1", "type": "message", "role": "user", "content": ["Weather in Oslo?"]},
        {"id": "i2", "type": "function_call", "call_id": "c9", "name": "get_weather", "arguments": '{"city": "Oslo"}'},
        {"id": "i3", "type": "function_call_output", "call_id": "c9", "name": "get_weather", "output": "4"},
    ]
}


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("agent_session", Kind.STEP),
        ("agent_turn", Kind.AGENT),
        ("llm_node", Kind.LLM),
        ("function_tool", Kind.TOOL),
        ("judge_evaluation", Kind.EVALUATION),
        ("tts_node", Kind.STEP),
    ],
)
def test_span_names_set_kinds(name: str, kind: Kind) -> None:
    assert seen({}, SCOPE, name=name).kind is kind


def test_the_genai_operation_sets_the_kind_of_spans_with_other_names() -> None:
    assert seen({"gen_ai.operation.name": "chat"}, SCOPE, name="llm_request").kind is Kind.LLM


@pytest.mark.parametrize("private", ["lk.", "lk.pii."])
def test_a_turn(private: str) -> None:
    attributes = {
        f"{private}user_input": "Weather in Oslo?",
        f"{private}response.text": SAID,
        f"{private}room_name": "room-7",
        "lk.agent_label": "trip_bot",
    }
    span = seen(attributes, SCOPE, name="agent_turn")
    assert (span.input, texts(span.output)) == ((ASK,), [("assistant", SAID)])
    assert (span.agent_name, [name for _, name in span.session_ids]) == ("trip_bot", ["room-7"])


def test_a_model_call() -> None:
    attributes = {
        "lk.chat_ctx": json.dumps(CHAT),
        "lk.response.text": "",
        "lk.response.function_calls": [
            json.dumps({"call_id": "c9", "name": "get_weather", "arguments": '{"city": "Oslo"}'})
        ],
        "lk.function_tools": ("get_weather",),
    }
    span = seen(attributes, SCOPE, name="llm_node")
    assert span.system == "Be brief."
    assert span.input is not None
    assert [message.role for message in span.input] == ["system", "user", "assistant", "tool"]
    assert span.input[2].tool_requests == (CALL,)
    assert span.output == (Message("assistant", (CALL,)),)
    assert span.tools == (ToolDefinition("get_weather"),)


@pytest.mark.parametrize("arguments", ["lk.function_tool.args", "lk.pii.function_tool.arguments"])
def test_a_tool(arguments: str) -> None:
    attributes = {
        "lk.function_tool.name": "get_weather",
        "lk.function_tool.id": "c9",
        arguments: '{"city": "Oslo"}',
        "lk.function_tool.output": '{"temp_c": 4}',
        "lk.function_tool.is_error": False,
    }
    span = seen(attributes, SCOPE, name="function_tool")
    assert (span.tool_name, span.tool_call_id, span.error) == ("get_weather", "c9", None)
    assert (span.arguments, span.result) == (Captured({"city": "Oslo"}), Captured({"temp_c": 4}))


def test_the_error_of_a_failed_tool_is_its_output() -> None:
    attributes = {"lk.function_tool.name": "t", "lk.function_tool.is_error": True, "lk.function_tool.output": "no wind"}
    assert seen(attributes, SCOPE, name="function_tool").error == "no wind"
