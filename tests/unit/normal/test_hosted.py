"""Provider-run tools within a run."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pandaeval_otel.model import Message, Text, ToolRequest, ToolResponse, Trace, Trigger
from pandaeval_otel.model.raw import RawSpan
from pandaeval_otel.normal.evidence import Evidence
from pandaeval_otel.normal.speech import answer_of, split_hosted_calls
from pandaeval_otel.normal.trace import Closing, build_trace
from tests.support.builders import says

WON, LOOK = "Aker won.", "I will look that up."
HOSTED = ToolRequest("web_search", {"query": "race"}, "s1", hosted=True)
PAGES = ToolResponse(["Aker wins"], "s1")
OWN = ToolRequest("book", {}, "c1")
QUESTION = [{"role": "user", "parts": [{"type": "text", "content": "Who won?"}]}]


def run(*parts: dict[str, Any], finish_reason: str = "stop") -> Trace:
    """Return a run of one model call with these parts."""
    output = [{"role": "assistant", "parts": [*parts], "finish_reason": finish_reason}]
    attributes = {
        "gen_ai.operation.name": "chat",
        "gen_ai.input.messages": json.dumps(QUESTION),
        "gen_ai.output.messages": json.dumps(output),
    }
    agent = RawSpan(
        "a" * 32,
        "1" * 16,
        "",
        "invoke_agent",
        start_ns=10,
        end_ns=90,
        attributes={"gen_ai.operation.name": "invoke_agent"},
    )
    model = RawSpan("a" * 32, "2" * 16, "1" * 16, "chat", start_ns=20, end_ns=80, attributes=attributes)
    trace = build_trace(Evidence((agent, model), (), "0" * 32), Closing(Trigger.FILE))
    assert trace is not None
    return trace


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        ((HOSTED, Text(WON)), WON),
        ((Text(WON), HOSTED), WON),  # some providers put the text first
        ((HOSTED, PAGES, Text(WON)), WON),
        ((Text(LOOK), HOSTED, PAGES, Text(WON)), WON),
    ],
)
def test_text_beside_a_provider_run_tool_call_is_the_answer(parts: Any, text: str) -> None:
    answer = answer_of(split_hosted_calls((says(*parts),)))
    assert (answer.text, answer.pending) == (text, False)


@pytest.mark.parametrize("parts", [(HOSTED, PAGES, Text(LOOK), OWN), (HOSTED, Text(LOOK), OWN), (HOSTED, OWN)])
def test_application_tool_call_leaves_the_answer_pending(parts: Any) -> None:
    assert answer_of(split_hosted_calls((says(*parts),))).pending


@pytest.mark.parametrize("parts", [(HOSTED,), (HOSTED, PAGES)])
def test_answer_is_unknown_if_there_is_only_a_provider_run_call(parts: Any) -> None:
    answer = answer_of(split_hosted_calls((says(*parts),)))
    assert (answer.text, answer.pending) == (None, False)


@pytest.mark.parametrize(
    ("parts", "finish_reason", "pending"),
    [
        ((OWN, Text(WON)), "stop", False),
        ((OWN, Text(WON)), "end_turn", False),
        ((OWN, Text(WON)), "tool_call", True),
        ((OWN, Text(WON)), "", True),
        ((Text(LOOK), OWN), "stop", True),
        ((OWN, Text(" ")), "stop", True),
    ],
)
def test_call_is_not_pending_if_text_follows_and_the_model_stopped(
    parts: Any, finish_reason: str, pending: bool
) -> None:
    assert answer_of(split_hosted_calls((Message("assistant", parts, finish_reason),))).pending is pending


def test_alternating_calls_results_and_text_become_separate_messages() -> None:
    parts = (Text(LOOK), HOSTED, PAGES, Text("Once more."), HOSTED, PAGES, Text(WON))
    found = split_hosted_calls((Message("assistant", parts, "stop"),))
    assert [(message.role, len(message.parts), message.finish_reason) for message in found] == [
        ("assistant", 2, ""),
        ("tool", 1, ""),
        ("assistant", 2, ""),
        ("tool", 1, ""),
        ("assistant", 1, "stop"),
    ]
    plain = (says(LOOK, OWN),)
    assert split_hosted_calls(plain) is plain


def test_result_in_the_same_answer_belongs_to_its_call() -> None:
    call = {"type": "server_tool_call", "id": "s1", "name": "web_search", "server_tool_call": {"query": "race"}}
    result = {"type": "server_tool_call_response", "id": "s1", "server_tool_call_response": {"results": ["Aker wins"]}}
    again = {**call, "id": "s2", "server_tool_call": {"query": "second"}}
    trace = run(call, result, {"type": "text", "content": LOOK}, again, {"type": "text", "content": WON})
    first, second = trace.tool_calls
    assert (trace.output, trace.ends_in_tool_call) == (WON, False)
    assert (first.arguments, first.result) == ({"query": "race"}, ["Aker wins"])
    assert (second.arguments, second.has_result) == ({"query": "second"}, False)
    assert 20 <= first.start_ns < second.start_ns < 80


def test_provider_run_mcp_call_with_an_error_has_failed() -> None:
    item = {"type": "mcp_call", "id": "mcp_1", "name": "find_race", "arguments": "{}", "error": "office closed"}
    trace = run(item, {"type": "text", "content": "I cannot say."})
    assert [(call.error, call.result) for call in trace.tool_calls] == [("office closed", "office closed")]
