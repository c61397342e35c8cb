"""Invariants of the loop detector."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import given, strategies as st

from pandaeval_collector.analysis.rules.tool_loop import tool_loop
from pandaeval_otel.model import Kind, Message, OtherPart, Span, Text, ToolCall, ToolDefinition, Trace, Turn

SECOND = 1_000_000_000

names = st.sampled_from(
    ["get_a", "get_b", "update_a", "scroll", "sleep", "think", "transfer_to_x", "transfer_to_y", ""]
) | st.text(max_size=6)
scalars = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(["ok", "Error", '{"error": 1}', "{"])
)
values = st.recursive(
    scalars | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["id", "request_id", "error"]), inner),
    max_leaves=5,
)
few = st.sampled_from([{}, {"id": 1}, {"id": 2, "ts": 1}, {"id": 2, "ts": 2}]) | values
agents = st.sampled_from(["", "x", "y", "z"])
span_ids = st.sampled_from([f"s{number}" for number in range(12)])
times_ns = st.integers(0, 20 * SECOND)
parts = st.sampled_from([Text("hello"), Text(""), OtherPart("image")])
messages = st.builds(Message, st.just("assistant"), st.tuples(parts))
spans = st.builds(
    Span,
    trace_id=st.just("t"),
    span_id=span_ids,
    parent_id=st.just("") | span_ids,
    name=st.just(""),
    kind=st.sampled_from(Kind),
    start_ns=times_ns,
    end_ns=times_ns,
    output=st.none() | st.tuples() | st.tuples(messages),
    agent_name=agents,
)
calls = st.builds(
    ToolCall,
    name=names,
    arguments=few,
    result=few,
    error=st.none() | st.just("timeout"),
    span_id=st.just("") | span_ids,
    agent=agents,
    start_ns=times_ns,
    end_ns=times_ns,
    has_arguments=st.booleans(),
    has_result=st.booleans(),
)
traces = st.builds(
    Trace,
    trace_id=st.just("t"),
    spans=st.lists(spans, max_size=15, unique_by=lambda span: span.span_id).map(tuple),
    root_span_id=span_ids,
    tool_calls=st.lists(calls, max_size=25).map(tuple),
    turns=st.lists(st.builds(Turn, st.just("?"), st.just("!"), span_ids), max_size=3).map(tuple),
    tools=st.lists(st.builds(ToolDefinition, names, read_only=st.none() | st.booleans()), max_size=3).map(tuple),
)


@given(trace=traces)
def test_counts_and_cycles_are_within_bounds_for_any_trace(trace: Trace) -> None:
    found = tool_loop(trace)
    assert found.calls == len(trace.tool_calls)
    assert 0 <= found.wasted_calls < max(1, found.calls)
    assert 0.0 <= found.ratio < 1.0
    assert list(found.repeated) == sorted(set(found.repeated))
    known = {span.span_id for span in trace.spans} | {call.span_id for call in trace.tool_calls}
    for cycle in found.cycles:
        assert cycle.rounds >= 2
        assert set(cycle.span_ids) <= known
        assert cycle.seconds >= 0
        assert cycle.tokens >= 0


@given(trace=traces)
def test_every_wasted_call_belongs_to_a_cycle(trace: Trace) -> None:
    found = tool_loop(trace)
    of_calls = sum(cycle.wasted_calls for cycle in found.cycles if cycle.kind != "ping_pong")
    of_agents = sum(cycle.wasted_calls for cycle in found.cycles if cycle.kind == "ping_pong")
    assert max(of_calls, of_agents) <= found.wasted_calls <= of_calls + of_agents
    assert bool(found.wasted_calls) <= bool(found.cycles)


@given(trace=traces, later=st.integers(0, 10**18))
def test_result_does_not_depend_on_the_start_time_of_the_trace(trace: Trace, later: int) -> None:
    def moved(item: Any) -> Any:
        return replace(item, start_ns=item.start_ns + later, end_ns=item.end_ns + later)

    afterwards = replace(trace, spans=tuple(map(moved, trace.spans)), tool_calls=tuple(map(moved, trace.tool_calls)))
    assert tool_loop(afterwards) == tool_loop(trace)


def sequence(asked: list[tuple[str, Any, Any]], idle: int = 0) -> Trace:
    """Return a trace of consecutive tool calls, with gaps of ``idle`` ns."""
    made: list[Span] = []
    called: list[ToolCall] = []
    now = 0
    for number, (name, arguments, result) in enumerate(asked):
        made.append(Span("t", f"m{number}", "", "chat", Kind.LLM, now, now + SECOND))
        start = now + SECOND + idle
        made.append(Span("t", f"c{number}", "", name, Kind.TOOL, start, start + SECOND))
        called.append(ToolCall(name, "", arguments, result, None, f"c{number}", "", start, start + SECOND, True, True))
        now = start + SECOND
    return Trace("t", tuple(made), "m0", tool_calls=tuple(called))


asked = st.lists(
    st.tuples(
        st.sampled_from(["get_a", "get_b", "update_a", "scroll"]), st.sampled_from([{"id": 1}, {"id": 2}]), st.just("r")
    ),
    max_size=30,
)


@given(asked=asked)
def test_repeated_calls_with_waits_are_polling_and_not_wasted(asked: list[tuple[str, Any, Any]]) -> None:
    assert tool_loop(sequence(asked, idle=2 * SECOND)).wasted_calls == 0


@given(asked=asked)
def test_calls_with_new_results_are_not_wasted(asked: list[tuple[str, Any, Any]]) -> None:
    fresh = [(name, arguments, f"answer {number}") for number, (name, arguments, _) in enumerate(asked)]
    assert tool_loop(sequence(fresh)).wasted_calls == 0


@given(asked=asked)
def test_calls_with_advancing_arguments_are_not_wasted(asked: list[tuple[str, Any, Any]]) -> None:
    paged = [(name, {**arguments, "page": number}, result) for number, (name, arguments, result) in enumerate(asked)]
    assert tool_loop(sequence(paged)).wasted_calls == 0


@given(asked=asked)
def test_repeated_calls_with_a_change_between_them_are_not_wasted(asked: list[tuple[str, Any, Any]]) -> None:
    changed: list[tuple[str, Any, Any]] = []
    for number, call in enumerate(asked):
        changed += [("apply_fix", {"number": number}, "applied"), call]
    assert tool_loop(sequence(changed)).wasted_calls == 0


@given(rounds=st.integers(3, 30), period=st.integers(1, 9), before=asked)
def test_a_loop_is_found_after_any_other_calls(rounds: int, period: int, before: list[tuple[str, Any, Any]]) -> None:
    loop = [("get_c", {"id": number % period}, "r") for number in range(rounds * period)]
    found = tool_loop(sequence([*before, *loop]))
    assert found.looping
    first = len(before) + period
    assert [index for index in found.repeated if index >= len(before)] == list(
        range(first, first + (rounds - 1) * period)
    )


@given(asked=asked, numbers=st.lists(st.integers(), min_size=30, max_size=30))
def test_request_ids_and_times_in_results_are_ignored(asked: list[tuple[str, Any, Any]], numbers: list[int]) -> None:
    def answered(beside: dict[str, int]) -> list[tuple[str, Any, Any]]:
        return [(name, arguments, {"rows": [result], **beside}) for name, arguments, result in asked]

    varying_calls = [
        (name, arguments, {**result, "request_id": number, "updated_at": -number, "latency_ms": number})
        for (name, arguments, result), number in zip(answered({}), numbers, strict=False)
    ]
    assert tool_loop(sequence(varying_calls)) == tool_loop(sequence(answered({})))


@given(asked=asked, spelling=st.sampled_from([{"": ""}, {"filter": None}, {"tags": []}, {"by": {"": ""}}]))
def test_empty_arguments_are_ignored(asked: list[tuple[str, Any, Any]], spelling: dict[str, Any]) -> None:
    spelled = [
        (name, {**arguments, **spelling} if number % 2 else arguments, result)
        for number, (name, arguments, result) in enumerate(asked)
    ]
    assert tool_loop(sequence(spelled)) == tool_loop(sequence(asked))


@given(rows=st.lists(st.integers(), max_size=6), order=st.randoms(use_true_random=False))
def test_a_result_with_reordered_rows_is_a_repetition(rows: list[int], order: Any) -> None:
    shuffled = [*rows]
    order.shuffle(shuffled)
    calls = [("get_a", {"id": 1}, {"rows": each}) for each in (rows, shuffled)]
    assert tool_loop(sequence(calls)).wasted_calls == 1


@given(
    queries=st.lists(st.text(max_size=30), min_size=3, max_size=12),
    answers=st.lists(st.sampled_from(["", "one", "two", '{"rows": []}']), min_size=12, max_size=12),
)
def test_any_search_query_gives_a_valid_result(queries: list[str], answers: list[str]) -> None:
    calls = [("search_a", {"query": query}, answer) for query, answer in zip(queries, answers, strict=False)]
    found = tool_loop(sequence(calls))
    assert 0 <= found.wasted_calls < len(calls)
