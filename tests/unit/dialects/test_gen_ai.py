"""All generations of the GenAI conventions."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from pandaeval_otel.base import semconv
from pandaeval_otel.dialects import Reading
from pandaeval_otel.dialects.gen_ai import DIALECT
from pandaeval_otel.model import (
    NOT_CAPTURED,
    Captured,
    Kind,
    Message,
    OtherPart,
    Reasoning,
    Text,
    ToolDefinition,
    ToolRequest,
    ToolResponse,
    Usage,
)
from pandaeval_otel.model.raw import STATUS_ERROR, RawEvent, RawLog, RawSpan, Resource, Scope
from pandaeval_otel.normal.spans import _complete, normalize

ASK = Message("user", (Text("Weather in Oslo?"),))
BRIEF = Message("system", (Text("Be brief."),))
CALL = ToolRequest("get_weather", {"city": "Oslo"}, "c9")
ANSWER = Message("assistant", (Text("4 degrees, rain."),), "stop")

CHAT = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "gpt-x"}
TOOL = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "get_weather", "gen_ai.tool.call.id": "c9"}


def read(attributes: dict[str, Any] | None = None, logs: Sequence[RawLog] = (), **fields: Any) -> Reading:
    span = RawSpan("t" * 32, "s" * 16, attributes=attributes or {}, **fields)
    found = DIALECT.read(span, logs)
    assert found is not None
    return found


def event(name: str, **attributes: Any) -> RawEvent:
    return RawEvent(name, 1, attributes)


def log(name: str, body: Any, time_ns: int = 0, **attributes: Any) -> RawLog:
    return RawLog("t" * 32, "s" * 16, name, time_ns, body, attributes)


# --- today's conventions ---------------------------------------------------------------------------------------------

CURRENT = {
    "gen_ai.operation.name": "chat",
    "gen_ai.provider.name": "openai",
    "gen_ai.request.model": "gpt-x",
    "gen_ai.response.model": "gpt-x-0901",
    "gen_ai.response.id": "resp_1",
    "gen_ai.request.previous_response.id": "resp_0",
    "gen_ai.agent.name": "trip_bot",
    "gen_ai.conversation.id": "conv-7",
    "gen_ai.usage.input_tokens": 212,
    "gen_ai.usage.output_tokens": 18,
    "gen_ai.usage.cache_read.input_tokens": 100,
    "gen_ai.usage.cache_write.input_tokens": 7,
    "gen_ai.usage.reasoning.output_tokens": 5,
    "gen_ai.system_instructions": [{"type": "text", "content": "Be brief."}],
    "gen_ai.input.messages": [{"role": "user", "parts": [{"type": "text", "content": "Weather in Oslo?"}]}],
    "gen_ai.output.messages": [
        {
            "role": "assistant",
            "finish_reason": "tool_call",
            "parts": [
                {"type": "reasoning", "content": "Need live data"},
                {"type": "tool_call", "id": "c9", "name": "get_weather", "arguments": {"city": "Oslo"}},
            ],
        }
    ],
    "gen_ai.tool.definitions": [
        {"type": "function", "name": "get_weather", "description": "Weather now", "parameters": {"type": "object"}}
    ],
}


def assert_current(found: Reading) -> None:
    assert found.kind is Kind.LLM
    assert found.system == "Be brief."
    assert found.input == (ASK,)
    assert found.output == (Message("assistant", (Reasoning("Need live data"), CALL), "tool_call"),)
    assert found.tools == (ToolDefinition("get_weather", "Weather now", {"type": "object"}),)
    assert found.usage == Usage(212, 18, 100, 7, 5)
    assert (found.request_model, found.response_model) == ("gpt-x", "gpt-x-0901")
    assert (found.response_id, found.previous_response_id) == ("resp_1", "resp_0")
    assert found.agent_name == "trip_bot"
    assert found.session_ids == ((2, "conv-7"),)


def test_structured_attributes() -> None:
    assert_current(read(CURRENT))


def test_attributes_as_json_text() -> None:
    assert_current(read({key: json.dumps(v) if isinstance(v, list) else v for key, v in CURRENT.items()}))


@pytest.mark.parametrize("carrier", ["event", "log"])
def test_everything_on_an_operation_details_event(carrier: str) -> None:
    name = "gen_ai.client.inference.operation.details"
    bare = {"gen_ai.operation.name": "chat"}
    if carrier == "log":
        assert_current(read(bare, [RawLog("t" * 32, "s" * 16, name, attributes=CURRENT)]))
        assert_current(read(bare, [RawLog("t" * 32, "s" * 16, "", attributes={**CURRENT, "event.name": name})]))
    else:
        assert_current(read(bare, events=(RawEvent(name, 1, CURRENT),)))


def test_input_and_output_on_two_details_events() -> None:
    name = "gen_ai.client.inference.operation.details"
    given = RawEvent(name, 1, {"gen_ai.input.messages": json.dumps(CURRENT["gen_ai.input.messages"])})
    made = RawEvent(name, 2, {"gen_ai.output.messages": json.dumps(CURRENT["gen_ai.output.messages"])})
    found = read(CHAT, events=(given, made))
    assert found.input == (ASK,)
    assert found.output is not None
    assert found.output[0].tool_requests == (CALL,)


def test_the_span_wins_over_its_details_event_unless_it_is_empty() -> None:
    name = "gen_ai.client.inference.operation.details"
    detail = RawLog("t", "s", name, attributes={**CURRENT, "gen_ai.request.model": "other"})
    assert read({**CHAT, "gen_ai.input.messages": "[]"}, [detail]).input == (ASK,)
    assert read(CHAT, [detail]).request_model == "gpt-x"


def test_messages_without_parts() -> None:
    found = read({**CHAT, "gen_ai.input.messages": '[{"content": "Weather in Oslo?", "role": "user"}]'})
    assert found.input == (ASK,)


def test_missing_content_differs_from_empty_content() -> None:
    found = read(CHAT)
    assert (found.input, found.output, found.system, found.tools, found.usage) == (None,) * 5
    assert read({**CHAT, "gen_ai.input.messages": "[]", "gen_ai.tool.definitions": "[]"}).input == ()
    assert read({**CHAT, "gen_ai.tool.definitions": "[]"}).tools == ()
    assert read({**CHAT, "gen_ai.input.messages": "", "gen_ai.output.messages": "<elided>"}).output is None


def test_system_messages_are_the_system_prompt_if_no_instructions_exist() -> None:
    messages = [
        {"role": "developer", "parts": [{"type": "text", "content": "Be brief."}]},
        {"role": "user", "content": "?"},
    ]
    found = read({**CHAT, "gen_ai.input.messages": json.dumps(messages)})
    assert found.system == "Be brief."
    assert found.input is not None
    assert [message.role for message in found.input] == ["system", "user"]


def test_messages_cut_by_a_length_limit_add_a_note() -> None:
    text = json.dumps(CURRENT["gen_ai.input.messages"])
    found = read({**CHAT, "gen_ai.input.messages": text[: text.index("Oslo")]})
    assert found.input == (Message("user", (Text("Weather in "), NOT_CAPTURED)),)
    assert found.notes == ("messages were cut short by a length limit",)


def test_uploaded_content_is_recorded_as_references() -> None:
    found = read({**CHAT, "gen_ai.input.messages_ref": "s3://b/1.json", "gen_ai.output.messages_ref": "s3://b/2.json"})
    assert found.content_refs == ("s3://b/1.json", "s3://b/2.json")
    assert found.input is None


def test_a_streamed_answer_recorded_in_chunks_is_one_message() -> None:
    def chunk(text: str, reason: str | None = None) -> dict[str, Any]:
        return {"role": "assistant", "parts": [{"type": "text", "content": text}], "finish_reason": reason}

    found = read({**CHAT, "gen_ai.output.messages": [chunk("4 deg"), chunk("rees, "), chunk("rain.", "stop")]})
    assert found.output == (ANSWER,)
    found = read({**CHAT, "gen_ai.output.messages": [chunk("Look first."), chunk("Then act.", "stop")]})
    assert found.output is not None
    assert found.output[0].text == "Look first.\nThen act."
    choices = read({**CHAT, "gen_ai.output.messages": [chunk("one", "stop"), chunk("two", "stop")]})
    assert choices.output is not None
    assert [message.text for message in choices.output] == ["one", "two"]


# --- per-message events (1.28 to 1.36) -------------------------------------------------------------------------------

BODIES: list[tuple[str, Any]] = [
    ("gen_ai.system.message", {"content": "Be brief."}),
    ("gen_ai.user.message", {"content": "Weather in Oslo?"}),
    (
        "gen_ai.assistant.message",
        {
            "tool_calls": [
                {"id": "c9", "type": "function", "function": {"name": "get_weather", "arguments": '{"city":"Oslo"}'}}
            ]
        },
    ),
    ("gen_ai.tool.message", {"content": '{"temp_c": 4}', "id": "c9"}),
    (
        "gen_ai.choice",
        {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "4 degrees, rain."}},
    ),
]
RUN = (BRIEF, ASK, Message("assistant", (CALL,)), Message("tool", (ToolResponse({"temp_c": 4}, "c9"),)))


@pytest.mark.parametrize("form", ["map", "text", "old name"])
def test_per_message_log_events(form: str) -> None:
    logs = [
        RawLog(
            "t",
            "s",
            "" if form == "old name" else name,
            time_ns,
            json.dumps(body) if form == "text" else body,
            {"event.name": name} if form == "old name" else {},
        )
        for time_ns, (name, body) in enumerate(BODIES)
    ]
    ordinary = RawLog("t", "s", body="Calling the model", time_ns=3)
    found = read(CHAT, [*reversed(logs), ordinary])
    assert found.input == RUN
    assert found.output == (ANSWER,)
    assert found.system == "Be brief."


def test_per_message_span_events() -> None:
    found = read(CHAT, events=tuple(RawEvent(name, 1, body) for name, body in BODIES))
    assert (found.input, found.output) == (RUN, (ANSWER,))


def test_span_events_that_hold_their_body_as_one_json_string() -> None:
    events = tuple(event(name, **{"gen_ai.event.content": json.dumps(body)}) for name, body in BODIES)
    found = read(CHAT, events=events)
    assert (found.input, found.output) == (RUN, (ANSWER,))


def test_span_events_with_bedrock_blocks() -> None:
    blocks = [
        {"reasoningContent": {"reasoningText": {"text": "Need live data"}}},
        {"toolUse": {"toolUseId": "c9", "name": "get_weather", "input": {"city": "Oslo"}}},
    ]
    results = [{"toolResult": {"toolUseId": "c9", "status": "success", "content": [{"text": '{"temp_c": 4}'}]}}]
    found = read(
        CHAT,
        events=(
            event("gen_ai.user.message", content='[{"text": "Weather in Oslo?"}]'),
            event("gen_ai.tool.message", content=json.dumps(results)),
            event("gen_ai.choice", finish_reason="tool_use", message=json.dumps(blocks)),
        ),
    )
    assert found.input == (ASK, RUN[3])
    assert found.output == (Message("assistant", (Reasoning("Need live data"), CALL), "tool_use"),)


def test_an_agents_plain_text_choice() -> None:
    found = read(
        {"gen_ai.operation.name": "invoke_agent"},
        events=(event("gen_ai.choice", message="4 degrees, rain.", finish_reason="stop"),),
    )
    assert found.output == (ANSWER,)


def test_gemini_contents_in_log_bodies() -> None:
    response = {"function_response": {"name": "f", "response": {}}}
    answer = {"role": "model", "parts": [{"text": "4 degrees, rain."}]}
    question = {"role": "user", "parts": [{"text": "Weather in Oslo?"}]}
    logs = [
        log("gen_ai.user.message", {"content": question}, 1),
        log("gen_ai.user.message", {"content": {"parts": [response]}}, 2),
        log("gen_ai.choice", {"content": answer, "finish_reason": "stop", "index": 0}, 3),
    ]
    found = read(CHAT, logs)
    assert found.input == (ASK, Message("tool", (ToolResponse({}, "", "f"),)))
    assert found.output == (ANSWER,)


@pytest.mark.parametrize("body", [None, {}, {"content": "<elided>"}, {"role": "user"}])
def test_events_without_content_are_not_captured(body: Any) -> None:
    found = read(
        CHAT, [log("gen_ai.user.message", body), log("gen_ai.choice", {"index": 0, "message": {"role": "assistant"}})]
    )
    assert (found.input, found.output) == (None, None)


def test_events_that_hide_content_still_name_the_calls() -> None:
    calls = [{"id": "c9", "type": "function", "function": {"name": "get_weather"}}]
    found = read(
        CHAT, [log("gen_ai.user.message", None, 1), log("gen_ai.choice", {"message": {"tool_calls": calls}}, 2)]
    )
    assert found.input is None
    assert found.output == (Message("assistant", (ToolRequest("get_weather", None, "c9"),)),)


@pytest.mark.parametrize("encode", [lambda body: body, json.dumps])
def test_a_whole_call_in_one_log_body(encode: Any) -> None:
    body = {
        "input": {"messages": [{"role": "user", "content": {"content": '[{"text": "Weather in Oslo?"}]'}}]},
        "output": {"messages": [{"role": "assistant", "content": {"message": "4 degrees, rain."}}]},
    }
    record = RawLog("t", "s", body=encode(body), attributes={"event.name": "strands.telemetry.tracer"})
    found = normalize(RawSpan("t" * 32, "s" * 16, attributes=CHAT), [record])
    assert found.input == (ASK,)
    assert found.output == (Message("assistant", (Text("4 degrees, rain."),)),)


# --- the first generation (1.26, 1.27) -------------------------------------------------------------------------------


def test_prompt_and_completion_events() -> None:
    found = read(
        {"gen_ai.system": "openai", **CHAT, "gen_ai.usage.prompt_tokens": 9, "gen_ai.usage.completion_tokens": 3},
        events=(
            event("gen_ai.content.prompt", **{"gen_ai.prompt": '[{"role": "user", "content": "Weather in Oslo?"}]'}),
            event("gen_ai.content.completion", **{"gen_ai.completion": '[{"role": "assistant", "content": "Rain."}]'}),
        ),
    )
    assert found.input == (ASK,)
    assert found.output == (Message("assistant", (Text("Rain."),)),)
    assert found.usage == Usage(9, 3)


def test_prompt_and_completion_attributes_as_plain_text() -> None:
    found = read({**CHAT, "gen_ai.prompt": "Weather in Oslo?", "gen_ai.completion": "Rain."})
    assert found.input == (ASK,)
    assert found.output == (Message("assistant", (Text("Rain."),)),)


# --- kinds -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("operation", "kind"),
    [
        ("chat", Kind.LLM),
        ("generate_content", Kind.LLM),
        ("text_completion", Kind.LLM),
        ("fetch_response", Kind.LLM),
        ("embeddings", Kind.EMBEDDING),
        ("retrieval", Kind.RETRIEVAL),
        ("invoke_agent", Kind.AGENT),
        ("create_agent", Kind.STEP),
        ("execute_tool", Kind.TOOL),
        ("invoke_workflow", Kind.WORKFLOW),
        ("plan", Kind.STEP),
        ("search_memory", Kind.RETRIEVAL),
        ("execute_event_loop_cycle", Kind.STEP),
        ("something_new", Kind.STEP),
        ("unknown", Kind.STEP),
    ],
)
def test_kind_by_operation(operation: str, kind: Kind) -> None:
    assert read({"gen_ai.operation.name": operation}).kind is kind


@pytest.mark.parametrize(
    ("name", "attributes", "kind"),
    [
        ("execute_tool f", {"gen_ai.system": "x"}, Kind.TOOL),
        ("invoke_agent a", {"gen_ai.agent.name": "a"}, Kind.AGENT),
        ("f", {"gen_ai.tool.name": "f"}, Kind.TOOL),
        ("call", {"gen_ai.request.model": "m"}, Kind.LLM),
        ("w", {"gen_ai.workflow.name": "w"}, Kind.WORKFLOW),
        ("GET /", {"gen_ai.conversation.id": "c", "gen_ai.agent.name": "a"}, None),
        ("tools/call f", {"mcp.method.name": "tools/call"}, Kind.TOOL),
        ("tools/list", {"mcp.method.name": "tools/list"}, Kind.STEP),
    ],
)
def test_kind_without_an_operation(name: str, attributes: dict[str, Any], kind: Kind | None) -> None:
    assert read(attributes, name=name).kind is kind


def test_provider_names_do_not_change_the_kind() -> None:
    agent = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.provider.name": "openai",
        "gen_ai.system": "strands-agents",
    }
    assert read(agent).kind is Kind.AGENT


def test_only_spans_without_agent_work_are_evaluations() -> None:
    assert read({"gen_ai.evaluation.name": "x", "gen_ai.evaluation.score.value": 1.0}).kind is Kind.EVALUATION
    assert read({**CHAT}, scope=Scope("pandaeval.evaluation")).kind is Kind.LLM, "a scope is only a claim"
    on_tool = {"gen_ai.evaluation.name": "x", "gen_ai.tool.name": "search"}
    assert read(on_tool).kind is Kind.TOOL, "an evaluation name without a score does not make a tool span an evaluation"
    scored = read({**CURRENT, "gen_ai.evaluation.score.value": 1.0})
    assert scored.kind is Kind.LLM, "a score on the evaluated span does not make it an evaluation"
    assert read(CHAT, events=(event("gen_ai.evaluation.result"),)).kind is Kind.LLM


# --- tools -----------------------------------------------------------------------------------------------------------


def test_tool_span() -> None:
    found = read({**TOOL, "gen_ai.tool.call.arguments": '{"city":"Oslo"}', "gen_ai.tool.call.result": '{"temp_c":4}'})
    assert (found.kind, found.tool_name, found.tool_call_id) == (Kind.TOOL, "get_weather", "c9")
    assert (found.arguments, found.result) == (Captured({"city": "Oslo"}), Captured({"temp_c": 4}))
    assert (found.input, found.output) == (None, None)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"temp_c": 4}, {"temp_c": 4}),
        ('"{\\"temp_c\\": 4}"', {"temp_c": 4}),
        ("{'temp_c': 4}", {"temp_c": 4}),
        ('[{"text": "{\\"temp_c\\": 4}"}]', {"temp_c": 4}),
        ("rain", "rain"),
        ("", ""),
        ("4", "4"),
        ("{}", {}),
        ("content='{...}' name='f'", "content='{...}' name='f'"),
    ],
)
def test_structured_tool_results_are_parsed(value: Any, expected: Any) -> None:
    assert read({**TOOL, "gen_ai.tool.call.result": value}).result == Captured(expected)


@pytest.mark.parametrize("value", [None, "<elided>", "<not serializable>"])
def test_hidden_tool_values_are_not_captured(value: Any) -> None:
    found = read({**TOOL, "gen_ai.tool.call.arguments": value, "gen_ai.tool.call.result": value})
    assert (found.arguments, found.result) == (None, None)


def test_tool_values_as_span_events() -> None:
    found = read(
        TOOL,
        events=(
            event("gen_ai.tool.message", role="tool", content='{"city": "Oslo"}', id="c9"),
            event("gen_ai.choice", message='[{"text": "{\\"temp_c\\": 4}"}]', id="c9"),
        ),
    )
    assert (found.arguments, found.result) == (Captured({"city": "Oslo"}), Captured({"temp_c": 4}))


def test_placeholders_are_no_names() -> None:
    found = read({**TOOL, "gen_ai.tool.call.id": "<not specified>", "gen_ai.agent.name": "unknown"})
    assert (found.tool_call_id, found.agent_name) == ("", "")


def test_a_merged_tools_span_is_no_tool_call() -> None:
    assert read({**TOOL, "gen_ai.tool.name": "(merged tools)"}).kind is Kind.STEP


def test_mcp_tool_call() -> None:
    found = read(
        {
            "gen_ai.operation.name": "execute_tool",
            "mcp.method.name": "tools/call",
            "mcp.session.id": "transport-1",
            "gen_ai.tool.call.arguments": {"city": "Oslo"},
        },
        name="tools/call get_weather",
    )
    assert (found.kind, found.tool_name, found.arguments) == (Kind.TOOL, "get_weather", Captured({"city": "Oslo"}))
    assert found.session_ids == ()


def test_tool_status_error() -> None:
    assert read({**TOOL, "gen_ai.tool.status": "error"}).error == "tool error"
    failed = read({**TOOL, "gen_ai.tool.status": "error"}, status_code=STATUS_ERROR, status_message="timeout")
    assert failed.error == "timeout"


@pytest.mark.parametrize(
    "definition",
    [
        {"type": "function", "function": {"name": "f", "description": "d", "parameters": {"type": "object"}}},
        {"name": "f", "description": "d", "input_schema": {"type": "object"}},
        {"name": "f", "description": "d", "inputSchema": {"type": "object"}},
        {"name": "f", "description": "d", "parameters": '{"type": "object"}'},
        {"toolSpec": {"name": "f", "description": "d", "inputSchema": {"json": {"type": "object"}}}},
        {"function_declarations": [{"name": "f", "description": "d", "parameters": {"type": "object"}}]},
    ],
)
def test_tool_definitions(definition: dict[str, Any]) -> None:
    expected = (ToolDefinition("f", "d", {"type": "object"}),)
    assert read({**CHAT, "gen_ai.tool.definitions": json.dumps([definition])}).tools == expected
    assert read({**CHAT, "gen_ai.tool.definitions": [json.dumps(definition)]}).tools == expected


def test_bare_tool_parameters_are_wrapped_in_a_schema() -> None:
    definition = {"name": "f", "description": "d", "parameters": {"city": {"type": "string"}}}
    schema = {"type": "object", "properties": {"city": {"type": "string"}}}
    assert read({**CHAT, "gen_ai.tool.definitions": [definition]}).tools == (ToolDefinition("f", "d", schema),)


def test_tool_definitions_are_read_from_the_json_of_the_request() -> None:
    definition = {"type": "function", "function": {"name": "f", "description": "d"}}
    assert read({**CHAT, "gen_ai.request.tools": [json.dumps([definition])]}).tools == (ToolDefinition("f", "d"),)


def test_tool_names_hints_and_provider_tools() -> None:
    agent = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.tools": '["f", "g"]'}
    assert read(agent).tools == (ToolDefinition("f"), ToolDefinition("g"))
    hinted = [{"name": "f", "annotations": {"readOnlyHint": True}}, {"type": "web_search"}, {"description": "no name"}]
    found = read({**CHAT, "gen_ai.tool.definitions": hinted}).tools
    assert found == (ToolDefinition("f", read_only=True), ToolDefinition("web_search"))
    destructive = [{"name": "f", "annotations": {"destructiveHint": True}}, {"name": "g", "destructiveHint": False}]
    found = read({**CHAT, "gen_ai.tool.definitions": destructive}).tools
    assert found == (ToolDefinition("f", read_only=False), ToolDefinition("g"))


# --- the rest --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("attributes", "usage"),
    [
        ({"gen_ai.usage.input_tokens": 5}, Usage(5, 0)),
        ({"gen_ai.usage.input_tokens": "5", "gen_ai.usage.output_tokens": 2.0}, Usage(5, 2)),
        ({"gen_ai.usage.prompt_tokens": 7, "gen_ai.usage.input_tokens": 5}, Usage(5, 0)),
        ({"gen_ai.usage.input_tokens": 5, "gen_ai.usage.cache_creation.input_tokens": 3}, Usage(5, 0, cache_write=3)),
        ({"gen_ai.usage.input_tokens": 5, "gen_ai.usage.cache_read_input_tokens": 3}, Usage(5, 0, cache_read=3)),
        ({"gen_ai.usage.output_tokens": 5, "gen_ai.usage.reasoning_tokens": 3}, Usage(0, 5, reasoning=3)),
        ({"gen_ai.usage.total_tokens": 5}, None),
        ({"gen_ai.usage.input_tokens": "many"}, None),
    ],
)
def test_usage(attributes: dict[str, Any], usage: Usage | None) -> None:
    assert read({**CHAT, **attributes}).usage == usage


def test_response_ids_are_no_conversations() -> None:
    found = read({**CHAT, "gen_ai.conversation.id": "resp_9"})
    assert found.session_ids == ()
    assert found.previous_response_id == "resp_9"


def test_sessions_of_the_resource_rank_lower() -> None:
    resource = Resource({"gen_ai.conversation.id": "process-wide"})
    found = read({**CHAT, "gen_ai.thread.id": "thread-1"}, resource=resource)
    assert sorted(found.session_ids) == [(4, "thread-1"), (12, "process-wide")]
    assert read({**CHAT, "gen_ai.conversation.id": ""}).session_ids == ()


def test_user_ids() -> None:
    assert read({**CHAT, "gen_ai.user.id": "u-1"}).user_id == "u-1"


def test_retrieval() -> None:
    found = read(
        {
            "gen_ai.operation.name": "retrieval",
            "gen_ai.retrieval.query.text": "Weather in Oslo?",
            "gen_ai.retrieval.documents": '[{"id": "d1", "score": 0.9}]',
        }
    )
    assert found.documents == ({"id": "d1", "score": 0.9},)
    assert found.input == (ASK,)


def test_reasoning_in_an_attribute_of_its_own() -> None:
    answer = [{"role": "assistant", "parts": [{"type": "text", "content": "Rain."}]}]
    found = read({**CHAT, "gen_ai.output.messages": answer, "gen_ai.content.reasoning": "Need live data"})
    assert found.output == (Message("assistant", (Reasoning("Need live data"), Text("Rain."))),)


_LONG = "You help people who want to travel by ferry."
_TALKS: tuple[Any, ...] = (
    None,
    "<elided>",
    "Where is my parcel?",
    json.dumps([{"role": "user", "parts": [{"type": "text", "content": _LONG}]}]),
    json.dumps({"messages": [{"role": "system", "content": _LONG}, {"role": "user", "content": "Oslo?"}]}),
    json.dumps({"messages": [{"role": "user", "content": _LONG}]})[:-9],
    '[{"role":"user","parts":' + "[" * 70 + "]" * 70 + "}]",
    [{"role": "system", "content": _LONG}],
)


@pytest.mark.parametrize("given", _TALKS)
@pytest.mark.parametrize("made", _TALKS)
@pytest.mark.parametrize("operation", ["chat", "invoke_agent", "retrieval", "chain"])
@pytest.mark.parametrize("system", [None, _LONG])
def test_reading_only_missing_fields_gives_the_same_result_as_reading_all(
    given: Any, made: Any, operation: str, system: str | None
) -> None:
    attributes = {semconv.OPERATION: operation, semconv.PROMPT_OLD: given, semconv.COMPLETION_OLD: made}
    span = RawSpan("a" * 32, "b" * 16, attributes=attributes)
    others = (Message("user", (Text("asked"),)),)

    def said() -> Reading:
        return Reading(input=others, output=others, system=system)

    whole, rest = DIALECT.read(span, ()), DIALECT.read_rest(span, (), said())
    assert whole is not None
    assert rest is not None
    one, other = said(), said()
    _complete(one, whole)
    _complete(other, rest)
    assert one == other


# --- 0.1.0 of the conventions' own repository ------------------------------------------------------------------------


def test_memory_records_are_read_as_documents() -> None:
    records = [{"id": "m1", "content": "Ada lives in Oslo", "score": 0.8}, {"content": {"city": "Oslo"}}]
    found = read(
        {
            "gen_ai.operation.name": "search_memory",
            "gen_ai.memory.query.text": "Weather in Oslo?",
            "gen_ai.memory.records": json.dumps(records),
        }
    )
    assert (found.kind, found.input, found.documents) == (Kind.RETRIEVAL, (ASK,), tuple(records))


@pytest.mark.parametrize("operation", ["create_memory", "upsert_memory", "delete_memory_store", "plan"])
def test_memory_changes_and_plans_are_steps(operation: str) -> None:
    assert read({"gen_ai.operation.name": operation}).kind is Kind.STEP


def test_a_guardrail() -> None:
    assert read({"gen_ai.operation.name": "apply_guardrail"}).kind is Kind.GUARDRAIL


@pytest.mark.parametrize("operation", ["execute_tool", "load_skill"])
def test_loading_a_skill_is_a_tool_call(operation: str) -> None:
    skill = {"gen_ai.skill.name": "refunds", "gen_ai.skill.resource.name": "policy.md"}
    found = read({**TOOL, "gen_ai.operation.name": operation, "gen_ai.tool.name": "load_skill", **skill})
    assert (found.kind, found.tool_name, found.arguments) == (Kind.TOOL, "load_skill", Captured(skill))


def test_call_arguments_win_over_skill_attributes() -> None:
    found = read({**TOOL, "gen_ai.tool.call.arguments": '{"city": "Oslo"}', "gen_ai.skill.name": "weather"})
    assert found.arguments == Captured({"city": "Oslo"})


@pytest.mark.parametrize(("code", "error"), [(0, None), (127, "exit code 127")])
def test_a_command_with_a_nonzero_exit_code_failed(code: int, error: str | None) -> None:
    command = {"process.executable.name": "ls", "process.command_args": ["ls", "-l"]}
    found = read({**TOOL, **command, "process.exit.code": code})
    assert (found.arguments, found.error) == (Captured(command), error)


def test_the_agent_name_is_read_from_the_agent_or_workflow_name() -> None:
    assert read({"gen_ai.operation.name": "invoke_agent", "gen_ai.workflow.name": "desk"}).agent_name == "desk"
    assert read({"gen_ai.operation.name": "invoke_workflow", "gen_ai.agent.name": "desk"}).agent_name == "desk"


@pytest.mark.parametrize("documents", [[{"id": "d1", "score": 0.9}, {}], [{"id": 42, "score": "0.9"}], ["plain"]])
def test_documents_of_any_shape(documents: list[Any]) -> None:
    for value in (documents, json.dumps(documents)):
        found = read({"gen_ai.operation.name": "retrieval", "gen_ai.retrieval.documents": value})
        assert found.documents == tuple(documents)


@pytest.mark.parametrize(
    ("messages", "parts"),
    [
        ([{"role": "user", "parts": {"type": "text", "content": "oops"}}], [(Text("oops"),)]),
        ([{"parts": [{"type": "text", "content": "hi"}]}], [(Text("hi"),)]),
        (
            [{"role": "user"}, {"role": "user", "parts": [{"type": "text", "content": "hi"}]}],
            [(NOT_CAPTURED,), (Text("hi"),)],
        ),
        (
            [{"role": "user", "parts": [{"type": "text"}]}, {"role": "user", "parts": ["hi"]}],
            [(NOT_CAPTURED,), (Text("hi"),)],
        ),
    ],
)
def test_readable_parts_of_malformed_messages_are_kept(messages: list[Any], parts: list[Any]) -> None:
    for value in (messages, json.dumps(messages)):
        found = read({**CHAT, "gen_ai.input.messages": value}).input
        assert found is not None
        assert [message.parts for message in found] == parts


def test_parts_of_unknown_types_are_kept() -> None:
    part = {"type": "search_result", "source": "https://example.com"}
    found = read({**CHAT, "gen_ai.input.messages": [{"role": "user", "parts": [part]}]}).input
    assert found is not None
    assert found[0].parts == (OtherPart("search_result", {"source": "https://example.com"}),)


def test_instructions_with_bare_strings_and_other_parts() -> None:
    value = ["Be brief.", {"type": "tool_call", "name": "get_weather"}]
    assert read({**CHAT, "gen_ai.system_instructions": value}).system == "Be brief."


def test_definitions_without_name_or_type() -> None:
    value = [{"type": "function", "description": "no name"}, {"name": "no_type"}, {"type": "web_search", "max_uses": 5}]
    tools = read({**CHAT, "gen_ai.tool.definitions": value}).tools
    assert tools is not None
    assert [tool.name for tool in tools] == ["no_type", "web_search"]


@pytest.mark.parametrize("value", [["Oslo"], "Oslo", 4])
def test_arguments_and_results_that_are_no_objects(value: Any) -> None:
    found = read({**TOOL, "gen_ai.tool.call.arguments": value, "gen_ai.tool.call.result": value})
    assert (found.arguments, found.result and found.result.value) == (Captured(value), value)


@pytest.mark.parametrize(
    ("reasons", "expected"),
    [(["stop"], [("4 degrees, rain.", "stop")]), (["stop", "stop"], [("4 degrees,", "stop"), (" rain.", "stop")])],
)
def test_finish_reasons_on_the_span_distinguish_chunks_from_choices(reasons: list[str], expected: list[Any]) -> None:
    parts = [{"role": "assistant", "parts": [{"type": "text", "content": text}]} for text in ("4 degrees,", " rain.")]
    found = read({**CHAT, "gen_ai.output.messages": parts, "gen_ai.response.finish_reasons": reasons}).output
    assert found is not None
    assert [(message.text, message.finish_reason) for message in found] == expected


# --- operations of any name ------------------------------------------------------------------------------------------

_OWN_NAMES = ("responses", "converse", "generate", "inference", "realtime_inference", "call_llm", "model.invoke")


@pytest.mark.parametrize("operation", _OWN_NAMES)
@pytest.mark.parametrize(
    "told", [{"gen_ai.output.messages": '[{"role": "assistant", "content": "Hi."}]'}, {"gen_ai.usage.output_tokens": 3}]
)
def test_any_operation_with_a_model_and_its_answer_is_a_model_call(operation: str, told: dict[str, Any]) -> None:
    assert read({"gen_ai.operation.name": operation, "gen_ai.request.model": "gpt-x", **told}).kind is Kind.LLM


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"gen_ai.request.model": "gpt-x"},
        {"gen_ai.usage.output_tokens": 3},
        {"gen_ai.request.model": "gpt-x", "gen_ai.usage.output_tokens": 3, "gen_ai.agent.name": "desk"},
        {"gen_ai.request.model": "gpt-x", "gen_ai.usage.output_tokens": 3, "gen_ai.workflow.name": "desk"},
    ],
)
def test_any_other_operation_is_a_step(more: dict[str, Any]) -> None:
    assert read({"gen_ai.operation.name": "prepare", **more}).kind is Kind.STEP
    assert read({"gen_ai.operation.name": "plan", **more}).kind is Kind.STEP


def test_a_plan_is_a_step_even_with_model_and_output_tokens() -> None:
    made = {"gen_ai.request.model": "gpt-x", "gen_ai.usage.output_tokens": 3}
    assert read({"gen_ai.operation.name": "plan", **made}).kind is Kind.STEP


def test_model_calls_of_adk_for_java_are_read() -> None:
    span = RawSpan("t" * 32, "s" * 16, name="call_llm", scope=Scope("gcp.vertex.agent"))
    request = {"model": "gemini-x", "contents": [{"role": "user", "parts": [{"text": "Weather in Oslo?"}]}]}
    response = {"content": {"role": "model", "parts": [{"text": "4 degrees, rain."}]}}
    span.attributes = {
        "gen_ai.operation.name": "call_llm",
        "gcp.vertex.agent.llm_request": json.dumps(request),
        "gcp.vertex.agent.llm_response": json.dumps(response),
    }
    found = normalize(span)
    assert (found.kind, found.request_model) == (Kind.LLM, "gemini-x")
    assert (found.input, found.output) == ((ASK,), (Message("assistant", ANSWER.parts),))


@pytest.mark.parametrize("made", ["[]", "[ ]", []])
def test_an_empty_answer_without_a_finish_reason_is_not_captured(made: Any) -> None:
    assert read({**CHAT, "gen_ai.output.messages": made}).output is None
    finished = {**CHAT, "gen_ai.output.messages": made, "gen_ai.response.finish_reasons": ["stop"]}
    assert read(finished).output == ()


def test_dspy_fields_are_read_from_prompt_and_answer() -> None:
    system = "You may use: (1) look, whose description is <desc>Looks out.</desc>. It takes arguments {'city': {}}."
    prompt = "[[ ## question ## ]]\nWeather in Oslo?\n\n[[ ## trajectory ## ]]\n\nRespond with the fields."
    made = '[[ ## next_tool_name ## ]]\nlook\n\n[[ ## next_tool_args ## ]]\n{"city": "Oslo"}\n\n[[ ## completed ## ]]'
    messages = [{"role": "system", "content": system}, {"role": "user", "content": prompt}]
    output = [{"role": "assistant", "content": made}]
    found = read({**CHAT, "gen_ai.input.messages": messages, "gen_ai.output.messages": output})
    assert [message.text for message in found.input or ()] == [system, "Weather in Oslo?"]
    assert found.output is not None
    assert found.output[0].tool_requests == (ToolRequest("look", {"city": "Oslo"}),)
    assert [tool.name for tool in found.tools or ()] == ["look"]


def test_sentry_attribute_names_are_read() -> None:
    found = read(
        {
            "gen_ai.operation.name": "chat",
            "gen_ai.request.messages": '[{"role": "user", "content": "Weather in Oslo?"}]',
            "gen_ai.response.text": '["Let me look."]',
            "gen_ai.response.tool_calls": json.dumps(
                [{"id": "c9", "name": "get_weather", "arguments": '{"city": "Oslo"}'}]
            ),
        }
    )
    assert found.input == (ASK,)
    assert found.output is not None
    assert (found.output[0].text, found.output[0].tool_requests) == ("Let me look.", (CALL,))


def test_older_attribute_names_of_agent_messages_are_read() -> None:
    said = {"role": "assistant", "content": "4 degrees."}
    found = read(
        {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.agent.invocation_input": '[{"role": "user", "content": "Weather in Oslo?"}]',
            "gen_ai.agent.invocation_output": json.dumps([said]),
        }
    )
    assert found.input == (ASK,)
    assert found.output is not None
    assert found.output[0].text == "4 degrees."


def test_older_attribute_names_of_tool_values_are_read() -> None:
    given = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "get_weather"}
    found = read({**given, "gen_ai.tool.input": '{"city": "Oslo"}', "gen_ai.tool.output": '{"temp_c": 4}'})
    assert (found.arguments, found.result) == (Captured({"city": "Oslo"}), Captured({"temp_c": 4}))
    refused = '{"content": [{"type": "text", "text": "no such city"}], "is_error": true}'
    found = read({**given, "gen_ai.tool.output": refused})
    assert (found.result, found.error) == (Captured("no such city"), "no such city")
