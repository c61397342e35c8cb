"""What speaks for each step of a run that it broke the run."""

from __future__ import annotations

from typing import Any

import pytest

from pandaeval_collector.analysis.rules.blame_steps import BlameStep, steps, told
from pandaeval_otel.model import Kind, Message, Span, Text, ToolCall, Trace, Turn

ROOT, FIRST, TOOL, LAST = "a" * 16, "b" * 16, "c" * 16, "d" * 16


def call(name: str = "get_order", span_id: str = TOOL, at: int = 20, **more: Any) -> ToolCall:
    given = {"arguments": {"id": "W77"}, "result": '{"total": "123"}', "has_arguments": True, "has_result": True}
    return ToolCall(name, **{**given, "span_id": span_id, "start_ns": at, "end_ns": at + 5, **more})


def trace(*calls: ToolCall, answer: str = "It costs 123.", user: str = "What of W77?", **more: Any) -> Trace:
    def span(span_id: str, kind: Kind, start: int, end: int, said: str | None = None) -> Span:
        output = None if said is None else (Message("assistant", (Text(said),)),)
        return Span("t" * 32, span_id, "" if span_id == ROOT else ROOT, kind.value, kind, start, end, output=output)

    spans = (
        span(ROOT, Kind.AGENT, 0, 100),
        span(FIRST, Kind.LLM, 1, 10, ""),
        *(span(each.span_id, Kind.TOOL, each.start_ns, each.end_ns) for each in calls if each.span_id != FIRST),
        span(LAST, Kind.LLM, 90, 95, answer),
    )
    turns = (Turn(user, answer),)
    return Trace("t" * 32, spans, ROOT, turns=turns, tool_calls=calls, **more)


def found(trace: Trace, named: dict[str, tuple[str, ...]] | None = None) -> dict[str, BlameStep]:
    return {step.span_id: step for step in steps(trace, named or {})}


def marks(step: BlameStep) -> set[str]:
    return {name for name, value in step.features.items() if value == 1.0}


def test_every_step_has_its_kind_and_tool() -> None:
    its = found(trace(call()))
    assert [(step.kind, step.tool) for step in its.values()] == [
        ("request", ""),
        ("llm", "get_order"),
        ("tool", "get_order"),
        ("llm", ""),
    ]
    assert {"first model call"} <= marks(its[FIRST])
    assert {"last model call", "late"} <= marks(its[LAST])


@pytest.mark.parametrize(
    ("one", "mark"),
    [
        (call(error="no such order", has_result=False), "fails"),
        (call("cancel_order", error="no", has_result=False), "fails for good"),
        (call(arguments={"id": "X99"}), "unsaid argument"),
        (call("cancel_order"), "changes first"),
        (call("cancel_order"), "changes without a yes"),
        (call("transfer_to_human"), "hands over"),
        (call(result='{"total": "456"}'), "result unused"),
        (call(result="{}"), "gives nothing"),
        (call(has_result=False), "result misses"),
    ],
)
def test_a_call_marks_itself_and_who_asked(one: ToolCall, mark: str) -> None:
    its = found(trace(one))
    assert mark in marks(its[TOOL])
    assert f"asked: {mark}" in marks(its[FIRST])
    assert f"asked: {mark}" not in marks(its[LAST])


def test_what_is_in_order_is_not_marked() -> None:
    quiet = marks(found(trace(call()))[TOOL])
    assert quiet == {"tool"}


def test_a_yes_of_the_user_is_heard() -> None:
    its = found(trace(call("cancel_order"), user="Yes, cancel W77."))
    assert "changes without a yes" not in marks(its[TOOL])


def test_what_fed_a_failing_call_is_marked() -> None:
    first = call(result='{"item": "I55"}')
    second = call("cancel_order", "e" * 16, 40, arguments={"id": "I55"}, error="gone", has_result=False)
    its = found(trace(first, second))
    assert "feeds a call that fails" in marks(its[TOOL])
    assert "feeds a call that fails" not in marks(its["e" * 16])


def test_findings_mark_the_first_span_that_they_name() -> None:
    its = found(trace(call()), {"grounding": (LAST,), "tool_loop": (FIRST, TOOL), "own": (ROOT,)})
    assert {"grounding names it first", "own fails the answer"} <= marks(its[LAST])
    assert "loop, first round" in marks(its[FIRST])
    assert "loop, second round" in marks(its[TOOL])


def test_where_something_failed_place_alone_is_not_marked() -> None:
    assert "nothing failed: last model call" in marks(found(trace(call()))[LAST])
    assert "nothing failed: last model call" not in marks(found(trace(call()), {"response": (LAST,)})[LAST])
    failing = trace(call(error="no", has_result=False))
    assert "nothing failed: last model call" not in marks(found(failing)[LAST])


def test_an_error_of_the_run_marks_its_last_span() -> None:
    assert "last before error" in marks(found(trace(call(), error="boom"))[LAST])


def test_a_trace_without_a_model_has_steps() -> None:
    alone = Trace("t" * 32, (Span("t" * 32, ROOT, "", "agent", Kind.AGENT, 0, 1),), ROOT)
    assert [step.kind for step in steps(alone, {"response": (LAST,)})] == ["request"]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("fails", "the call failed"),
        ("asked: fails", "it asked for a call that failed"),
        ("grounding names it first", "grounding names it first"),
        ("refuses", "it refuses or apologises"),
        ("length", ""),
        ("nothing failed: request", ""),
    ],
)
def test_features_are_told_in_words(name: str, words: str) -> None:
    assert told(name) == words
