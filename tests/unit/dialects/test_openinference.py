"""OpenInference."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pandaeval_otel.dialects import Reading
from pandaeval_otel.dialects.openinference import DIALECT
from pandaeval_otel.model import (
    NOT_CAPTURED,
    Captured,
    Kind,
    Media,
    Message,
    Reasoning,
    Text,
    ToolDefinition,
    ToolRequest,
    ToolResponse,
    Usage,
)
from pandaeval_otel.model.raw import RawSpan, Scope
from pandaeval_otel.normal.spans import normalize

KIND = "openinference.span.kind"
ASK = Message("user", (Text("Weather in Oslo?"),))
CALL = ToolRequest("get_weather", {"city": "Oslo"}, "c9")
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}

LLM = {
    KIND: "LLM",
    "llm.input_messages.0.message.role": "system",
    "llm.input_messages.0.message.content": "Be brief.",
    "llm.input_messages.1.message.role": "user",
    "llm.input_messages.1.message.content": "Weather in Oslo?",
    "llm.output_messages.0.message.role": "assistant",
    "llm.output_messages.0.message.tool_calls.0.tool_call.id": "c9",
    "llm.output_messages.0.message.tool_calls.0.tool_call.function.name": "get_weather",
    "llm.output_messages.0.message.tool_calls.0.tool_call.function.arguments": '{"city": "Oslo"}',
    "llm.tools.0.tool.json_schema": json.dumps(
        {"type": "function", "function": {"name": "get_weather", "description": "Looks out.", "parameters": SCHEMA}}
    ),
    "llm.model_name": "gpt-x",
    "llm.token_count.prompt": 21,
    "llm.token_count.completion": 9,
    "llm.token_count.completion_details.reasoning": 4,
    "llm.finish_reason": "tool_calls",
}


def span(attributes: dict[str, Any], scope: str = "", **fields: Any) -> RawSpan:
    return RawSpan("t" * 32, "s" * 16, attributes=attributes, scope=Scope(scope), **fields)


def read(attributes: dict[str, Any], scope: str = "", **fields: Any) -> Reading:
    found = DIALECT.read(span(attributes, scope, **fields), ())
    assert found is not None
    return found


def test_a_model_call_is_read_whole() -> None:
    found = read(LLM)
    assert found.kind is Kind.LLM
    assert found.input == (Message("system", (Text("Be brief."),)), ASK)
    assert found.output == (Message("assistant", (CALL,), "tool_calls"),)
    assert found.system == "Be brief."
    assert found.tools == (ToolDefinition("get_weather", "Looks out.", SCHEMA),)
    assert found.usage == Usage(21, 9, reasoning=4)
    assert found.request_model == "gpt-x"


def test_reasoning_media_and_tool_results_are_distinguished_from_text() -> None:
    prefix = "llm.input_messages."
    found = read(
        {
            KIND: "LLM",
            f"{prefix}0.message.role": "user",
            f"{prefix}0.message.contents.0.message_content.type": "image",
            f"{prefix}0.message.contents.0.message_content.image.image.url": "https://x.example/a.png",
            f"{prefix}1.message.role": "assistant",
            f"{prefix}1.message.contents.0.message_content.type": "reasoning",
            f"{prefix}1.message.contents.0.message_content.text": "Look it up.",
            f"{prefix}1.message.contents.1.message_content.type": "reasoning",
            f"{prefix}1.message.contents.1.message_content.signature": "c2ln",
            f"{prefix}1.message.contents.2.message_content.type": "text",
            f"{prefix}1.message.contents.2.message_content.text": "One moment.",
            f"{prefix}1.message.content": "One moment.",
            f"{prefix}2.message.role": "tool",
            f"{prefix}2.message.tool_call_id": "c9",
            f"{prefix}2.message.content": '{"temp_c": 4}',
        }
    )
    assert found.input == (
        Message("user", (Media("image", "https://x.example/a.png"),)),
        Message("assistant", (Reasoning("Look it up."), Text("One moment."))),
        Message("tool", (ToolResponse({"temp_c": 4}, "c9"),)),
    )


def test_no_question_is_invented_if_the_first_messages_were_dropped() -> None:
    found = read(
        {
            "llm.input_messages.39.message.content": "something older",
            "llm.input_messages.40.message.tool_calls.0.tool_call.function.arguments": "{}",
            "llm.input_messages.41.message.role": "tool",
            "llm.input_messages.41.message.content": "4",
            "llm.output_messages.0.message.role": "assistant",
            "llm.output_messages.0.message.content": "4 degrees.",
        },
        dropped_attributes=70,
    )
    assert found.kind is Kind.LLM
    assert [message.role for message in found.input or ()] == ["assistant", "assistant", "tool"]
    assert found.input is not None
    assert found.input[1].parts == (NOT_CAPTURED,)
    assert found.output == (Message("assistant", (Text("4 degrees."),)),)


@pytest.mark.parametrize(
    ("left", "kind"),
    [
        ({"tool.name": "f"}, Kind.TOOL),
        ({"agent.name": "a"}, Kind.AGENT),
        ({"retrieval.documents.0.document.content": "d"}, Kind.RETRIEVAL),
        ({"embedding.model_name": "e"}, Kind.EMBEDDING),
        ({"llm.output_messages.0.message.content": "x"}, Kind.LLM),
        ({"input.value": "x"}, Kind.STEP),
    ],
)
def test_the_kind_is_inferred_if_the_span_kind_is_missing(left: dict[str, Any], kind: Kind) -> None:
    assert read(left, "openinference.instrumentation.x", parent_id="p" * 16).kind is kind


@pytest.mark.parametrize(
    ("stated", "parent", "name", "kind"),
    [
        ("CHAIN", "", "anything", Kind.WORKFLOW),
        ("CHAIN", "p", "node", Kind.STEP),
        ("CHAIN", "p", "crew_a.kickoff", Kind.WORKFLOW),
        ("CHAIN", "p", "invocation [app]", Kind.WORKFLOW),
        ("AGENT", "p", "a", Kind.AGENT),
        ("RETRIEVER", "p", "r", Kind.RETRIEVAL),
        ("RERANKER", "p", "r", Kind.STEP),
        ("GUARDRAIL", "p", "g", Kind.GUARDRAIL),
        ("EVALUATOR", "", "e", Kind.EVALUATION),
        ("UNKNOWN", "p", "u", Kind.STEP),
        ("LLM", "p", "Model._prepare", Kind.STEP),
        ("LLM", "p", "LM.__call__", Kind.LLM),
    ],
)
def test_stated_kind_parent_and_name_set_the_kind(stated: str, parent: str, name: str, kind: Kind) -> None:
    assert read({KIND: stated}, parent_id=parent, name=name).kind is kind


@pytest.mark.parametrize(
    ("name", "attributes"),
    [
        ("handoff to Booking", {"input.value": "Triage", "output.value": "Booking"}),
        ("execute_tool (merged)", {"tool.name": "(merged tools)"}),
    ],
)
def test_handoffs_and_merged_tool_spans_are_steps(name: str, attributes: dict[str, Any]) -> None:
    assert read({KIND: "TOOL", **attributes}, name=name).kind is Kind.STEP


def test_a_tool_named_finish_is_a_tool_call() -> None:
    found = read({KIND: "TOOL", "tool.name": "finish", "input.value": '{"order": 7}'})
    assert (found.kind, found.arguments) == (Kind.TOOL, Captured({"order": 7}))


def test_tool_arguments_are_the_input_named_by_the_parameter_schema() -> None:
    found = read(
        {
            KIND: "TOOL",
            "tool.name": "get_weather",
            "tool.id": "c9",
            "tool.parameters": '{"city": {"type": "string"}, "day": {"type": "string"}}',
            "input.value": '{"args": ["Oslo"], "sanitize_inputs_outputs": true, "kwargs": {"day": "Monday"}}',
            "output.value": '{"type": "tool", "data": {"content": "{\\"temp_c\\": 4}", "status": "success"}}',
        }
    )
    assert found.arguments == Captured({"city": "Oslo", "day": "Monday"})
    assert found.result == Captured({"temp_c": 4})
    assert (found.tool_name, found.tool_call_id, found.error) == ("get_weather", "c9", None)


def test_a_tool_result_with_status_error_sets_the_error() -> None:
    output = {"type": "tool", "data": {"content": "no such city", "tool_call_id": "c9", "status": "error"}}
    found = read({KIND: "TOOL", "tool.name": "f", "input.value": "{}", "output.value": json.dumps(output)})
    assert (found.error, found.tool_call_id, found.result) == ("no such city", "c9", Captured("no such city"))


def test_a_bare_argument_on_a_langgraph_tool_node_is_not_captured() -> None:
    tool = {KIND: "TOOL", "tool.name": "f", "input.value": "Oslo"}
    assert read(tool).arguments == Captured("Oslo")
    assert read({**tool, "metadata": '{"langgraph_node": "tools"}'}).arguments is None


def test_documents_and_the_query() -> None:
    found = read(
        {
            KIND: "RETRIEVER",
            "input.value": "oslo weather",
            "retrieval.documents.0.document.content": "It rains.",
            "retrieval.documents.0.document.score": 0.5,
            "retrieval.documents.0.document.metadata": '{"page": 2}',
        }
    )
    assert found.documents == ({"content": "It rains.", "score": 0.5, "metadata": {"page": 2}},)
    assert found.input == (Message("user", (Text("oslo weather"),)),)


def test_genai_messages_win_over_openinference_copies() -> None:
    attributes = {
        **LLM,
        "gen_ai.operation.name": "chat",
        "gen_ai.input.messages": '[{"role": "user", "parts": [{"type": "text", "content": "the original"}]}]',
    }
    assert read(attributes).input is None
    whole = normalize(span(attributes))
    assert whole.input is not None
    assert whole.input[0].text == "the original"
    assert whole.output is not None
    assert whole.output[0].tool_requests == (CALL,)
    assert whole.dialects == ("openinference", "gen_ai")


def test_redacted_content_is_not_captured() -> None:
    hidden = {KIND: "LLM", "input.value": "__REDACTED__", "output.value": "__REDACTED__"}
    found = read({**hidden, "llm.input_messages.0.message.role": "user"})
    assert (found.input, found.output) == (None, None)
    assert read({KIND: "TOOL", "input.value": "__REDACTED__"}).arguments is None


def test_request_and_response_bodies_are_read_if_messages_are_missing() -> None:
    found = read(
        {
            KIND: "LLM",
            "input.value": '{"messages": [{"role": "user", "content": "Weather in Oslo?"}], "model": "m"}',
            "output.value": '{"id": "chatcmpl-1", "choices": [{"finish_reason": "stop", "message":'
            ' {"role": "assistant", "content": "4 degrees."}}]}',
            "llm.invocation_parameters": '{"model": "m"}',
        }
    )
    assert found.input == (ASK,)
    assert found.output == (Message("assistant", (Text("4 degrees."),), "stop"),)
    assert (found.request_model, found.response_id) == ("m", "chatcmpl-1")


def test_text_that_the_raw_answer_marks_as_reasoning_is_reasoning() -> None:
    body = {"choices": [{"message": {"role": "assistant", "content": "Hm.", "reasoning_content": "Look it up."}}]}
    attributes = {**LLM, "output.value": json.dumps(body)}
    attributes["llm.output_messages.0.message.content"] = "Look it up."
    assert read(attributes).output == (Message("assistant", (Reasoning("Look it up."), CALL), "tool_calls"),)


def test_agent_and_session_are_read_from_langchain_metadata() -> None:
    metadata = '{"lc_agent_name": "desk", "thread_id": "s-7"}'
    scope = "openinference.instrumentation.langchain"
    found = read({KIND: "CHAIN", "metadata": metadata}, scope, name="desk", parent_id="p")
    assert (found.kind, found.agent_name, found.session_ids) == (Kind.AGENT, "desk", ((4, "s-7"),))
    assert read({KIND: "CHAIN", "metadata": metadata}, scope, name="model", parent_id="p").kind is Kind.STEP
    assert read({KIND: "CHAIN", "metadata": metadata, "session.id": "s-1"}, scope).session_ids == ()


@pytest.mark.parametrize(
    ("name", "attributes", "agent"),
    [
        ("Desk", {"agent.name": "Desk"}, "Desk"),
        ("x", {"graph.node.id": "Desk"}, "Desk"),
        ("agent_run [desk]", {}, "desk"),
        ("Desk clerk._execute_core", {}, "Desk clerk"),
        ("desk.run", {}, "desk"),
        ("Agent.run", {}, ""),
        ("ClaudeAgentSDK.query", {}, ""),
        ("desk_clerk", {}, "desk_clerk"),
    ],
)
def test_the_agent_name_is_read_from_attributes_or_the_span_name(
    name: str, attributes: dict[str, Any], agent: str
) -> None:
    assert read({KIND: "AGENT", **attributes}, name=name).agent_name == agent


def test_the_agent_workflow_span_of_openai_agents_is_no_agent() -> None:
    scope = "openinference.instrumentation.openai_agents"
    assert read({KIND: "AGENT"}, scope, name="Agent workflow").kind is Kind.WORKFLOW
    assert read({KIND: "AGENT", "graph.node.id": "Desk"}, scope, name="Desk").kind is Kind.AGENT


def test_a_crews_tasks_are_its_question() -> None:
    tasks = '[{"description": "Plan {days} days in Oslo."}, {"description": "Book it."}]'
    found = read({KIND: "CHAIN", "crew_tasks": tasks, "crew_inputs": '{"days": 3}', "output.value": '{"raw": "Done."}'})
    assert found.input == (Message("user", (Text("Plan 3 days in Oslo.\nBook it."),)),)
    assert found.output == (Message("assistant", (Text("Done."),)),)


def test_a_truncated_tool_definition_keeps_its_name() -> None:
    whole = str(LLM["llm.tools.0.tool.json_schema"])
    found = read({**LLM, "llm.tools.0.tool.json_schema": whole[:-30]})
    assert found.tools == (ToolDefinition("get_weather", "Looks out."),)


def test_a_truncated_answer_is_not_replaced_by_a_message_of_the_history() -> None:
    output = '{"messages": [{"type": "human", "data": {"content": "Weather in Oslo?"}}, {"type": "ai", "da'
    found = read({KIND: "CHAIN", "input.value": "Weather in Oslo?", "output.value": output})
    assert found.output is None
    assert found.notes == ("messages were cut short by a length limit",)


def test_spans_of_other_emitters_are_not_read() -> None:
    assert DIALECT.read(span({"llm.request.type": "chat", "gen_ai.system": "openai"}), ()) is None
    assert DIALECT.read(span({"llm.openai.messages": "[]"}, "litellm"), ()) is None


@pytest.mark.parametrize(
    ("key", "text", "previous"),
    [
        ("llm.invocation_parameters", '{"model": "gpt-x", "previous_response_id": "resp_1"}', "resp_1"),
        ("output.value", '{"id":"resp_2","previous_response_id":"resp_1","output":[]}', "resp_1"),
        ("output.value", '{"id":"resp_2","previous_response_id":null,"output":[]}', ""),
        ("output.value", json.dumps({"text": 'I set "previous_response_id": "resp_1".'}), ""),
        ("llm.invocation_parameters", '{"previous_response_id": "mine"}', ""),
        ("llm.invocation_parameters", 7, ""),
    ],
)
def test_the_previous_response_id_is_read(key: str, text: Any, previous: str) -> None:
    assert read({**LLM, key: text}).previous_response_id == previous


def test_a_session_in_the_metadata_of_a_request() -> None:
    parameters = json.dumps({"model": "m", "metadata": {"session_id": "s-1"}})
    assert [name for _, name in normalize(span({**LLM, "llm.invocation_parameters": parameters})).session_ids] == [
        "s-1"
    ]


def test_tool_schemas_missing_in_genai_definitions_are_filled_in() -> None:
    definitions = json.dumps([{"type": "function", "name": "get_weather", "parameters": None}])
    found = normalize(span({**LLM, "gen_ai.tool.definitions": definitions})).tools
    assert found is not None
    assert [tool.parameters for tool in found] == [SCHEMA]


@pytest.mark.parametrize(
    "body",
    [
        {"output": [{"type": "reasoning", "summary": [{"type": "summary_text", "text": "look out"}]}]},
        {
            "generations": [
                [{"message": {"kwargs": {"additional_kwargs": {"reasoning_content": "look out"}}, "id": ["AIMessage"]}}]
            ]
        },
        {"candidates": [{"content": {"parts": [{"text": "look out", "thought": True}]}}]},
    ],
)
def test_reasoning_is_read_from_the_raw_answer(body: dict[str, Any]) -> None:
    output = normalize(span({**LLM, "output.value": json.dumps(body)})).output
    assert output is not None
    assert output[0].parts == (Reasoning("look out"), CALL)


CLAUDE = "openinference.instrumentation.claude_agent_sdk"
AGENT = {
    KIND: "AGENT",
    "input.value": "Weather in Oslo?",
    "output.value": "Rain.",
    "llm.output_messages.0.message.role": "assistant",
    "llm.output_messages.0.message.contents.0.message_content.type": "reasoning",
    "llm.output_messages.0.message.contents.0.message_content.text": "look out",
    "llm.output_messages.1.message.role": "assistant",
    "llm.output_messages.1.message.tool_calls.0.tool_call.id": "c9",
    "llm.output_messages.1.message.tool_calls.0.tool_call.function.name": "mcp__sky__get_weather",
    "llm.output_messages.1.message.tool_calls.0.tool_call.function.arguments": '{"city": "Oslo"}',
    "llm.output_messages.2.message.role": "assistant",
    "llm.output_messages.2.message.content.0": "Rain.",
}


class TestClaudeAgentSDK:
    def test_reasoning_calls_and_text_of_the_agent_are_read(self) -> None:
        output = normalize(span(AGENT, CLAUDE)).output
        assert output is not None
        parts = [part for message in output for part in message.parts]
        assert parts == [Reasoning("look out"), CALL, Text("Rain.")]

    def test_messages_that_do_not_end_with_the_output_are_ignored(self) -> None:
        output = normalize(span({**AGENT, "output.value": "Snow."}, CLAUDE)).output
        assert output == (Message("assistant", (Text("Snow."),)),)

    def test_the_mcp_server_prefix_is_removed_from_tool_names(self) -> None:
        found = normalize(span({KIND: "TOOL", "tool.name": "mcp__sky__get_weather"}, CLAUDE))
        assert found.tool_name == "get_weather"

    def test_the_mcp_server_prefix_is_kept_in_other_scopes(self) -> None:
        assert (
            normalize(span({KIND: "TOOL", "tool.name": "mcp__sky__get_weather"})).tool_name == "mcp__sky__get_weather"
        )


def test_tools_are_read_from_the_invocation_parameters() -> None:
    request = {"model": "m", "tools": [{"type": "function", "function": {"name": "look_out", "parameters": SCHEMA}}]}
    found = read({KIND: "LLM", "llm.model_name": "m", "llm.invocation_parameters": json.dumps(request)})
    assert found.tools == (ToolDefinition("look_out", "", SCHEMA),)


def test_langchain_messages_as_strings_are_read() -> None:
    said = [
        "content='Weather in Oslo?' additional_kwargs={} response_metadata={} id='1'",
        "content='' additional_kwargs={} response_metadata={} tool_calls=[{'name': 'look', 'args': {}, 'id': 'c9'}]",
        "content='rain' name='look' tool_call_id='c9'",
        "content='It rains.' additional_kwargs={} response_metadata={'model_name': 'm'} id='2'",
    ]
    found = read({KIND: "CHAIN", "input.value": "Weather?", "output.value": json.dumps({"messages": said})})
    assert [(message.role, message.text) for message in found.output or ()] == [
        ("assistant", ""),
        ("tool", ""),
        ("assistant", "It rains."),
    ]


def test_beeai_arguments_are_unwrapped_and_error_spans_are_steps() -> None:
    tool = {KIND: "TOOL", "tool.name": "look", "input.value": '{"input": {"city": "Oslo"}, "options": null}'}
    assert read(tool).arguments == Captured({"city": "Oslo"})
    failure = {KIND: "TOOL", "input.value": '{"error": "Tool Error", "input": {}, "options": null}'}
    assert read(failure, name="error").kind is Kind.STEP


def test_results_of_parallel_calls_in_a_user_message_are_read() -> None:
    results = [{"type": "tool_result", "tool_use_id": f"c{at}", "content": f"{at} degrees"} for at in (1, 2)]
    calls = [{"type": "tool_use", "id": f"c{at}", "name": "look", "input": {"at": at}} for at in (1, 2)]
    said = [{"role": "user", "content": "Weather?"}, {"role": "assistant", "content": calls}]
    listed = {
        "0.message.role": "user",
        "0.message.content": "Weather?",
        "1.message.role": "assistant",
        "1.message.tool_calls.0.tool_call.id": "c1",
        "1.message.tool_calls.0.tool_call.function.name": "look",
        "2.message.role": "user",
        "2.message.tool_call_id": "c1",
        "2.message.content": "1 degrees",
    }
    attributes = {KIND: "LLM", **{f"llm.input_messages.{key}": value for key, value in listed.items()}}
    assert [message.role for message in read(attributes).input or ()] == ["user", "assistant", "tool"]
    attributes |= {
        "llm.input_messages.1.message.tool_calls.1.tool_call.id": "c2",
        "llm.input_messages.1.message.tool_calls.1.tool_call.function.name": "look",
        "input.value": json.dumps({"messages": [*said, {"role": "user", "content": results}]}),
    }
    found = [part.result for message in read(attributes).input or () for part in message.tool_responses]
    assert found == ["1 degrees", "2 degrees"]


def test_tools_are_read_from_the_request_body() -> None:
    request = {"messages": [], "tools": [{"type": "function", "function": {"name": "look", "parameters": SCHEMA}}]}
    found = read({KIND: "LLM", "llm.invocation_parameters": '{"top_p": 1}', "input.value": json.dumps(request)})
    assert found.tools == (ToolDefinition("look", "", SCHEMA),)
