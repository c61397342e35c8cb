"""Pydantic AI's six formats."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pandaeval_otel.model import NOT_CAPTURED, Captured, Kind, Message, Reasoning, Text, ToolDefinition, Usage
from tests.unit.dialects.composed import ANSWER, ASK, BRIEF, CALL, FOUND, SAID, SCHEMA, seen, texts

SCOPE = "pydantic-ai"

USER = {"role": "user", "parts": [{"type": "text", "content": "Weather in Oslo?"}]}
ASSISTANT = {"role": "assistant", "parts": [{"type": "text", "content": SAID}], "finish_reason": "stop"}
REQUEST = {
    "role": "assistant",
    "parts": [
        {"type": "thinking", "content": "use the tool"},
        {"type": "tool_call", "id": "c9", "name": "get_weather", "arguments": '{"city": "Oslo"}'},
    ],
}
RESPONSE = {
    "role": "user",
    "parts": [{"type": "tool_call_response", "id": "c9", "name": "get_weather", "result": {"temp_c": 4}}],
}
EARLIER = [
    {"role": "system", "parts": [{"type": "text", "content": "Be brief."}]},
    {"role": "user", "parts": [{"type": "text", "content": "Hello"}]},
    {"role": "assistant", "parts": [{"type": "text", "content": "Hi!"}]},
]
RUN = {"agent_name": "trip_bot", "model_name": "gpt-x"}


def run(messages: Any, **attributes: Any) -> dict[str, Any]:
    return {**RUN, "pydantic_ai.all_messages": json.dumps(messages), "final_result": SAID, **attributes}


def test_question_calls_and_answer_of_a_run_are_read_from_its_transcript() -> None:
    span = seen(run([USER, REQUEST, RESPONSE, ASSISTANT]), SCOPE, name="invoke_agent trip_bot")
    assert (span.kind, span.agent_name, span.request_model) == (Kind.AGENT, "trip_bot", "gpt-x")
    assert span.input == (ASK,)
    assert span.output is not None
    assert span.output[0].parts == (Reasoning("use the tool"), CALL)
    assert span.output[1] == Message("tool", (FOUND,))
    assert texts(span.output)[2:] == [("assistant", SAID)]


def test_the_new_message_index_counts_system_prompt_and_question_as_one_message() -> None:
    """System prompt and question are one message."""
    retry = {"role": "user", "parts": [{"type": "text", "content": "Fix the errors and try again."}]}
    span = seen(run([*EARLIER, USER, REQUEST, retry, ASSISTANT], **{"pydantic_ai.new_message_index": 2}), SCOPE)
    assert span.input is not None
    assert span.input[-1] == ASK
    assert span.system == "Be brief."
    assert texts(span.output)[-1] == ("assistant", SAID)


def test_an_index_beyond_the_transcript_falls_back_to_the_last_question() -> None:
    span = seen(run([*EARLIER, USER, ASSISTANT], **{"pydantic_ai.new_message_index": 99}), SCOPE)
    assert span.input is not None
    assert span.input[-1] == ASK


def test_messages_in_an_array_of_json_texts_are_read() -> None:
    span = seen(
        {**RUN, "pydantic_ai.all_messages": [json.dumps(USER), json.dumps(ASSISTANT)], "final_result": SAID}, SCOPE
    )
    assert span.input == (ASK,)
    assert texts(span.output) == [("assistant", SAID)]


def test_an_output_tool_call_is_read_as_the_answer() -> None:
    carrier = {
        "role": "assistant",
        "parts": [{"type": "tool_call", "id": "f1", "name": "final_result", "arguments": '{"city":"Oslo","temp":4}'}],
    }
    done = {
        "role": "user",
        "parts": [{"type": "tool_call_response", "id": "f1", "name": "final_result", "result": "ok"}],
    }
    span = seen(run([USER, carrier, done], final_result='{"city": "Oslo", "temp": 4}'), SCOPE)
    assert span.output is not None
    assert [message.tool_requests for message in span.output] == [()]
    assert json.loads(span.output[0].text) == {"city": "Oslo", "temp": 4}


def test_a_run_without_a_result_has_no_answer() -> None:
    failed = {key: value for key, value in run([USER, REQUEST, RESPONSE]).items() if key != "final_result"}
    span = seen(failed, SCOPE)
    assert span.input == (ASK,)
    assert span.output is None


def test_content_that_was_switched_off_is_not_captured() -> None:
    hidden = [{"role": "user", "parts": [{"type": "text"}]}, {"role": "assistant", "parts": [{"type": "text"}]}]
    span = seen({**RUN, "pydantic_ai.all_messages": json.dumps(hidden)}, SCOPE)
    assert span.kind is Kind.AGENT
    assert (span.input, span.output) == (None, None)


def test_a_result_as_long_as_the_truncated_transcript_is_marked_as_truncated() -> None:
    whole = json.dumps([USER, REQUEST, RESPONSE, ASSISTANT])
    attributes = {**RUN, "pydantic_ai.all_messages": whole[:200], "final_result": "x" * 200}
    span = seen(attributes, SCOPE)
    assert span.input == (ASK,)
    assert span.output == (Message("assistant", (Text("x" * 200), NOT_CAPTURED)),)
    assert seen({**attributes, "final_result": SAID}, SCOPE).output == (ANSWER,)


def test_the_question_of_a_later_run_is_not_captured_if_the_transcript_is_truncated() -> None:
    whole = json.dumps([*EARLIER, USER, ASSISTANT])
    span = seen({**RUN, "pydantic_ai.all_messages": whole[:170], "pydantic_ai.new_message_index": 2}, SCOPE)
    assert span.input is None


def test_aggregated_usage_is_the_usage_of_the_run() -> None:
    spent = {
        "gen_ai.aggregated_usage.input_tokens": 30,
        "gen_ai.aggregated_usage.output_tokens": 9,
        "gen_ai.aggregated_usage.cache_read.input_tokens": 5,
        "gen_ai.aggregated_usage.details.reasoning_tokens": 2,
    }
    assert seen({**RUN, **spent}, SCOPE).usage == Usage(input=30, output=9, cache_read=5, reasoning=2)


EVENTS = [
    {"event.name": "gen_ai.system.message", "role": "system", "content": "Be brief."},
    {"event.name": "gen_ai.user.message", "role": "user", "content": "Weather in Oslo?", "gen_ai.message.index": 0},
]


def test_messages_are_read_from_the_events_attribute_of_the_first_format() -> None:
    choice = {"event.name": "gen_ai.choice", "index": 0, "message": {"role": "assistant", "content": SAID}}
    chat = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "gpt-x", "events": json.dumps([*EVENTS, choice])}
    span = seen(chat, SCOPE)
    assert span.kind is Kind.LLM
    assert span.input == (BRIEF, ASK)
    assert span.system == "Be brief."
    assert texts(span.output) == [("assistant", SAID)]


def test_a_run_of_the_first_format() -> None:
    spoken = {"event.name": "gen_ai.assistant.message", "role": "assistant", "content": SAID}
    attributes = {**RUN, "all_messages_events": json.dumps([*EVENTS, spoken]), "final_result": SAID}
    span = seen(attributes, SCOPE, name="trip_bot run")
    assert (span.kind, span.input, texts(span.output)) == (Kind.AGENT, (BRIEF, ASK), [("assistant", SAID)])


TOOL = {"gen_ai.tool.name": "get_weather", "gen_ai.tool.call.id": "c9", "logfire.msg": "running tool: get_weather"}


@pytest.mark.parametrize(
    ("arguments", "result"),
    [("tool_arguments", "tool_response"), ("gen_ai.tool.call.arguments", "gen_ai.tool.call.result")],
)
def test_tool_spans_of_all_formats(arguments: str, result: str) -> None:
    span = seen({**TOOL, arguments: '{"city":"Oslo"}', result: '{"temp_c": 4}'}, SCOPE, name="running tool")
    assert (span.kind, span.tool_name, span.tool_call_id) == (Kind.TOOL, "get_weather", "c9")
    assert (span.arguments, span.result) == (Captured({"city": "Oslo"}), Captured({"temp_c": 4}))


@pytest.mark.parametrize(
    "attributes",
    [
        {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "final_result"},
        {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "final_result_Weather"},
        {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": "to_report",
            "logfire.msg": "running output function: to_report",
        },
    ],
)
def test_output_functions_are_steps(attributes: dict[str, Any]) -> None:
    assert seen(attributes, SCOPE).kind is Kind.STEP


def test_the_span_around_parallel_calls_is_a_step() -> None:
    assert seen({"tools": ["a", "b"]}, SCOPE, name="running 2 tools").kind is Kind.STEP


def test_offered_tools_are_read_from_the_request_parameters() -> None:
    tool = {"name": "get_weather", "description": "Looks out.", "parameters_json_schema": SCHEMA}
    parameters = {"function_tools": [tool], "output_tools": [{"name": "report", "parameters_json_schema": SCHEMA}]}
    said = [{"role": "assistant", "parts": [{"type": "tool_call", "id": "r1", "name": "report", "arguments": "{}"}]}]
    chat = {
        "gen_ai.operation.name": "chat",
        "model_request_parameters": json.dumps(parameters),
        "gen_ai.input.messages": json.dumps([USER]),
        "gen_ai.output.messages": json.dumps(said),
    }
    span = seen(chat, SCOPE)
    assert span.tools == (ToolDefinition("get_weather", "Looks out.", SCHEMA),)
    assert span.input == (ASK,)
    assert span.output == (Message("assistant", (Text("{}"),)),)


def test_an_answer_that_is_no_object_is_unwrapped() -> None:
    parameters = {"function_tools": [], "output_tools": [{"name": "final_result"}]}
    part = {"type": "tool_call", "id": "r1", "name": "final_result", "arguments": '{"response": [1, 2]}'}
    chat = {
        "gen_ai.operation.name": "chat",
        "model_request_parameters": json.dumps(parameters),
        "gen_ai.output.messages": json.dumps([{"role": "assistant", "parts": [part]}]),
    }
    assert texts(seen(chat, SCOPE).output) == [("assistant", "[1, 2]")]


def test_conversation_ids_are_sessions() -> None:
    span = seen({**RUN, "gen_ai.conversation.id": "conv-7", "gen_ai.agent.call.id": "run-1"}, SCOPE)
    assert span.session_ids == ((2, "conv-7"),)
