"""smolagents."""

from __future__ import annotations

import json
from typing import Any

from pandaeval_otel.model import Kind, Message, Text, ToolRequest, ToolResponse
from tests.unit.dialects.composed import ASK, CALL, seen

CALLS = (
    "I look out.\nCalling tools:\n[{'id': 'c9', 'type': 'function', 'function': "
    "{'name': 'get_weather', 'arguments': {'city': 'Oslo'}}}]"
)


def chat(*messages: tuple[str, str]) -> dict[str, Any]:
    written = [
        {"role": f"MessageRole.{role}", "parts": [{"type": "text", "content": text}], "name": None}
        for role, text in messages
    ]
    return {"gen_ai.operation.name": "chat", "gen_ai.input.messages": json.dumps(written)}


def test_tool_calls_and_results_in_text_are_parsed() -> None:
    span = seen(
        chat(("USER", "New task:\nWeather in Oslo?"), ("ASSISTANT", CALLS), ("USER", 'Observation:\n{"temp_c": 4}'))
    )
    assert span.input == (
        ASK,
        Message("assistant", (Text("I look out."), CALL)),
        Message("tool", (ToolResponse({"temp_c": 4}, "c9"),)),
    )


def test_a_growing_conversation_is_read_fully_at_each_length() -> None:
    talk = [
        ("USER", "New task:\nWeather in Oslo?"),
        ("ASSISTANT", CALLS),
        ("USER", "Observation:\n4"),
        ("ASSISTANT", "4"),
    ]
    grown = [seen(chat(*talk[:length])).input for length in range(1, len(talk) + 1)]
    assert grown[-1] == (
        ASK,
        Message("assistant", (Text("I look out."), CALL)),
        Message("tool", (ToolResponse("4", "c9"),)),
        Message("assistant", (Text("4"),)),
    )
    assert [told and len(told) for told in grown] == [1, 2, 3, 4]


def test_result_lines_are_assigned_to_parallel_calls() -> None:
    two = CALLS[:-1] + ", {'id': 'c8', 'function': {'name': 'get_tide', 'arguments': {}}}]"
    span = seen(chat(("USER", "New task:\nWeather in Oslo?"), ("ASSISTANT", two), ("USER", "Observation:\nwet\nlow")))
    assert span.input is not None
    assert span.input[1].tool_requests == (CALL, ToolRequest("get_tide", {}, "c8"))
    assert span.input[2].tool_responses == (ToolResponse("wet", "c9"), ToolResponse("low", "c8"))


def test_results_stay_one_text_if_lines_do_not_match_the_parallel_calls() -> None:
    two = CALLS[:-1] + ", {'id': 'c8', 'function': {'name': 'get_tide', 'arguments': {}}}]"
    span = seen(chat(("USER", "New task:\nx"), ("ASSISTANT", two), ("USER", "Observation:\nwet\nvery\nlow")))
    assert span.input is not None
    assert span.input[2].tool_responses == (ToolResponse("wet\nvery\nlow"),)


def test_tasks_and_errors_in_one_message_are_split() -> None:
    failed = "Error:\nError executing tool 'get_weather' with arguments {}: no wind\nNow let's retry: take care"
    span = seen(chat(("USER", f"New task:\nWeather in Oslo?\n{failed}\nNew task:\nAnd in Rome?")))
    assert span.input == (
        ASK,
        Message(
            "tool", (ToolResponse("Error executing tool 'get_weather' with arguments {}: no wind", "", "get_weather"),)
        ),
        Message("user", (Text("And in Rome?"),)),
    )


def test_inputs_of_other_agents_are_unchanged() -> None:
    plain = json.dumps([{"role": "user", "parts": [{"type": "text", "content": "Observation:\nit rains"}]}])
    span = seen({"gen_ai.operation.name": "chat", "gen_ai.input.messages": plain})
    assert span.input == (Message("user", (Text("Observation:\nit rains"),)),)
    assert "smolagents" not in span.dialects


def test_the_final_answer_tool_is_a_step() -> None:
    attributes = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "final_answer"}
    assert seen(attributes, "opentelemetry.instrumentation.genai.smolagents").kind is Kind.STEP
