"""CrewAI's own tracing."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pandaeval_otel.model import Captured, Kind, Message, Reasoning, ToolRequest, ToolResponse, Usage
from tests.unit.dialects.composed import ASK, SAID, seen, texts

FRAMED = (
    "\nCurrent Task: Weather in Oslo?\n\nThis is the expected criteria for your final answer: A sentence.\n"
    "you MUST return the actual complete content as the final answer, not a summary."
)


def said(*messages: dict[str, Any]) -> str:
    return json.dumps(messages)


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "parts": [{"type": "text", "content": text}]}


def crew(**attributes: Any) -> dict[str, Any]:
    return {"gen_ai.operation.name": "invoke_workflow", "crewai.crew.name": "trip", **attributes}


def test_crew_inputs_output_and_usage_are_read() -> None:
    attributes = {
        "crewai.crew.inputs": '{"question": "Weather in Oslo?"}',
        "crewai.crew.output": SAID,
        "crewai.crew.usage_metrics": '{"prompt_tokens": 21, "completion_tokens": 9, "reasoning_tokens": 4}',
    }
    span = seen(crew(**attributes), "crewai", name="execute crew")
    assert (span.kind, span.input, texts(span.output)) == (Kind.WORKFLOW, (ASK,), [("assistant", SAID)])
    assert span.usage == Usage(input=21, output=9, reasoning=4)


@pytest.mark.parametrize("inputs", [None, "null", "{}"])
def test_input_is_marked_hidden_if_a_crew_has_no_inputs(inputs: str | None) -> None:
    attributes = {"gen_ai.input.messages": said(user("null"))}
    if inputs is not None:
        attributes["crewai.crew.inputs"] = inputs
    span = seen(crew(**attributes), "crewai", name="execute crew")
    assert span.input is not None
    assert span.input[0].hidden
    assert span.input[0].text == ""


@pytest.mark.parametrize("name", ["execute agent", "call llm"])
def test_task_instructions_around_the_question_are_removed(name: str) -> None:
    operation = {"execute agent": "invoke_agent", "call llm": "chat"}[name]
    attributes = {"gen_ai.operation.name": operation, "gen_ai.input.messages": said(user(FRAMED))}
    assert seen(attributes, "crewai", name=name).input == (ASK,)


def test_python_reprs_of_strings_in_the_history_are_decoded() -> None:
    request = {
        "role": "assistant",
        "parts": [
            {"type": "tool_call", "name": "'get_weather'", "arguments": '\'{"city": "L\\\'Aquila"}\'', "id": "c9"}
        ],
    }
    result = {"role": "tool", "parts": [{"type": "text", "content": '{"temp_c": 4}'}]}
    attributes = {"gen_ai.operation.name": "chat", "gen_ai.input.messages": said(user(FRAMED), request, result)}
    span = seen(attributes, "crewai", name="call llm")
    assert span.input == (
        ASK,
        Message("assistant", (ToolRequest("get_weather", {"city": "L'Aquila"}, "c9"),)),
        Message("tool", (ToolResponse({"temp_c": 4}),)),
    )


def test_the_agent_name_is_the_role_and_not_the_key() -> None:
    attributes = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "5f1c0a",
        "crewai.agent.role": "Weather expert",
    }
    span = seen(attributes, "crewai", name="execute agent")
    assert (span.kind, span.agent_name) == (Kind.AGENT, "Weather expert")


@pytest.mark.parametrize(
    ("name", "sessions"), [("call llm", ()), ("execute lite agent", ()), ("call tool", ((2, "c-1"),))]
)
def test_the_conversation_id_of_model_calls_and_lite_agents_is_no_session(name: str, sessions: Any) -> None:
    attributes = {"gen_ai.operation.name": "chat", "gen_ai.conversation.id": "c-1", "crewai.execution_uuid": "x-1"}
    assert seen(attributes, "crewai", name=name).session_ids == sessions


def test_mcp_tool_arguments_and_result_are_read() -> None:
    attributes = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "get_weather",
        "crewai.mcp.tool_args": '{"city": "Oslo"}',
        "crewai.mcp.tool_result": '{"temp_c": 4}',
    }
    span = seen(attributes, "crewai", name="execute mcp tool")
    assert (span.kind, span.arguments, span.result) == (Kind.TOOL, Captured({"city": "Oslo"}), Captured({"temp_c": 4}))


def test_a_tool_failure_message_is_the_error() -> None:
    attributes = {"gen_ai.operation.name": "execute_tool", "crewai.tool.failure.message": "no wind"}
    assert seen(attributes, "crewai", name="call tool").error == "no wind"
    assert seen(attributes, "crewai", name="tool failure").kind is Kind.STEP


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("execute flow", Kind.WORKFLOW),
        ("execute task", Kind.STEP),
        ("evaluate guardrail", Kind.GUARDRAIL),
        ("retrieve memory", Kind.RETRIEVAL),
        ("save memory", Kind.STEP),
        ("connect mcp", Kind.STEP),
        ("something new", Kind.STEP),
    ],
)
def test_span_names_set_kinds(name: str, kind: Kind) -> None:
    assert seen({}, "crewai", name=name).kind is kind


def test_memory_query_and_results_are_read() -> None:
    attributes = {"crewai.memory.query": "Weather in Oslo?", "crewai.memory.results": '[{"context": "wet"}]'}
    span = seen(attributes, "crewai", name="query memory")
    assert (span.input, span.documents) == ((ASK,), ({"context": "wet"},))


def test_a_plan_is_read_as_reasoning() -> None:
    span = seen({"crewai.reasoning.plan": "look out", "crewai.agent.role": "r"}, "crewai", name="agent reasoning")
    assert span.output == (Message("assistant", (Reasoning("look out"),)),)


def test_truncated_messages_add_a_note() -> None:
    attributes = {"gen_ai.operation.name": "chat", "gen_ai.input.messages.truncated": True}
    assert seen(attributes, "crewai", name="call llm").notes == ("messages were cut short by a length limit",)


def test_crew_keys_in_other_scopes_are_ignored() -> None:
    assert (
        seen({"crewai.crew.inputs": '{"a": "b"}'}, "opentelemetry.instrumentation.crewai", name="execute crew").kind
        is Kind.OTHER
    )
