"""Claude Code and Claude Agent SDK."""

from __future__ import annotations

from typing import Any

import pytest

from pandaeval_otel.model import Captured, Kind, Text, ToolRequest, Usage
from pandaeval_otel.model.raw import STATUS_ERROR, RawSpan, Scope
from pandaeval_otel.normal.spans import normalize
from pandaeval_otel.normal.trace import Closing, trace_of
from tests.unit.dialects.composed import ASK, SAID, TRACE, event, log, seen, texts

SCOPE = "com.anthropic.claude_code.tracing"
INTERACTION = {"gen_ai.operation.name": "invoke_agent", "session.id": "s-1", "gen_ai.conversation.id": "s-1"}
TOOL = {"gen_ai.operation.name": "execute_tool", "tool_name": "Bash", "tool_use_id": "tu_1"}


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("claude_code.interaction", Kind.AGENT),
        ("claude_code.llm_request", Kind.LLM),
        ("claude_code.tool", Kind.TOOL),
        ("claude_code.tool.execution", Kind.STEP),
        ("claude_code.tool.blocked_on_user", Kind.STEP),
        ("claude_code.hook", Kind.STEP),
        ("claude_code.of_a_later_version", Kind.STEP),
    ],
)
def test_span_names_set_kinds(name: str, kind: Kind) -> None:
    assert seen({}, SCOPE, name=name).kind is kind


def test_a_prompt_is_the_input_of_its_interaction() -> None:
    span = seen({**INTERACTION, "user_prompt": "Weather in Oslo?"}, SCOPE, name="claude_code.interaction")
    assert span.input == (ASK,)
    assert {name for _, name in span.session_ids} == {"s-1"}


def test_a_hidden_prompt_is_no_input() -> None:
    span = seen({**INTERACTION, "user_prompt": "<REDACTED>"}, SCOPE, name="claude_code.interaction")
    assert span.input is None


@pytest.mark.parametrize("name", ["claude_code.user_prompt", "user_prompt"])
def test_a_prompt_redacted_on_the_span_is_read_from_the_log(name: str) -> None:
    attributes = {**INTERACTION, "user_prompt": "<REDACTED>"}
    logs = (log(name, prompt="Weather in Oslo?"),)
    assert seen(attributes, SCOPE, logs=logs, name="claude_code.interaction").input == (ASK,)


ANSWERED = {"response": SAID, "query_source": "sdk"}
RESULT = {
    "tool_name": "mcp_tool",
    "tool_use_id": "tu_1",
    "tool_input": '{"city": "Oslo"}',
    "tool_parameters": '{"mcp_server_name": "sky", "mcp_tool_name": "get_weather"}',
}


def test_answers_and_tool_calls_are_read_from_the_interaction_logs() -> None:
    logs = (
        log("claude_code.assistant_response", **{**ANSWERED, "event.sequence": 3}),
        log("tool_result", **{**RESULT, "event.sequence": 2}),
        log("assistant_response", **{"response": "I look out.", "event.sequence": 1}),
        log("assistant_response", **{"response": "a subagent's", "query_source": "agent:x", "event.sequence": 4}),
        log("assistant_response", **{"response": "<REDACTED>", "event.sequence": 5}),
    )
    span = seen(INTERACTION, SCOPE, logs=logs, name="claude_code.interaction")
    assert span.output is not None
    assert [part for message in span.output for part in message.parts] == [
        Text("I look out."),
        ToolRequest("get_weather", {"city": "Oslo"}, "tu_1"),
        Text(SAID),
    ]


def test_a_built_in_tool_call_is_read_from_the_logs() -> None:
    logs = (log("tool_result", tool_name="Bash", tool_use_id="tu_2", tool_input='{"command": "ls"}'),)
    span = seen(INTERACTION, SCOPE, logs=logs, name="claude_code.interaction")
    assert span.output is not None
    assert span.output[0].parts == (ToolRequest("Bash", {"command": "ls"}, "tu_2"),)


def test_other_logs_are_no_answer() -> None:
    logs = (log("claude_code.api_request", model="claude-x"), log("plugin_loaded"))
    assert seen(INTERACTION, SCOPE, logs=logs, name="claude_code.interaction").output is None


def test_a_tool_span_and_its_execution_span_are_one_call_with_the_error() -> None:
    spans = [
        RawSpan(TRACE, "1" * 16, name="claude_code.tool", attributes=TOOL, start_ns=1, end_ns=9, scope=Scope(SCOPE)),
        RawSpan(
            TRACE,
            "2" * 16,
            "1" * 16,
            name="claude_code.tool.execution",
            attributes={"tool_use_id": "tu_1", "success": False, "error": "no such file"},
            start_ns=2,
            end_ns=8,
            scope=Scope(SCOPE),
        ),
    ]
    trace = trace_of([normalize(span) for span in spans], "0" * 32, Closing())
    assert [(call.name, call.error) for call in trace.tool_calls] == [("Bash", "no such file")]


@pytest.mark.parametrize(
    ("name", "own"), [("mcp__sky__get_weather", "get_weather"), ("mcp__sky", "mcp__sky"), ("Bash", "Bash")]
)
def test_the_mcp_server_prefix_is_removed_from_tool_names(name: str, own: str) -> None:
    span = seen({"tool_name": name, "tool_use_id": "tu_1"}, SCOPE, name="claude_code.tool")
    assert span.tool_name == own


def test_input_tokens_of_a_request_include_cached_tokens() -> None:
    attributes = {
        "model": "claude-x",
        "input_tokens": 10,
        "output_tokens": 7,
        "cache_read_tokens": 100,
        "cache_creation_tokens": 20,
        "new_context": "Weather in Oslo?",
        "response.model_output": SAID,
    }
    span = seen(attributes, SCOPE, name="claude_code.llm_request")
    assert span.usage == Usage(input=130, output=7, cache_read=100, cache_write=20)
    assert (span.request_model, span.input, texts(span.output)) == ("claude-x", (ASK,), [("assistant", SAID)])


def test_a_tool_with_details() -> None:
    attributes = {**TOOL, "tool_input": '{"command": "ls", "timeout": 5}'}
    events = (event("tool.output", output="a.txt\nb.txt"),)
    span = seen(attributes, SCOPE, events, name="claude_code.tool")
    assert (span.tool_name, span.tool_call_id) == ("Bash", "tu_1")
    assert span.arguments == Captured({"command": "ls", "timeout": 5})
    assert span.result == Captured("a.txt\nb.txt")


@pytest.mark.parametrize(
    ("attributes", "arguments"),
    [
        ({"full_command": "ls -l"}, {"command": "ls -l"}),
        ({"file_path": "/tmp/a"}, {"file_path": "/tmp/a"}),
        ({}, None),
    ],
)
def test_the_argument_of_a_common_tool_is_read_from_its_own_attribute(
    attributes: dict[str, Any], arguments: Any
) -> None:
    span = seen({**TOOL, **attributes}, SCOPE, name="claude_code.tool")
    assert span.arguments == (None if arguments is None else Captured(arguments))


def test_an_unsuccessful_span_has_an_error() -> None:
    failed = {**TOOL, "success": False, "error": "no such file"}
    assert seen(failed, SCOPE, name="claude_code.tool").error == "no such file"
    told = seen(
        {"success": "false"}, SCOPE, name="claude_code.llm_request", status_code=STATUS_ERROR, status_message="529"
    )
    assert told.error == "529"
    assert seen({"success": True}, SCOPE, name="claude_code.llm_request").error is None


def test_a_tool_call_that_starts_a_subagent_has_the_subagent_name() -> None:
    attributes = {"tool_name": "Agent", "tool_use_id": "t1", "subagent_type": "general-purpose"}
    span = seen(attributes, "com.anthropic.claude_code.tracing", name="claude_code.tool")
    assert (span.tool_name, span.agent_name) == ("Agent", "general-purpose")
    other = seen(
        {"tool_name": "Bash", "tool_use_id": "t2"}, "com.anthropic.claude_code.tracing", name="claude_code.tool"
    )
    assert other.agent_name == ""
