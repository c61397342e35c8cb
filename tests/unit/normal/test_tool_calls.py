"""Every tool call once, in order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from pandaeval_otel.model import NOT_CAPTURED, Kind, Message, Text, ToolCall, ToolRequest, ToolResponse
from pandaeval_otel.normal.tool_calls import tool_calls
from pandaeval_otel.normal.tree import Tree
from tests.support.builders import Spans, asks, gives, says, user

OSLO, BERGEN = {"q": "oslo"}, {"q": "bergen"}


def calls(spans: Spans) -> tuple[ToolCall, ...]:
    return tool_calls(Tree(spans()))


def shown(spans: Spans) -> list[tuple[str, Any, Any]]:
    return [(call.name, call.arguments, call.result) for call in calls(spans)]


def error_of(result: object) -> str | None:
    spans = Spans()
    spans.tool(spans.agent(), result=result)
    (call,) = calls(spans)
    return call.error


class TestSpans:
    def test_tool_span_without_a_request_is_a_call(self) -> None:
        spans = Spans()
        agent = spans.agent(name="desk")
        span = spans.tool(agent, "search", OSLO, result=[1], tool_call_id="c1", error="late")
        [call] = calls(spans)
        assert call == ToolCall(
            name="search",
            id="c1",
            arguments=OSLO,
            result=[1],
            error="late",
            span_id=span.span_id,
            agent="desk",
            start_ns=span.start_ns,
            end_ns=span.end_ns,
            has_arguments=True,
            has_result=True,
        )

    def test_uncaptured_content_differs_from_empty_content(self) -> None:
        spans = Spans()
        spans.tool(spans.agent())
        spans.tool(spans.agent(), result=None)
        hidden, empty = calls(spans)
        assert (hidden.has_arguments, hidden.has_result) == (False, False)
        assert (empty.result, empty.has_result) == (None, True)

    def test_call_without_a_tool_name_uses_the_span_name(self) -> None:
        spans = Spans()
        span = spans.tool(spans.agent(), name="")
        assert [call.name for call in calls(spans)] == [span.name]

    @pytest.mark.parametrize("name", ["final_answer", "final_result"])
    def test_final_answer_tool_request_is_no_call(self, name: str) -> None:
        spans = Spans()
        spans.llm(spans.agent(), [user("hi")], says(asks(name, {"answer": "42"})))
        assert calls(spans) == ()


class TestRequests:
    def test_spans_match_requests_by_nested_or_text_arguments(self) -> None:
        spans = Spans()
        agent = spans.agent()
        deep: dict[str, Any] = {"legs": [{"to": "oslo"}], "back": None}
        spans.llm(agent, [user("hi")], says(asks("book", "by text"), asks("book", deep)))
        spans.tool(agent, "book", {"back": None, "legs": [{"to": "oslo"}]}, result="deep")
        spans.tool(agent, "book", "by text", result="text")
        assert shown(spans) == [("book", "by text", "text"), ("book", deep, "deep")]

    def test_request_and_its_tool_span_are_one_call(self) -> None:
        spans = Spans()
        agent = spans.agent()
        spans.llm(agent, [user("hi")], says(asks("search", OSLO, "c1")))
        span = spans.tool(agent, "search", tool_call_id="c1", result=[1])
        [call] = calls(spans)
        assert (call.arguments, call.result, call.span_id) == (OSLO, [1], span.span_id)

    def test_request_without_a_tool_span_is_a_call_at_the_model_span(self) -> None:
        spans = Spans()
        model = spans.llm(spans.agent(), [user("hi")], says(asks("search", OSLO)))
        [call] = calls(spans)
        assert (call.span_id, call.start_ns) == (model.span_id, model.end_ns)

    @pytest.mark.parametrize("swapped", [False, True])
    def test_spans_match_requests_by_id_before_arguments(self, swapped: bool) -> None:
        spans = Spans()
        agent = spans.agent()
        spans.llm(agent, [user("hi")], says(asks("search", OSLO, "c1"), asks("search", BERGEN, "c2")))
        first, second = (OSLO, BERGEN) if swapped else (None, None)
        spans.tool(agent, "search", first, tool_call_id="c2", result="b")
        spans.tool(agent, "search", second, tool_call_id="c1", result="o")
        assert [(call.id, call.result) for call in calls(spans)] == [("c1", "o"), ("c2", "b")]

    def test_spans_match_requests_by_arguments_if_there_are_no_ids(self) -> None:
        spans = Spans()
        agent = spans.agent()
        spans.llm(agent, [user("hi")], says(asks("search", OSLO), asks("search", BERGEN)))
        spans.tool(agent, "search", {"q": "bergen"}, result="b")
        spans.tool(agent, "search", {"q": "oslo"}, result="o")
        assert shown(spans) == [("search", OSLO, "o"), ("search", BERGEN, "b")]

    def test_request_and_span_with_equal_arguments_match_despite_different_ids(self) -> None:
        spans = Spans()
        agent = spans.agent()
        spans.llm(agent, [user("hi")], says(asks("search", OSLO, "from the model")))
        spans.tool(agent, "search", OSLO, tool_call_id="from the framework")
        assert len(calls(spans)) == 1

    def test_request_and_span_with_different_ids_and_arguments_are_two_calls(self) -> None:
        spans = Spans()
        agent = spans.agent()
        spans.llm(agent, [user("hi")], says(asks("search", OSLO, "c1")))
        spans.tool(agent, "search", BERGEN, tool_call_id="c2")
        assert len(calls(spans)) == 2

    def test_repeated_equal_calls_are_all_listed(self) -> None:
        spans = Spans()
        agent = spans.agent()
        for _ in range(3):
            spans.llm(agent, [user("hi")], says(asks("search", OSLO)))
            spans.tool(agent, "search", OSLO, result=[])
        assert shown(spans) == [("search", OSLO, [])] * 3

    def test_requests_with_a_reused_id_are_separate_calls(self) -> None:
        spans = Spans()
        agent = spans.agent()
        for place in (OSLO, BERGEN):
            spans.llm(agent, [user("hi")], says(asks("search", place, "call_0")))
            spans.tool(agent, "search", tool_call_id="call_0", result=place["q"])
        assert shown(spans) == [("search", OSLO, "oslo"), ("search", BERGEN, "bergen")]

    def test_span_with_a_prefixed_tool_name_matches_the_request(self) -> None:
        spans = Spans()
        agent = spans.agent()
        spans.llm(agent, [user("hi")], says(asks("search", OSLO)))
        spans.tool(agent, "Ferry-search", result=1)
        assert shown(spans) == [("search", OSLO, 1)]

    def test_span_named_after_a_class_matches_the_request_by_arguments(self) -> None:
        spans = Spans()
        agent = spans.agent()
        spans.llm(agent, [user("hi")], says(asks("search", OSLO, "c1"), asks("book", BERGEN, "c2")))
        spans.tool(agent, "StructuredTool", BERGEN, result=1)
        assert shown(spans) == [("search", OSLO, None), ("book", BERGEN, 1)]

    def test_call_requested_only_in_a_later_history_keeps_its_position(self) -> None:
        spans = Spans()
        agent = spans.agent()
        spans.llm(agent, [user("hi")], says(asks("a", OSLO, "c1")))
        spans.tool(agent, "a", OSLO)
        spans.tool(agent, "b", OSLO)
        spans.llm(agent, [user("hi")], says(asks("c", OSLO, "c3")))
        spans.llm(agent, [user("hi"), says(asks("b", OSLO, "c2"))], "done")
        assert [call.name for call in calls(spans)] == ["a", "b", "c"]

    def test_calls_are_listed_in_request_order(self) -> None:
        spans = Spans()
        agent = spans.agent()
        spans.llm(agent, [user("hi")], says(asks("a", OSLO), asks("b", OSLO)))
        spans.tool(agent, "b", OSLO)
        spans.tool(agent, "a", OSLO)
        spans.llm(agent, [user("hi")], says(asks("c", OSLO)))
        assert [call.name for call in calls(spans)] == ["a", "b", "c"]

    def test_call_keeps_its_position_if_the_tool_clock_is_behind(self) -> None:
        spans = Spans()
        agent = spans.agent(start_ns=1000, end_ns=9000)
        spans.llm(agent, [user("hi")], says(asks("a", OSLO)), start_ns=2000, end_ns=2500)
        spans.llm(agent, [user("hi")], says(asks("b", OSLO)), start_ns=3000, end_ns=3500)
        spans.tool(agent, "b", OSLO, start_ns=10, end_ns=20)
        assert [call.name for call in calls(spans)] == ["a", "b"]

    def test_request_without_a_tool_name_is_no_call(self) -> None:
        spans = Spans()
        spans.llm(spans.agent(), [user("hi")], says(ToolRequest("")))
        assert calls(spans) == ()

    def test_calls_are_read_from_agent_messages_if_model_calls_have_none(self) -> None:
        spans = Spans()
        output = (says(asks("search", OSLO, "c1")), gives([1], "c1"), says("found"))
        spans.llm(spans.agent(input=(user("hi"),), output=output))
        assert shown(spans) == [("search", OSLO, [1])]


class TestHistory:
    """Each model call has its own trace. The last trace lists the calls."""

    ASKED = (user("hi"), says(asks("search", OSLO, "c1")), gives("o", "c1"))

    def test_calls_of_earlier_traces_are_read_from_the_history(self) -> None:
        spans = Spans()
        spans.llm(None, self.ASKED, "done")
        assert shown(spans) == [("search", OSLO, "o")]

    def test_calls_before_the_last_user_message_are_ignored(self) -> None:
        spans = Spans()
        spans.llm(None, [*self.ASKED, says("done"), user("thanks")], "welcome")
        assert calls(spans) == ()

    def test_own_calls_follow_the_calls_of_the_history(self) -> None:
        spans = Spans()
        spans.llm(None, self.ASKED, says(asks("search", BERGEN, "c2")))
        assert shown(spans) == [("search", OSLO, "o"), ("search", BERGEN, None)]

    def test_calls_of_this_trace_are_not_duplicated_by_the_history(self) -> None:
        spans = Spans()
        top = spans.agent()
        spans.llm(top, [user("hi")], says(asks("search", OSLO, "c1")))
        spans.llm(top, self.ASKED, "done")
        assert shown(spans) == [("search", OSLO, "o")]

    def test_call_is_not_duplicated_if_the_history_omits_its_id(self) -> None:
        spans = Spans()
        top = spans.agent()
        spans.llm(top, [user("hi")], says(asks("search", OSLO, "adk-1")))
        spans.llm(top, [user("hi"), says(asks("search", OSLO)), gives("o")], "done")
        assert shown(spans) == [("search", OSLO, "o")]

    def test_calls_missing_from_outputs_are_read_from_the_last_input(self) -> None:
        spans = Spans()
        top = spans.agent()
        spans.llm(top, [user("hi")])
        spans.llm(top, self.ASKED)
        last = (*self.ASKED, says(asks("search", BERGEN, "c2")), gives("b", "c2"))
        spans.llm(top, last, "done")
        assert shown(spans) == [("search", OSLO, "o"), ("search", BERGEN, "b")]

    def test_calls_are_not_read_from_a_truncated_history(self) -> None:
        spans = Spans()
        spans.llm(None, [*self.ASKED, says(Text("half a wo"), NOT_CAPTURED)], "done")
        assert calls(spans) == ()


class TestResults:
    def trace(self, *history: Message, place: Any = OSLO, id: str = "c1") -> Spans:
        spans = Spans()
        agent = spans.agent()
        spans.llm(agent, [user("hi")], says(asks("search", place, id)))
        spans.tool(agent, "search", tool_call_id=id)
        spans.llm(agent, history, "done")
        return spans

    def test_result_is_read_from_the_next_input(self) -> None:
        assert shown(self.trace(user("hi"), says(asks(id="c1")), gives([1], "c1"))) == [("search", OSLO, [1])]

    def test_result_is_read_from_an_input_with_only_new_messages(self) -> None:
        assert shown(self.trace(gives([1], "c1"))) == [("search", OSLO, [1])]

    def test_result_without_an_id_is_matched(self) -> None:
        assert shown(self.trace(gives([1]), id="")) == [("search", OSLO, [1])]

    def test_result_with_an_unknown_id_is_ignored(self) -> None:
        [call] = calls(self.trace(gives([1], "c9")))
        assert not call.has_result

    def test_result_of_the_span_is_not_overwritten(self) -> None:
        spans = Spans()
        agent = spans.agent()
        spans.llm(agent, [user("hi")], says(asks(id="c1")))
        spans.tool(agent, "search", tool_call_id="c1", result="whole")
        spans.llm(agent, [user("hi"), says(asks(id="c1")), gives("who…", "c1")], "done")
        assert [call.result for call in calls(spans)] == ["whole"]

    def test_results_without_ids_match_parallel_calls_in_order(self) -> None:
        spans = Spans()
        agent = spans.agent()
        both = says(asks("a", OSLO), asks("b", OSLO))
        spans.llm(agent, [user("hi")], both)
        spans.llm(agent, [user("hi"), both, gives(1), gives(2)], "done")
        assert shown(spans) == [("a", OSLO, 1), ("b", OSLO, 2)]

    def test_results_in_another_order_match_parallel_calls_by_name(self) -> None:
        spans = Spans()
        agent = spans.agent()
        both = says(asks("a", OSLO), asks("b", OSLO))
        spans.llm(agent, [user("hi")], both)
        spans.llm(agent, [user("hi"), both, gives(2, name="b"), gives(1, name="a")], "done")
        assert shown(spans) == [("a", OSLO, 1), ("b", OSLO, 2)]

    def test_results_with_unknown_ids_match_in_order_if_their_number_fits(self) -> None:
        spans = Spans()
        agent = spans.agent()
        both = says(asks("a", OSLO, "c1"), asks("b", OSLO, "c2"))
        spans.llm(agent, [user("hi")], both)
        spans.llm(agent, [user("hi"), both, gives(1, "a_0"), gives(2, "b_1")], "done")
        assert shown(spans) == [("a", OSLO, 1), ("b", OSLO, 2)]

    def test_result_with_an_unknown_id_is_ignored_if_the_number_does_not_fit(self) -> None:
        spans = Spans()
        agent = spans.agent()
        both = says(asks("a", OSLO, "c1"), asks("b", OSLO, "c2"))
        spans.llm(agent, [user("hi")], both)
        spans.llm(agent, [user("hi"), both, gives(1, "c9")], "done")
        assert [call.has_result for call in calls(spans)] == [False, False]

    def test_equal_calls_get_their_own_results(self) -> None:
        spans = Spans()
        agent = spans.agent()
        history = [user("hi")]
        for result in (1, 2, 3):
            spans.llm(agent, history, says(asks("search", OSLO)))
            history = [*history, says(asks("search", OSLO)), gives(result)]
        spans.llm(agent, history, "done")
        assert [call.result for call in calls(spans)] == [1, 2, 3]

    def test_calls_with_equal_ids_get_their_own_results(self) -> None:
        spans = Spans()
        agent = spans.agent()
        for result in (1, 2, 3):
            spans.llm(agent, [gives(result - 1, "call_0")] if result > 1 else [user("hi")], says(asks(id="call_0")))
        spans.llm(agent, [gives(3, "call_0")], "done")
        assert [call.result for call in calls(spans)] == [1, 2, 3]

    def test_equal_calls_of_two_turns_get_the_results_of_their_own_turn(self) -> None:
        spans = Spans()
        top = spans.agent()
        first = [user("one"), says(asks("search", OSLO))]
        spans.llm(top, first[:1], says(asks("search", OSLO)))
        spans.llm(top, [*first, gives(1)], "one it is")
        second = [*first, gives(1), says("one it is"), user("two")]
        spans.llm(top, second, says(asks("search", OSLO)))
        spans.llm(top, [*second, says(asks("search", OSLO)), gives(2)], "two it is")
        assert [call.result for call in calls(spans)] == [1, 2]

    def test_call_has_a_result_of_none_if_the_content_was_not_captured(self) -> None:
        [call] = calls(self.trace(user("hi"), says(asks(id="c1")), Message("tool", (ToolResponse(None, "c1"),))))
        assert (call.result, call.has_result) == (None, True)

    def test_hundreds_of_equal_calls_keep_their_order(self) -> None:
        spans = Spans()
        agent = spans.agent()
        history = [user("hi")]
        for result in range(500):
            spans.llm(agent, history, says(asks("search", OSLO, "call_0")))
            spans.tool(agent, "search", OSLO)
            history += [says(asks("search", OSLO, "call_0")), gives(result, "call_0")]
        spans.llm(agent, history, "done")
        assert [call.result for call in calls(spans)] == list(range(500))


class TestFailureInTheText:
    @pytest.mark.parametrize(
        "result",
        [
            "An error occurred while running the tool. Please try again. Error: timeout",
            "Error: timeout\n Please fix your mistakes.",
            {"error": "Error in tool 'search': timeout"},
            "Error executing tool search: timeout",
            "Error invoking function 'search': timeout",
            "Tool execution failed: timeout",
            'Traceback (most recent call last):\n  File "a.py"\nTimeoutError',
        ],
    )
    def test_result_with_framework_error_text_is_an_error(self, result: object) -> None:
        assert error_of(result)

    @pytest.mark.parametrize(
        "result",
        [
            "The log has one line: Error in tool 'search': timeout",
            {"error": "none found", "rows": []},
            {"error": None},
            "Error code E4 means a full tank.",
            "No error in tool search.",
        ],
    )
    def test_result_that_only_mentions_errors_is_no_error(self, result: object) -> None:
        assert error_of(result) is None


def test_call_of_a_subagent_belongs_to_the_outer_agent() -> None:
    spans = Spans()
    outer = spans.tool(spans.agent(None, "desk"), "Agent", {"prompt": "Read"}, agent_name="helper")
    spans.llm(outer, [])
    spans.tool(outer, "Bash", {"command": "cat"})
    spans.tool(spans.agent(None, "desk"), "Read", agent_name="desk")
    assert [(call.name, call.agent) for call in calls(spans)] == [
        ("Agent", "desk"),
        ("Bash", "helper"),
        ("Read", "desk"),
    ]


class TestWholeConversations:
    """Calls appear only in the history of the next turn."""

    FIRST = (user("Book the 13:15."), says(asks("book", {"at": "13:15"}, "c1")), gives({"ref": "FJ-1"}, "c1"))
    SECOND = (says("Booked."), user("And the weather?"), says(asks("weather", {"port": "Larvik"}, "c2")))

    def read(self, *inputs: Sequence[Message], tools: bool = False) -> list[tuple[str, Any, int]]:
        spans = Spans()
        agent = spans.agent(input=(user("Book the 13:15."),))
        for given in inputs:
            spans.llm(agent, given, "Booked.")
            if tools and len(given) == 1:
                spans.tool(agent, "book", result={"ref": "FJ-9"})
        starts = [span.start_ns for span in spans() if span.kind is Kind.LLM]
        return [(call.name, call.result, sum(start <= call.start_ns for start in starts)) for call in calls(spans)]

    def test_call_in_the_history_belongs_to_the_previous_turn(self) -> None:
        assert self.read(self.FIRST[:1], (*self.FIRST, *self.SECOND[:2])) == [("book", {"ref": "FJ-1"}, 1)]

    def test_each_turn_gets_its_own_calls(self) -> None:
        third = (*self.FIRST, *self.SECOND, gives({"wind": 7}, "c2"), says("Windy."), user("Thanks."))
        found = self.read(self.FIRST[:1], (*self.FIRST, *self.SECOND[:2]), third)
        assert found == [("book", {"ref": "FJ-1"}, 1), ("weather", {"wind": 7}, 2)]

    def test_call_without_an_id_belongs_to_the_previous_turn(self) -> None:
        bare = (user("Book the 13:15."), says(asks("book", {"at": "13:15"})), gives({"ref": "FJ-1"}))
        assert self.read(bare[:1], (*bare, *self.SECOND[:2])) == [("book", {"ref": "FJ-1"}, 1)]

    def test_the_same_call_in_both_turns_is_two_calls(self) -> None:
        again = (*self.FIRST, says("Booked."), user("Once more."), *self.FIRST[1:], says("Booked."), user("Thanks."))
        found = self.read(self.FIRST[:1], again[:5], again)
        assert [name for name, _, _ in found] == ["book", "book"]

    def test_history_is_ignored_for_a_turn_with_tool_spans(self) -> None:
        found = self.read(self.FIRST[:1], (*self.FIRST, *self.SECOND[:2]), tools=True)
        assert [(name, result) for name, result, _ in found] == [("book", {"ref": "FJ-9"})]

    def test_calls_of_turns_in_earlier_traces_are_ignored(self) -> None:
        assert self.read((*self.FIRST, *self.SECOND[:2])) == []


def test_requests_repeated_in_a_stream_are_counted_once() -> None:
    spans = Spans()
    agent = spans.agent()
    first, second = asks(id="c1"), asks(arguments=BERGEN, id="c2")
    spans.llm(agent, [user("Compare.")], says(first, first, second, first, second))
    spans.tool(agent, "search", OSLO, result=4, tool_call_id="c1")
    spans.tool(agent, "search", BERGEN, result=6, tool_call_id="c2")
    assert shown(spans) == [("search", OSLO, 4), ("search", BERGEN, 6)]


def test_parallel_requests_that_share_an_id_are_two_calls() -> None:
    spans = Spans()
    spans.llm(spans.agent(), [user("Compare.")], says(asks(id="c1"), asks(arguments=BERGEN, id="c1")))
    assert [call.arguments for call in calls(spans)] == [OSLO, BERGEN]


def test_error_of_the_last_agent_run_inside_a_call_is_the_error_of_the_call() -> None:
    spans = Spans()
    desk = spans.agent()
    tool = spans.tool(desk, "delegate", result="finished after 3 s")
    spans.agent(tool, "first try", error="overloaded")
    helper = spans.agent(tool, "helper", error="the model does not exist")
    spans.llm(helper, error="404")
    assert [call.error for call in calls(spans)] == ["the model does not exist"]


def test_call_has_no_error_if_the_last_agent_run_inside_it_answered() -> None:
    spans = Spans()
    tool = spans.tool(spans.agent(), "delegate", result="Berth 4.")
    spans.agent(tool, "first try", error="overloaded")
    spans.agent(tool, "helper", output=(says("Berth 4."),))
    assert [call.error for call in calls(spans)] == [None]


def test_span_for_a_batch_of_requested_calls_is_not_a_call() -> None:
    spans = Spans()
    agent = spans.agent()
    spans.llm(agent, [user("Compare.")], says(asks("look", OSLO, id="c1"), asks("price", BERGEN, id="c2")))
    spans.tool(agent, "look, price", None, tool_call_id="c1,c2")
    spans.tool(agent, "search, again", OSLO, result=4, tool_call_id="c3")
    assert shown(spans) == [("look", OSLO, None), ("price", BERGEN, None), ("search, again", OSLO, 4)]


def test_span_with_arguments_as_text_matches_a_request_with_typed_arguments() -> None:
    spans = Spans()
    agent = spans.agent()
    wanted = {"room": "A1", "seats": 4, "tags": ["quiet"], "beamer": True}
    spans.llm(agent, [user("Reserve.")], says(asks("reserve", wanted), asks("reserve", {"seats": 2})))
    spans.tool(agent, "reserve", {"room": "A1", "seats": "4", "tags": '["quiet"]', "beamer": "True"}, result=1)
    spans.tool(agent, "reserve", {"seats": "3"}, result=2)
    assert shown(spans) == [("reserve", wanted, 1), ("reserve", {"seats": "3"}, 2)]
