"""Codex CLI."""

from __future__ import annotations

from typing import Any

import pytest

from pandaeval_collector.base.score import Unscored, Why
from pandaeval_collector.scoring.metrics.trace.response import response
from pandaeval_otel.model import Captured, Kind, Trace, Trigger, Usage
from pandaeval_otel.model.raw import RawLog, RawSpan, Scope
from pandaeval_otel.normal.evidence import Evidence
from pandaeval_otel.normal.trace import Closing, build_trace
from tests.unit.dialects.composed import event, log, seen, texts

SCOPE = "codex_exec"
PROMPT = {"event.name": "codex.user_prompt", "conversation.id": "c-1", "prompt": "Which tests fail?"}
CALL: dict[str, Any] = {
    "event.name": "codex.tool_result",
    "conversation.id": "c-1",
    "tool_name": "shell",
    "call_id": "x1",
    "arguments": '{"command": ["pytest"]}',
    "output": "FAILED test_low",
    "success": "true",
}
DONE = {"event.name": "codex.sse_event", "event.kind": "response.completed"}
COUNTS = {"input_token_count": "5200", "output_token_count": "140", "cached_token_count": "4000"}


def told(**attributes: Any) -> RawLog:
    return log(**attributes)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("session_task.turn", Kind.AGENT),
        ("handle_responses", Kind.LLM),
        ("dispatch_tool_call", Kind.TOOL),
        ("turn/start", Kind.STEP),
        ("of_a_later_version", Kind.STEP),
    ],
)
def test_span_names_set_kinds(name: str, kind: Kind) -> None:
    assert seen({}, SCOPE, name=name).kind is kind


def test_log_records_make_their_span_a_turn_or_a_tool_call() -> None:
    assert seen({}, SCOPE, name="op", logs=[told(**PROMPT)]).kind is Kind.AGENT
    call = seen({}, SCOPE, name="op", logs=[told(**CALL)])
    assert (call.kind, call.tool_name, call.tool_call_id) == (Kind.TOOL, "shell", "x1")
    assert call.arguments == Captured({"command": ["pytest"]})
    assert call.result is not None
    assert call.result.value == "FAILED test_low"
    failed = seen({}, SCOPE, name="op", logs=[told(**CALL | {"success": "false", "output": "no shell"})])
    assert failed.error == "no shell"


def test_a_turn_has_the_prompt_the_token_usage_and_the_conversation() -> None:
    span = seen(
        {"model": "gpt-5.6-codex"}, SCOPE, name="session_task.turn", logs=[told(**PROMPT), told(**DONE | COUNTS)]
    )
    assert texts(span.input) == [("user", "Which tests fail?")]
    assert (span.model, span.usage) == ("gpt-5.6-codex", Usage(5200, 140, 4000))
    assert [name for _, name in span.session_ids] == ["c-1"]
    stated = {"codex.turn.token_usage.input_tokens": 10, "codex.turn.token_usage.output_tokens": 2}
    assert seen(stated, SCOPE, name="session_task.turn", logs=[told(**DONE | COUNTS)]).usage == Usage(10, 2)


def test_events_without_content_give_no_input_arguments_or_result() -> None:
    bare = {"tool_name": "shell", "call_id": "x1", "success": "true", "output_length": 12}
    events = [event("codex.user_prompt", prompt_length="17"), event("codex.tool_result", **bare)]
    span = seen({}, SCOPE, name="session_task.turn", events=events)
    assert span.input is None
    trace = run(events)
    (call,) = trace.tool_calls
    assert (call.name, call.has_arguments, call.has_result) == ("shell", False, False)
    assert not trace.ends_in_tool_call


def test_other_frameworks_spans_are_left_alone() -> None:
    assert seen({"codex.turn.token_usage.input_tokens": 1}, "app", name="session_task.turn").dialects == ("plain",)


def run(events: Any = (), *logs: RawLog) -> Trace:
    """Return a turn with a call recorded on the turn's span."""
    scope = Scope(SCOPE)
    turn = RawSpan("a" * 32, "b" * 16, "", "session_task.turn", events=events, start_ns=1, end_ns=9, scope=scope)
    tool = {"tool_name": "shell", "call_id": "x1"}
    call = RawSpan(
        "a" * 32, "c" * 16, "b" * 16, "dispatch_tool_call", start_ns=3, end_ns=5, attributes=tool, scope=scope
    )
    trace = build_trace(Evidence((turn, call), logs, "0" * 32), Closing(Trigger.FILE))
    assert trace is not None
    return trace


def test_a_run_is_read_and_its_answer_is_reported_as_not_captured() -> None:
    trace = run((), told(**PROMPT), told(**CALL), told(**DONE | COUNTS))
    assert (trace.input, trace.output, trace.session_id, trace.agent) == ("Which tests fail?", None, "c-1", "codex")
    assert [(call.name, call.arguments, call.result) for call in trace.tool_calls] == [
        ("shell", {"command": ["pytest"]}, "FAILED test_low")
    ]
    assert (trace.usage.input, trace.usage.output) == (5200, 140)
    assert any("Codex" in note for note in trace.notes)
    found = response(trace)
    assert isinstance(found, Unscored)
    assert (found.why, found.reason) == (Why.NO_CONTENT, "the answer was not captured")
