"""Mastra, old and new exporters."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pandaeval_otel.model import NOT_CAPTURED, Captured, Kind, Message, Reasoning, Text, ToolDefinition
from pandaeval_otel.model.raw import STATUS_ERROR
from tests.unit.dialects.composed import ASK, BRIEF, CALL, SAID, SCHEMA, seen, texts

SYSTEM = {"role": "system", "content": "Be brief."}
USER = {"role": "user", "content": "Weather in Oslo?"}
CALLS = [{"toolCallId": "c9", "toolName": "get_weather", "args": {"city": "Oslo"}}]


def span_of(word: str, operation: str, **more: Any) -> dict[str, Any]:
    return {"mastra.span.type": word, "gen_ai.operation.name": operation, **more}


@pytest.mark.parametrize(
    ("word", "operation", "kind"),
    [
        ("agent_run", "agent.run", Kind.AGENT),
        ("agent_run", "invoke_agent", Kind.AGENT),
        ("workflow_run", "workflow.run", Kind.WORKFLOW),
        ("model_generation", "chat", Kind.LLM),
        ("llm_generation", "tool_selection", Kind.LLM),
        ("model_step", "model.step", Kind.STEP),
        ("model_generation", "model_generation", Kind.STEP),
        ("model_step", "agent_step", Kind.LLM),
        ("model_inference", "chat", Kind.LLM),
        ("model_chunk", "model_chunk", Kind.STEP),
        ("tool_call", "tool.execute", Kind.TOOL),
        ("mcp_tool_call", "execute_tool", Kind.TOOL),
        ("scorer_run", "scorer_run", Kind.EVALUATION),
        ("workflow_step", "workflow_step", Kind.STEP),
    ],
)
def test_span_type_and_operation_set_the_kind(word: str, operation: str, kind: Kind) -> None:
    assert seen(span_of(word, operation)).kind is kind


def test_a_run_of_the_first_exporters() -> None:
    attributes = span_of(
        "agent_run",
        "agent.run",
        input=json.dumps([USER]),
        output=json.dumps({"text": SAID, "files": []}),
        threadId="chat-1",
        resourceId="u-1",
        **{"agent.id": "trip_bot", "agent.available_tools": '["get_weather"]'},
    )
    span = seen(attributes, name="agent.trip_bot")
    assert (span.input, texts(span.output)) == ((ASK,), [("assistant", SAID)])
    assert (span.agent_name, span.session_ids, span.user_id) == ("trip_bot", ((4, "chat-1"),), "u-1")
    assert span.tools == (ToolDefinition("get_weather"),)


def test_a_failed_run_with_empty_text_has_no_output() -> None:
    attributes = span_of("agent_run", "agent.run", output='{"text": ""}')
    assert seen(attributes, status_code=STATUS_ERROR).output is None


def test_the_joined_text_of_all_steps_is_no_output() -> None:
    key = "mastra.agent_run"
    attributes = span_of("agent_run", "invoke_agent", **{f"{key}.input": json.dumps([USER])})
    span = seen({**attributes, f"{key}.output": json.dumps({"text": f"Let me look.{SAID}"})})
    assert (span.input, span.output) == ((ASK,), None)


def test_a_loop_of_the_first_exporters() -> None:
    pieces = [{"type": "reasoning", "payload": {"id": "r0", "text": text}} for text in ("look ", "out")]
    made = {"text": "", "reasoning": pieces, "toolCalls": CALLS}
    attributes = span_of(
        "model_generation", "chat", input=json.dumps({"messages": [SYSTEM, USER]}), output=json.dumps(made)
    )
    span = seen(attributes)
    assert (span.input, span.system) == ((BRIEF, ASK), "Be brief.")
    assert span.output == (Message("assistant", (Reasoning("look out"), CALL)),)


def test_a_loop_that_ended_in_an_error() -> None:
    attributes = span_of(
        "model_generation", "chat", output='{"text": ""}', **{"gen_ai.response.finish_reasons": "error"}
    )
    span = seen(attributes)
    assert (span.output, span.error) == ((Message("assistant", (NOT_CAPTURED,)),), "error")


def test_tool_definitions_are_read_from_the_request_of_a_step() -> None:
    tool = {"type": "function", "function": {"name": "get_weather", "description": "Tells.", "parameters": SCHEMA}}
    attributes = span_of("model_step", "model.step", input=json.dumps({"body": json.dumps({"tools": [tool]})}))
    assert seen(attributes).tools == (ToolDefinition("get_weather", "Tells.", SCHEMA),)


def test_a_step_of_the_later_exporters() -> None:
    history = [
        SYSTEM,
        USER,
        {"role": "assistant", "content": "Let me look.[tool: get_time][tool: get_day]"},
        {"role": "tool", "content": "[tool-result: get_time][tool-result: get_day]"},
        {"role": "assistant", "content": "[tool: get_time]"},
    ]
    body = {"choices": [{"message": {"role": "assistant", "content": "", "reasoning_content": "look out"}}]}
    attributes = span_of(
        "model_step",
        "agent_step",
        **{
            "mastra.model_step.input": json.dumps(history),
            "mastra.model_step.output": json.dumps({"text": SAID, "toolCalls": CALLS}),
            "mastra.metadata.body": json.dumps(body),
            "mastra.metadata.threadId": "chat-1",
        },
    )
    span = seen(attributes)
    assert span.input == (BRIEF, ASK, Message("assistant", (Text("Let me look."),)))
    assert span.output == (Message("assistant", (Reasoning("look out"), Text(SAID), CALL)),)
    assert span.session_ids == ((4, "chat-1"),)


def test_a_tool_of_the_first_exporters() -> None:
    attributes = span_of("tool_call", "tool.execute", input='{"city": "Oslo"}', output='{"temp_c": 4}')
    span = seen({**attributes, "gen_ai.tool.name": "get_weather"})
    assert (span.tool_name, span.arguments, span.result, span.error) == (
        "get_weather",
        Captured({"city": "Oslo"}),
        Captured({"temp_c": 4}),
        None,
    )


def test_a_tool_that_failed() -> None:
    attributes = span_of("tool_call", "tool.execute", output="no wind", **{"gen_ai.tool.success": False})
    assert seen(attributes).error == "no wind"


def test_a_tool_call_with_genai_attributes() -> None:
    attributes = span_of(
        "tool_call",
        "execute_tool",
        **{
            "gen_ai.tool.name": "get_weather",
            "gen_ai.tool.call.id": "c9",
            "gen_ai.tool.call.arguments": '{"city": "Oslo"}',
            "gen_ai.tool.call.result": '{"temp_c": 4}',
        },
    )
    span = seen(attributes)
    assert (span.arguments, span.result, span.tool_call_id) == (
        Captured({"city": "Oslo"}),
        Captured({"temp_c": 4}),
        "c9",
    )
