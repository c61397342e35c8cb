"""OpenLLMetry, both generations."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pandaeval_otel.dialects import Reading
from pandaeval_otel.dialects.openllmetry import DIALECT
from pandaeval_otel.model import Captured, Kind, Message, Text, ToolDefinition, ToolRequest, ToolResponse
from pandaeval_otel.model.raw import RawSpan, Scope
from pandaeval_otel.normal.spans import normalize

SPAN_KIND = "traceloop.span.kind"
LANGCHAIN = "opentelemetry.instrumentation.langchain"
ASK = Message("user", (Text("Weather in Oslo?"),))
ANSWER = Message("assistant", (Text("4 degrees."),))


def span(attributes: dict[str, Any], scope: str = "", **fields: Any) -> RawSpan:
    return RawSpan("t" * 32, "s" * 16, attributes=attributes, scope=Scope(scope), **fields)


def read(attributes: dict[str, Any], scope: str = "", **fields: Any) -> Reading:
    found = DIALECT.read(span(attributes, scope, **fields), ())
    assert found is not None
    return found


def test_indexed_attributes_of_the_older_generation_are_read() -> None:
    found = read(
        {
            "llm.request.type": "chat",
            "gen_ai.prompt.0.role": "user",
            "gen_ai.prompt.0.content": '[{"type": "text", "text": "Weather in Oslo?"}]',
            "gen_ai.prompt.1.role": "assistant",
            "gen_ai.prompt.1.tool_calls.0.id": "c9",
            "gen_ai.prompt.1.tool_calls.0.name": "get_weather",
            "gen_ai.prompt.1.tool_calls.0.arguments": '{"city": "Oslo"}',
            "gen_ai.prompt.2.role": "tool",
            "gen_ai.prompt.2.tool_call_id": "c9",
            "gen_ai.prompt.2.content": '{"temp_c": 4}',
            "gen_ai.completion.0.role": "assistant",
            "gen_ai.completion.0.content": "4 degrees.",
            "gen_ai.completion.0.finish_reason": "stop",
            "llm.request.functions.0.name": "get_weather",
            "llm.request.functions.0.description": "Looks out.",
            "llm.request.functions.0.parameters": '{"type": "object"}',
        }
    )
    assert found.kind is Kind.LLM
    assert found.input == (
        ASK,
        Message("assistant", (ToolRequest("get_weather", {"city": "Oslo"}, "c9"),)),
        Message("tool", (ToolResponse({"temp_c": 4}, "c9"),)),
    )
    assert found.output == (Message("assistant", (Text("4 degrees."),), "stop"),)
    assert found.tools == (ToolDefinition("get_weather", "Looks out.", {"type": "object"}),)


def test_the_prompt_of_a_text_completion_is_a_user_message() -> None:
    found = read({"llm.request.type": "completion", "gen_ai.prompt.0.user": "Weather in Oslo?"})
    assert (found.kind, found.input) == (Kind.LLM, (ASK,))


def test_litellm_spans_of_the_older_generation_are_read() -> None:
    found = read(
        {
            "gen_ai.system": "openai",
            "gen_ai.prompt.0.role": "user",
            "gen_ai.prompt.0.content": "Weather in Oslo?",
            "gen_ai.completion.0.role": "assistant",
            "gen_ai.completion.0.finish_reason": "tool_calls",
            "gen_ai.completion.0.function_call.name": "get_weather",
            "gen_ai.completion.0.function_call.arguments": '{"city": "Oslo"}',
        },
        "litellm",
        name="litellm_request",
    )
    assert (found.kind, found.input) == (Kind.LLM, (ASK,))
    assert found.output == (Message("assistant", (ToolRequest("get_weather", {"city": "Oslo"}),), "tool_calls"),)


def test_the_newer_generation_is_not_read_by_this_dialect() -> None:
    attributes = {"gen_ai.operation.name": "chat", "gen_ai.output.messages": "[]", "gen_ai.request.model": "m"}
    assert DIALECT.read(span(attributes), ()) is None


@pytest.mark.parametrize(
    ("attributes", "kind"),
    [
        ({SPAN_KIND: "workflow"}, Kind.WORKFLOW),
        ({SPAN_KIND: "agent", "gen_ai.operation.name": "invoke_agent"}, Kind.AGENT),
        ({SPAN_KIND: "workflow", "gen_ai.operation.name": "invoke_agent"}, Kind.AGENT),
        ({SPAN_KIND: "task", "gen_ai.operation.name": "invoke_agent"}, Kind.STEP),
        ({SPAN_KIND: "task", "gen_ai.operation.name": "chat"}, Kind.LLM),
        ({SPAN_KIND: "task", "tool.name": "f", "tool.arguments": "{}"}, Kind.TOOL),
        ({SPAN_KIND: "task"}, Kind.STEP),
        ({SPAN_KIND: "handoff", "gen_ai.operation.name": "handoff"}, Kind.STEP),
        ({SPAN_KIND: "task", "gen_ai.operation.name": "vector_db_retrieve"}, Kind.RETRIEVAL),
        ({"llm.request.type": "embedding"}, Kind.EMBEDDING),
        ({"gen_ai.completion.0.content": "x"}, Kind.LLM),
    ],
)
def test_span_kind_and_operation_set_the_kind(attributes: dict[str, Any], kind: Kind) -> None:
    assert read(attributes).kind is kind


@pytest.mark.parametrize(
    ("name", "kind"), [("trip.workflow", Kind.WORKFLOW), ("f.tool", Kind.TOOL), ("tools/list.mcp", Kind.STEP)]
)
def test_the_kind_is_read_from_the_span_name_if_no_kind_is_stated(name: str, kind: Kind) -> None:
    assert read({"traceloop.entity.input": "{}"}, name=name).kind is kind


def test_a_model_call_is_recognised_after_its_first_attributes_were_dropped() -> None:
    found = read({"gen_ai.prompt.39.content": "x", "gen_ai.prompt.40.role": "user"}, dropped_attributes=9)
    assert found.kind is Kind.LLM


@pytest.mark.parametrize(
    ("given", "question"),
    [
        ({"args": ["Weather in Oslo?"], "kwargs": {}}, "Weather in Oslo?"),
        (
            {"args": ["s-1", "Weather in Oslo?", [{"role": "user", "content": "older"}]], "kwargs": {}},
            "Weather in Oslo?",
        ),
        ({"args": [], "kwargs": {"question": "Weather in Oslo?", "verbose": True}}, "Weather in Oslo?"),
        ({"args": [[{"role": "user", "content": "Weather in Oslo?"}]], "kwargs": {}}, "Weather in Oslo?"),
        (
            {"inputs": {"messages": [{"role": "user", "content": "Weather in Oslo?"}]}, "tags": [], "kwargs": {}},
            "Weather in Oslo?",
        ),
        ({"args": [], "kwargs": {"city": "Oslo", "days": 3}}, '{"city": "Oslo", "days": 3}'),
    ],
)
def test_a_runs_question_is_found_in_its_arguments(given: dict[str, Any], question: str) -> None:
    found = read({SPAN_KIND: "workflow", "traceloop.entity.input": json.dumps(given)})
    assert found.input == (Message("user", (Text(question),)),)


@pytest.mark.parametrize(
    "made",
    [
        '"4 degrees."',
        '{"outputs": {"messages": [{"lc": 1, "type": "constructor", "id": ["AIMessage"], "kwargs":'
        ' {"content": "4 degrees.", "type": "ai"}}]}, "kwargs": {}}',
        '{"answer": "4 degrees.", "sources": []}',
        "4 degrees.",
    ],
)
def test_a_runs_answer_is_found_in_its_return_value(made: str) -> None:
    found = read({SPAN_KIND: "agent", "traceloop.entity.name": "desk", "traceloop.entity.output": made})
    assert found.output == (ANSWER,)
    assert found.agent_name == "desk"


def test_langchain_arguments_and_results_are_unwrapped() -> None:
    arguments = {"input_str": "{'city': 'Oslo', 'day': None}", "tags": [], "metadata": {"a": 1}}
    message = {"content": '{"temp_c": 4}', "type": "tool", "tool_call_id": "c9", "status": "success"}
    result = {"output": {"lc": 1, "type": "constructor", "id": ["ToolMessage"], "kwargs": message}, "kwargs": {}}
    attributes = {
        "gen_ai.operation.name": "execute_tool",
        SPAN_KIND: "tool",
        "gen_ai.tool.name": "get_weather",
        "gen_ai.tool.call.arguments": json.dumps(arguments),
        "gen_ai.tool.call.result": json.dumps(result),
    }
    whole = normalize(span(attributes, LANGCHAIN))
    assert whole.kind is Kind.TOOL
    assert whole.arguments == Captured({"city": "Oslo", "day": None})
    assert whole.result == Captured({"temp_c": 4})
    assert whole.tool_call_id == "c9"
    named = json.dumps({**arguments, "inputs": {"city": "Bergen"}})
    assert read({**attributes, "gen_ai.tool.call.arguments": named}).arguments == Captured({"city": "Bergen"})


@pytest.mark.parametrize(
    ("given", "made", "arguments", "result", "error"),
    [
        (
            '{"city": "Oslo"}',
            "status='success' result='{\"temp_c\": 4}' error=None images=None",
            {"city": "Oslo"},
            {"temp_c": 4},
            None,
        ),
        ('{"city": "Oslo"}', "status='error' result=None error='too far'", {"city": "Oslo"}, "too far", "too far"),
        (
            '{"tool_name": "get_weather", "arguments": {"city": "Oslo"}}',
            '{"result": "4 degrees", "is_error": false}',
            {"city": "Oslo"},
            "4 degrees",
            None,
        ),
        ('{"args": [], "kwargs": {"city": "Oslo"}}', '"{\\"temp_c\\": 4}"', {"city": "Oslo"}, {"temp_c": 4}, None),
    ],
)
def test_tool_arguments_and_results_of_other_frameworks_are_unwrapped(
    given: str, made: str, arguments: Any, result: Any, error: str | None
) -> None:
    attributes = {SPAN_KIND: "tool", "traceloop.entity.name": "get_weather"}
    found = read({**attributes, "traceloop.entity.input": given, "traceloop.entity.output": made})
    assert found.tool_name == "get_weather"
    assert (found.arguments, found.result, found.error) == (Captured(arguments), Captured(result), error)


def test_a_tool_call_marked_as_a_task_is_a_tool_with_its_real_name() -> None:
    message = {"status": "success", "content": '{"temp_c": 4}', "tool_call_id": "c9", "name": "get_weather"}
    attributes = {
        "gen_ai.operation.name": "execute_tool",
        SPAN_KIND: "task",
        "traceloop.entity.name": "DynamicStructuredTool",
        "traceloop.entity.input": '{"args": ["{\\"city\\": \\"Oslo\\"}"]}',
        "traceloop.entity.output": json.dumps({"lc": 1, "id": ["ToolMessage"], "kwargs": message}),
    }
    found = read(attributes)
    assert (found.kind, found.tool_name, found.tool_call_id) == (Kind.TOOL, "get_weather", "c9")
    assert (found.arguments, found.result) == (Captured({"city": "Oslo"}), Captured({"temp_c": 4}))


def test_sessions_and_users_are_association_properties() -> None:
    prefix = "traceloop.association.properties."
    found = read({SPAN_KIND: "task", f"{prefix}thread_id": "s-7", f"{prefix}user_id": "u-1"})
    assert (found.session_ids, found.user_id) == (((4, "s-7"),), "u-1")
    assert read({SPAN_KIND: "task", f"{prefix}session_id": "", f"{prefix}thread_id": "s-7"}).session_ids == (
        (4, "s-7"),
    )


def test_the_default_graph_name_is_no_agent_name() -> None:
    named = {SPAN_KIND: "workflow", "traceloop.entity.name": "desk"}
    assert read(named, LANGCHAIN).agent_name == "desk"
    assert read({**named, "traceloop.entity.name": "LangGraph"}, LANGCHAIN).agent_name == ""
    assert read(named, "traceloop.tracer").agent_name == ""


def test_tasks_and_result_of_a_crew_are_input_and_output() -> None:
    attributes = {"gen_ai.operation.name": "invoke_agent", "gen_ai.provider.name": "crewai"}
    crew = {"crewai.crew.tasks": '[{"description": "Weather in Oslo?"}]', "crewai.crew.result": "4 degrees."}
    found = read({**attributes, **crew}, name="crewai.workflow")
    assert (found.kind, found.input, found.output) == (Kind.WORKFLOW, (ASK,), (ANSWER,))


def test_documents_of_a_retriever() -> None:
    attributes = {
        "gen_ai.operation.name": "vector_db_retrieve",
        "traceloop.entity.input": '{"query": "oslo weather", "tags": [], "kwargs": {}}',
        "traceloop.entity.output": '{"documents": [{"page_content": "It rains."}], "kwargs": {}}',
    }
    found = read(attributes)
    assert found.documents == ({"page_content": "It rains."},)
    assert found.input == (Message("user", (Text("oslo weather"),)),)
