"""Wrapped values and Python reprs."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pandaeval_otel.dialects._prompted import prompted_tools, without_protocol, without_task_mark
from pandaeval_otel.dialects._reprs import from_repr, is_object_text
from pandaeval_otel.dialects._runs import answered, asked, model_input
from pandaeval_otel.dialects._tool_values import is_final_answer, tool_arguments, tool_outcome
from pandaeval_otel.dialects._values import hidden
from pandaeval_otel.model import (
    NOT_CAPTURED,
    Captured,
    Message,
    Reasoning,
    Text,
    ToolDefinition,
    ToolRequest,
    ToolResponse,
)
from tests.unit.dialects.composed import seen

ASK = Message("user", (Text("Weather in Oslo?"),))
ANSWER = Message("assistant", (Text("4 degrees."),))
HAYSTACK = "ChatMessage(_role=<ChatRole.{0}: '{1}'>, _content=[{2}], _name=None, _meta={{}})"
CALL = "ToolCall(tool_name='get_weather', arguments={'city': 'Oslo'}, id='c9', extra=None)"


@pytest.mark.parametrize(
    "value",
    [
        "Weather in Oslo?",
        '"Weather in Oslo?"',
        '{"task": "Weather in Oslo?", "stream": false, "max_steps": null}',
        '{"input_args": {"question": "Weather in Oslo?"}}',
        '{"messages": [["user", "Weather in Oslo?"]]}',
        "[Message(role='user', content='Weather in Oslo?', name=None, created_at=1755)]",
        '{"user_id": "u", "new_message": {"role": "user", "parts": [{"text": "Weather in Oslo?"}]}, "state": {}}',
        '{"data": {"builder": {"query": "Weather in Oslo?"}, "retriever": {"top_k": 3}}}',
        {"messages": [HAYSTACK.format("USER", "user", "TextContent(text='Weather in Oslo?')")]},
        {"messages": ["source='user' models_usage=None content='Weather in Oslo?' type='TextMessage'"]},
        '{"contents": [{"role": "user", "parts": [{"text": "Weather in Oslo?"}]}]}',
    ],
)
def test_questions_are_unwrapped(value: Any) -> None:
    assert asked(value) == ((ASK,), False)


@pytest.mark.parametrize(
    "value",
    [
        "4 degrees.",
        '{"trajectory": {"thought_0": "Hm."}, "reasoning": "Hm.", "answer": "4 degrees."}',
        '{"raw": "4 degrees.", "messages": [{"role": "user", "content": "Weather in Oslo?"}]}',
        '[{"graph": null, "update": {"messages": [{"type": "ai", "data": {"content": "4 degrees."}}]}, "goto": []}]',
        '{"content": {"role": "model", "parts": [{"text": "4 degrees."}]}, "usage_metadata": {}}',
        '{"id": "resp_1", "output": [{"type": "message", "role": "assistant", "content":'
        ' [{"type": "output_text", "text": "4 degrees."}]}], "text": {"format": {"type": "text"}}}',
        '{"messages": [{"source": "user", "content": "Weather in Oslo?", "type": "TextMessage"},'
        ' {"source": "desk", "content": "4 degrees.", "type": "TextMessage"}], "stop_reason": null}',
    ],
)
def test_answers_are_unwrapped(value: Any) -> None:
    assert answered(value) == ((ANSWER,), False)


@pytest.mark.parametrize(
    "value",
    [
        None,
        "null",
        "None",
        "__REDACTED__",
        "<Client object at 0x7f12>",
        "StopEvent(result=AgentOutput(response=Chat...",
        '{"init_state": {"queue": [], "config": {"workers": 4}}, "start_event": "StartEvent()", "tags": {"a": {}}}',
    ],
)
def test_values_without_a_question_give_none(value: Any) -> None:
    assert asked(value)[0] is None


def test_empty_text_is_captured_as_empty() -> None:
    assert asked("") == ((), False)
    assert answered('""') == ((), False)


def test_a_truncated_conversation_gives_a_question_only_if_it_has_one_message() -> None:
    assert asked('{"messages": [{"role": "user", "content": "Weather in Os') == (
        (Message("user", (Text("Weather in Os"), NOT_CAPTURED)),),
        True,
    )
    assert asked('[{"role": "user", "content": "older"}, {"role": "assistant", "content": "o')[0] is None
    given, cut = model_input('[{"role": "user", "content": "older"}, {"role": "assistant", "content": "o')
    assert cut
    assert [message.role for message in given or ()] == ["user", "assistant"]


def test_an_answer_follows_the_last_question() -> None:
    said = [("user", "one"), ("assistant", "1"), ("user", "two"), ("assistant", "2")]
    value = {"messages": [{"role": role, "content": text} for role, text in said]}
    assert answered(json.dumps(value))[0] == (Message("assistant", (Text("2"),)),)


def test_a_very_deep_or_large_structure_is_not_read() -> None:
    deep: Any = {"input": "x"}
    for _ in range(30):
        deep = {"state": deep}
    assert asked(deep)[0] is None
    assert asked([["x"] * 50 for _ in range(80)])[0] is None


@pytest.mark.parametrize(
    ("value", "arguments"),
    [
        ('{"city": "Oslo"}', Captured({"city": "Oslo"})),
        ('{"kwargs": {"city": "Oslo"}}', Captured({"city": "Oslo"})),
        ('{"args": ["Oslo"], "kwargs": {"day": 2}}', Captured({"city": "Oslo", "day": 2})),
        ('{"args": [{"city": "Oslo"}], "kwargs": {}}', Captured({"city": "Oslo"})),
        ('{"args": "x", "city": "Oslo"}', Captured({"args": "x", "city": "Oslo"})),
        ('{"tool_name": "f", "arguments": {"city": "Oslo"}}', Captured({"city": "Oslo"})),
        ("Oslo", Captured("Oslo")),
        ("{}", Captured({})),
        ('{"city": "Os', None),
        ("__REDACTED__", None),
        (None, None),
    ],
)
def test_tool_arguments_are_unwrapped(value: Any, arguments: Captured | None) -> None:
    assert tool_arguments(value, '{"type": "object", "properties": {"city": {}, "day": {}}}') == arguments


@pytest.mark.parametrize(
    ("value", "result", "failed"),
    [
        ('{"temp_c": 4}', {"temp_c": 4}, False),
        ("4 degrees", "4 degrees", False),
        (
            '{"blocks": [{"text": "4"}], "tool_name": "f", "raw_input": {}, "raw_output": "4", "is_error": true}',
            "4",
            True,
        ),
        ('{"content": [{"type": "text", "text": "{\\"t\\": 4}"}], "isError": false}', {"t": 4}, False),
        ('{"content": [], "structuredContent": {"t": 4}, "isError": true}', {"t": 4}, True),
        ('{"id": "c9", "name": "f", "response": {"t": 4}}', {"t": 4}, False),
        ("content='{\"t\": 4}' name='f' tool_call_id='c9'", {"t": 4}, False),
        ('{"output": 4}', {"output": 4}, False),
        ('{"result": "4", "unit": "C"}', {"result": "4", "unit": "C"}, False),
        ('{"type": "tool", "data": {"content": "{\\"t\\": 4, \\"sky', '{"t": 4, "sky', False),
    ],
)
def test_tool_results_are_unwrapped(value: Any, result: Any, failed: bool) -> None:
    found = tool_outcome(value)
    assert (found.result, found.failed) == (Captured(result), failed)


def test_redacted_results_are_not_captured() -> None:
    assert tool_outcome("__REDACTED__").result is None


def test_final_answer_tools_are_recognised() -> None:
    assert is_final_answer("final_result", '{"x": 1}')
    assert is_final_answer("finish", "{}")
    assert not is_final_answer("finish", '{"order": 1}')
    assert not is_final_answer("get_weather", None)


def test_reprs_of_messages() -> None:
    said = HAYSTACK.format("ASSISTANT", "assistant", f"TextContent(text='It\\'s \"wet\".'), {CALL}")
    told = HAYSTACK.format("TOOL", "tool", f"ToolCallResult(result='4', origin={CALL}, error=False)")
    assert answered({"messages": [said, told]})[0] == (
        Message("assistant", (Text('It\'s "wet".'), ToolRequest("get_weather", {"city": "Oslo"}, "c9"))),
        Message("tool", (ToolResponse("4", "c9", "get_weather"),)),
    )


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("Point(x=1, y=-2.5, z=1e3)", {"x": 1, "y": -2.5, "z": 1000.0}),
        (
            "A(b=[1, (2, 3)], c={'d': None, 'e': True}, f=<X object at 0x1>)",
            {
                "b": [1, [2, 3]],
                "c": {"d": None, "e": True},
                "f": None,
            },
        ),
        ("A(b=module.Name(1, k='v'))", {"b": {"0": 1, "k": "v"}}),
        ("a='x\\n\\u00e9\\\\' b=None", {"a": "x\né\\", "b": None}),
        ("Note(text=b'bytes')", {"text": "bytes"}),
        ("A(b='\\ud800')", {"b": "\ufffd"}),
        ("A(b=1", None),
        ("A(b='x", None),
        ("x=5", None),
        ("price=12 means cheap", None),
        ("Oslo (Norway)", None),
        ("F(" * 500, None),
        ("A(b=" * 500, None),
        ("A(b=1" + "0" * 5000 + ")", {"b": "1" + "0" * 5000}),
    ],
)
def test_reprs_are_parsed_or_rejected(text: str, value: Any) -> None:
    assert from_repr(text) == value


def test_object_reprs_are_distinguished_from_text() -> None:
    assert is_object_text("<a.B object at 0x7f>")
    assert is_object_text("Event(result=Out(x='cut off…")
    assert not is_object_text("Hello (there).")
    assert not is_object_text("<b>bold</b>")


def test_reasoning_of_prompted_protocols_is_split_from_the_answer() -> None:
    said = "[[ ## reasoning ## ]]\nI know.\n\n[[ ## answer ## ]]\n4 degrees.\n\n[[ ## completed ## ]]"
    assert without_protocol((Message("assistant", (Text(said),)),)) == (
        Message("assistant", (Reasoning("I know."), Text("4 degrees."))),
    )
    code = "Thought: I look.\n<code>\nf()\n</code>"
    assert without_protocol((Message("assistant", (Text(code),)),)) == (
        Message("assistant", (Reasoning("I look."), Text("<code>\nf()\n</code>"))),
    )
    assert without_protocol((ANSWER,)) == (ANSWER,)
    assert without_protocol(None) is None


def test_tools_are_read_from_the_system_prompt() -> None:
    system = (
        "Pick one of:\n"
        "(1) get_weather, whose description is <desc>Looks\n out.</desc>. "
        "It takes arguments {'city': {'type': 'string'}}.\n"
        "(2) finish, whose description is <desc>Ends.</desc>. It takes arguments {}.\n"
    )
    schema = {"type": "object", "properties": {"city": {"type": "string"}}}
    assert prompted_tools(system) == (ToolDefinition("get_weather", "Looks out.", schema),)
    assert prompted_tools("You are a desk.") is None


def test_the_new_task_prefix_is_removed_from_the_question() -> None:
    given = (Message("system", (Text("s"),)), Message("user", (Text("New task:\nWeather in Oslo?"),)))
    assert without_task_mark(given) == (given[0], ASK)
    assert without_task_mark((ASK,)) == (ASK,)


@pytest.mark.parametrize(
    "metrics",
    [
        {"prompt_tokens": 5, "completion_tokens": 2},
        {"promptTokens": 5, "completionTokens": 2},
        {"type": "json", "value": {"promptTokens": 5, "completionTokens": 2}},
        {"type": "json", "value": {"prompt_tokens": 5, "completion_tokens": 2}},
        {"type": "json", "value": {"promptTokens": 5, "completionTokens": 2, "cost": 0.1}},
    ],
)
def test_langwatch_tokens_are_read_in_every_format(metrics: dict[str, Any]) -> None:
    usage = seen({"langwatch.span.type": "llm", "langwatch.metrics": json.dumps(metrics)}).usage
    assert usage is not None
    assert (usage.input, usage.output) == (5, 2)


@pytest.mark.parametrize("text", ["<WorkflowHandler pending>", "<coroutine object run>", "<Task pending name=1>"])
def test_reprs_of_pending_objects_are_no_content(text: str) -> None:
    assert hidden(text)
    assert not hidden(text.strip("<>"))
