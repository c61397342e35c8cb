"""Linear time for many calls with one ID."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from hypothesis import given, strategies as st

from pandaeval_otel.model import Span
from pandaeval_otel.normal.duplicates import _replays, merge_duplicates
from pandaeval_otel.normal.tool_calls import tool_calls
from pandaeval_otel.normal.tree import Tree
from tests.support.builders import Spans, asks, gives, says, user

FEW, MANY = 400, 3200
MOST_GROWTH = 3.0
"""Maximum slowdown of a call among many calls."""


def other_arguments(number: int) -> Spans:
    spans = Spans()
    agent = spans.agent()
    for each in range(number):
        spans.tool(agent, arguments={"q": [each]}, result=str(each), tool_call_id="c1")
    return spans


def other_names(number: int) -> Spans:
    spans = Spans()
    agent = spans.agent()
    for each in range(number):
        spans.tool(agent, f"tool{each}", {}, result="done", tool_call_id="c1")
    return spans


def results_in_a_later_input(number: int) -> Spans:
    spans = Spans()
    agent = spans.agent()
    spans.llm(agent, [user("hi")], says(*(asks("search", {"q": each}, "c1") for each in range(number))))
    for each in range(number):
        spans.tool(agent, arguments={"q": each}, tool_call_id="c1")
    spans.llm(agent, [user("hi"), *(gives(f"r{each}", "c1") for each in range(number))], "done")
    return spans


def _seconds(spans: list[Span], number: int) -> float:
    times = []
    for _ in range(3):
        since = time.process_time()
        assert len(tool_calls(merge_duplicates(Tree(spans))[0])) == number
        times.append(time.process_time() - since)
    return min(times)


@pytest.mark.parametrize("made", [other_arguments, other_names, results_in_a_later_input])
def test_time_grows_linearly_with_the_number_of_calls(made: Callable[[int], Spans]) -> None:
    few, many = _seconds(made(FEW)(), FEW), _seconds(made(MANY)(), MANY)
    assert many / few < MOST_GROWTH * MANY / FEW


VALUES = st.sampled_from([{}, {"n": 17}, {"n": 17.0}, {"n": [1, {"a": 2.0}]}, {"n": [1.0, {"a": 2}]}, "x", None, [1]])
CALLS = st.tuples(st.sampled_from(["search", "shop-search", "pay"]), VALUES, VALUES, st.sampled_from(["c1", "c2"]))


@given(st.lists(CALLS, max_size=12))
def test_merging_gives_the_same_result_as_comparing_all_pairs(made: list[tuple[str, object, object, str]]) -> None:
    spans = Spans()
    agent = spans.agent()
    tools = [spans.tool(agent, name, given, result=got, tool_call_id=id_) for name, given, got, id_ in made]
    keepers: dict[str, str] = {}
    for at, span in enumerate(tools):
        earlier = (other for other in tools[:at] if other.tool_call_id == span.tool_call_id)
        none = None in (span.arguments, span.result)
        first = None if none else next((other for other in earlier if _replays(other, span)), None)
        keepers[span.span_id] = span.span_id if first is None else keepers[first.span_id]
    assert merge_duplicates(Tree(spans()))[1] == len(tools) - len(set(keepers.values()))
