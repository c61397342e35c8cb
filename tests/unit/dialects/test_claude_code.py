"""Claude Code and the Claude Agent SDK's own spans."""

from __future__ import annotations

from typing import Any

import pytest

from pandaeval_otel.model import Captured, Kind, Usage
from pandaeval_otel.model.raw import STATUS_ERROR
from tests.unit.dialects.composed import ASK, SAID, event, log, seen, texts

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
def test_span_names_tell_kinds(name: str, kind: Kind) -> None:
    assert seen({}, SCOPE, name=name).kind is kind


def test_a_prompt_is_the_input_of_its_interaction() -> None:
    span = seen({**INTERACTION, "user_prompt": "Weather in Oslo?"}, SCOPE, name="claude_code.interaction")
    assert span.input == (ASK,)
    assert {name for _, name in span.session_ids} == {"s-1"}


def test_a_hidden_prompt_is_no_input() -> None:
    span = seen({**INTERACTION, "user_prompt": "<REDACTED>"}, SCOPE, name="claude_code.interaction")
    assert span.input is None


@pytest.mark.parametrize("name", ["claude_code.user_prompt", "user_prompt"])
def test_a_prompt_hidden_on_the_span_may_stand_in_the_log(name: str) -> None:
    attributes = {**INTERACTION, "user_prompt": "<REDACTED>"}
    logs = (log(name, prompt="Weather in Oslo?"),)
    assert seen(attributes, SCOPE, logs=logs, name="claude_code.interaction").input == (ASK,)


def test_tokens_of_a_request_are_counted_with_the_cache() -> None:
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
def test_of_a_common_tool_the_argument_may_stand_alone(attributes: dict[str, Any], arguments: Any) -> None:
    span = seen({**TOOL, **attributes}, SCOPE, name="claude_code.tool")
    assert span.arguments == (None if arguments is None else Captured(arguments))


def test_what_did_not_succeed_is_an_error() -> None:
    failed = {**TOOL, "success": False, "error": "no such file"}
    assert seen(failed, SCOPE, name="claude_code.tool").error == "no such file"
    told = seen(
        {"success": "false"}, SCOPE, name="claude_code.llm_request", status_code=STATUS_ERROR, status_message="529"
    )
    assert told.error == "529"
    assert seen({"success": True}, SCOPE, name="claude_code.llm_request").error is None
