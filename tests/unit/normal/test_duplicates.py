"""Merging of spans about one call."""

from __future__ import annotations

from typing import Any

import pytest

from pandaeval_otel.model import Captured, Kind, Message, Part, Reasoning, Span, Text, ToolRequest, Usage
from pandaeval_otel.normal.duplicates import merge_duplicates
from pandaeval_otel.normal.tool_names import requested_name, same_tool
from pandaeval_otel.normal.tree import Tree
from tests.support.builders import Spans, asks, gives, says, user


def merged(spans: Spans) -> tuple[dict[str, Span], int]:
    tree, folded = merge_duplicates(Tree(spans()))
    return {span.name: span for span in tree.spans}, folded


def kinds(found: dict[str, Span]) -> dict[str, Kind]:
    return {name: span.kind for name, span in found.items()}


class TestModelCalls:
    def test_framework_span_and_nested_client_span_are_one_call(self) -> None:
        spans = Spans()
        outer = spans.llm(spans.agent(), [user("hi")], "hello", name="outer", usage=Usage(10, 2))
        spans.llm(spans.add(Kind.STEP, outer), name="inner", usage=Usage(12, 2), response_id="r1", response_model="m")
        found, folded = merged(spans)
        assert folded == 1
        assert found["outer"].response_id == "r1"
        assert found["outer"].response_model == "m"
        assert found["outer"].usage == Usage(12, 2)
        assert found["outer"].output == (says("hello"),)
        assert found["inner"].kind is Kind.STEP
        assert found["inner"].usage is None

    def test_siblings_with_the_same_response_id_are_one_call(self) -> None:
        spans = Spans()
        agent = spans.agent()
        spans.llm(agent, [user("hi")], "hello", name="instrumentation", response_id="r1")
        spans.llm(agent, name="client", response_id="r1", usage=Usage(5, 1))
        found, folded = merged(spans)
        assert folded == 1
        assert found["instrumentation"].usage == Usage(5, 1)
        assert found["client"].kind is Kind.STEP

    def test_overlapping_siblings_of_two_instrumentations_are_one_call(self) -> None:
        spans = Spans()
        agent, whole = spans.agent(), {"usage": Usage(5, 1), "end_ns": 9_000_000}
        spans.llm(agent, [user("hi")], "hello", name="framework", scope="a", start_ns=2_000_000, **whole)
        spans.llm(agent, [user("hi", "more")], "hello", name="client", scope="b", start_ns=3_000_000, **whole)
        found, folded = merged(spans)
        assert (folded, found["client"].kind) == (1, Kind.STEP)
        assert found["framework"].input == (user("hi", "more"),)

    @pytest.mark.parametrize("other", [{"scope": "a"}, {"usage": Usage(6, 1)}, {"end_ns": 10_000_000}])
    def test_siblings_of_one_instrumentation_or_with_other_usage_or_end_stay_separate(
        self, other: dict[str, Any]
    ) -> None:
        spans = Spans()
        agent, whole = spans.agent(), {"usage": Usage(5, 1), "end_ns": 9_000_000, "start_ns": 2_000_000}
        spans.llm(agent, [user("hi")], "hello", scope="a", **whole)
        spans.llm(agent, [user("hi")], "hello", **{"scope": "b", **whole, "start_ns": 3_000_000, **other})
        assert merged(spans)[1] == 0

    def test_three_nested_spans_of_one_call_are_merged(self) -> None:
        spans = Spans()
        spans.llm(spans.llm(spans.llm(name="a"), name="b"), [user("hi")], "hello", name="c")
        found, folded = merged(spans)
        assert folded == 2
        assert found["a"].output == (says("hello"),)

    def test_outer_span_is_kept_even_if_the_inner_span_starts_earlier(self) -> None:
        spans = Spans()
        outer = spans.llm(name="outer", start_ns=100, end_ns=200)
        spans.llm(outer, [user("hi")], "hello", name="inner", start_ns=90, end_ns=150)
        found, folded = merged(spans)
        assert folded == 1
        assert kinds(found) == {"outer": Kind.LLM, "inner": Kind.STEP}
        assert found["outer"].output == (says("hello"),)

    def test_nested_calls_with_different_response_ids_stay_separate(self) -> None:
        spans = Spans()
        spans.llm(spans.llm(name="outer", response_id="r1"), name="inner", response_id="r2")
        assert merged(spans)[1] == 0

    def test_model_call_below_a_tool_call_is_a_separate_call(self) -> None:
        spans = Spans()
        spans.llm(spans.tool(spans.llm(name="outer")), name="inner")
        assert merged(spans)[1] == 0

    def test_model_span_with_two_nested_model_calls_becomes_a_workflow(self) -> None:
        spans = Spans()
        outer = spans.llm(None, [user("hi")], "done", name="outer")
        spans.llm(outer, name="first", response_id="r1")
        spans.llm(outer, name="second", response_id="r2")
        found, folded = merged(spans)
        assert folded == 0
        assert kinds(found) == {"outer": Kind.WORKFLOW, "first": Kind.LLM, "second": Kind.LLM}
        assert found["outer"].output == (says("done"),)

    def test_workflow_drops_content_copied_from_one_of_its_calls(self) -> None:
        spans = Spans()
        outer = spans.llm(None, [user("hi")], "not yet", name="outer", response_id="r1")
        spans.llm(outer, [user("hi")], "not yet", name="first", response_id="r1")
        spans.llm(outer, [user("hi")], "done", name="second", response_id="r2")
        found, _ = merged(spans)
        assert kinds(found) == {"outer": Kind.WORKFLOW, "first": Kind.LLM, "second": Kind.LLM}
        assert (found["outer"].input, found["outer"].output, found["outer"].response_id) == (None, None, "")

    @pytest.mark.parametrize(
        ("text", "parts"),
        [
            ("hello", (Reasoning("a greeting"), Text("hello"))),
            ("hello", (Text("hello"), ToolRequest("greet", {}, "c1"))),
        ],
    )
    def test_more_complete_version_of_an_answer_is_kept(self, text: str, parts: tuple[Part, ...]) -> None:
        spans = Spans()
        outer = spans.llm(None, [user("hi")], text, name="outer", response_id="r1")
        spans.llm(outer, [user("hi")], Message("assistant", parts), name="inner", response_id="r1")
        found, _ = merged(spans)
        assert found["outer"].output == (Message("assistant", parts),)

    @pytest.mark.parametrize(("later", "error"), [(None, "no wind"), (Kind.TOOL, None)])
    def test_nested_error_counts_only_in_the_last_attempt(self, later: Kind | None, error: str | None) -> None:
        spans = Spans()
        framework = spans.tool(None, "look", start_ns=1, end_ns=100)
        client = spans.tool(framework, "look", start_ns=2, end_ns=50)
        spans.tool(client, "look", start_ns=3, end_ns=40, error="no wind")
        if later is not None:
            spans.add(later, framework, tool_name="look", start_ns=60, end_ns=90)
        tree, _ = merge_duplicates(Tree(spans()))
        assert tree.by_id[framework.span_id].error == error

    def test_thousands_of_nested_spans_of_one_call_are_merged(self) -> None:
        spans = Spans()
        outer = inner = spans.tool(None, "look", start_ns=0, end_ns=10_000)
        for depth in range(1, 1_500):
            inner = spans.tool(inner, "look", start_ns=depth, end_ns=10_000 - depth)
        spans.tool(inner, "look", start_ns=1_500, end_ns=2_000, error="no wind")
        tree, folded = merge_duplicates(Tree(spans()))
        assert folded == 1_500
        assert tree.by_id[outer.span_id].error == "no wind"

    def test_different_inner_answer_does_not_replace_the_outer_answer(self) -> None:
        spans = Spans()
        outer = spans.llm(None, [user("hi")], "hello", name="outer", response_id="r1")
        other = Message("assistant", (Reasoning("hm"), Text("good day")))
        spans.llm(outer, [user("hi")], other, name="inner", response_id="r1")
        assert merged(spans)[0]["outer"].output == (says("hello"),)

    def test_retried_call_is_one_call_without_the_first_error(self) -> None:
        spans = Spans()
        outer = spans.llm(name="outer")
        spans.llm(outer, name="first", error="429")
        spans.llm(outer, name="second", response_id="r1")
        found, folded = merged(spans)
        assert folded == 2
        assert found["outer"].error is None
        assert found["outer"].response_id == "r1"

    def test_error_of_only_the_inner_span_is_kept(self) -> None:
        spans = Spans()
        spans.llm(spans.llm(name="outer"), name="inner", error="400")
        assert merged(spans)[0]["outer"].error == "400"

    def test_session_ids_and_dialects_of_merged_spans_are_combined(self) -> None:
        spans = Spans()
        outer = spans.llm(name="outer", session_ids=((3, "s"),), dialects=("a",))
        spans.llm(outer, name="inner", session_ids=((2, "c"),), dialects=("b", "a"))
        found, _ = merged(spans)
        assert found["outer"].session_ids == ((2, "c"), (3, "s"))
        assert found["outer"].dialects == ("a", "b")


class TestToolCalls:
    def test_execution_with_nested_mcp_client_and_server_is_one_call(self) -> None:
        spans = Spans()
        outer = spans.tool(name="weather", arguments={"q": 1})
        server = spans.tool(spans.tool(outer, "weather"), "weather", result={"t": 4})
        found, folded = merged(spans)
        assert folded == 2
        assert found[outer.name].result is not None
        assert found[server.name].kind is Kind.STEP

    def test_nested_calls_with_different_ids_stay_separate(self) -> None:
        spans = Spans()
        spans.tool(spans.tool(tool_call_id="c1"), tool_call_id="c2")
        assert merged(spans)[1] == 0

    def test_tool_that_calls_itself_with_other_arguments_is_two_calls(self) -> None:
        spans = Spans()
        spans.tool(spans.tool(arguments={"n": 2}), arguments={"n": 1})
        assert merged(spans)[1] == 0

    def test_nested_calls_match_if_one_wraps_its_arguments_in_kwargs(self) -> None:
        spans = Spans()
        spans.tool(spans.tool(arguments={"kwargs": {"n": 2}}), arguments={"n": 2})
        assert merged(spans)[1] == 1

    def test_sibling_calls_without_content_stay_separate_despite_a_shared_id(self) -> None:
        spans = Spans()
        agent = spans.agent()
        spans.tool(agent, tool_call_id="c1")
        spans.tool(agent, tool_call_id="c1")
        assert merged(spans)[1] == 0

    def test_calls_repeated_by_a_replay_are_counted_once(self) -> None:
        spans = Spans()
        flow = spans.add(Kind.WORKFLOW)
        for _ in range(3):
            run = spans.agent(flow)
            spans.llm(run, [user("hi")], says(asks(id="c1")), response_id="r1")
            spans.tool(run, arguments={"n": 1}, result={"t": 4}, tool_call_id="c1")
        found, folded = merged(spans)
        assert folded == 4
        assert sum(span.kind is Kind.TOOL for span in found.values()) == 1

    @pytest.mark.parametrize(
        "other", [{"arguments": {"n": 2}}, {"result": {"t": 5}}, {"tool_call_id": "c2"}, {"name": "other"}]
    )
    def test_calls_that_differ_in_name_id_arguments_or_result_stay_separate(self, other: dict[str, Any]) -> None:
        spans = Spans()
        call: dict[str, Any] = {"name": "search", "arguments": {"n": 1}, "result": {"t": 4}, "tool_call_id": "c1"}
        spans.tool(spans.agent(), **call)
        spans.tool(spans.agent(), **{**call, **other})
        assert merged(spans)[1] == 0

    def test_repeated_request_with_a_reused_id_is_a_second_call(self) -> None:
        spans = Spans()
        agent = spans.agent()
        for given in ([user("hi")], [user("hi"), says(asks(id="c1")), gives({"t": 4}, "c1")]):
            spans.llm(agent, given, says(asks(id="c1")))
            spans.tool(agent, arguments={"n": 1}, result={"t": 4}, tool_call_id="c1")
        assert merged(spans)[1] == 0


class TestAgents:
    def test_nested_spans_of_the_same_agent_are_one_run(self) -> None:
        spans = Spans()
        outer = spans.agent(name="desk")
        twin = spans.agent(outer, name="desk", input=(user("hi"),))
        found, folded = merged(spans)
        assert folded == 1
        assert found[outer.name].input == (user("hi"),)
        assert found[twin.name].kind is Kind.STEP

    @pytest.mark.parametrize("name", ["helper", ""])
    def test_nested_agents_with_different_or_no_names_stay_separate(self, name: str) -> None:
        spans = Spans()
        spans.agent(spans.agent(name=name and "desk"), name=name)
        assert merged(spans)[1] == 0

    def test_agent_that_calls_itself_through_a_tool_is_two_runs(self) -> None:
        spans = Spans()
        spans.agent(spans.tool(spans.agent(name="desk")), name="desk")
        assert merged(spans)[1] == 0


def test_trace_without_duplicates_is_unchanged() -> None:
    spans = Spans()
    spans.llm(spans.agent(), response_id="r1")
    tree = Tree(spans())
    assert merge_duplicates(tree) == (tree, 0)


class TestNames:
    @pytest.mark.parametrize(
        "run", ["book", "Ferry-book", "ferry_app.book", "mcp__ferry__book", "book.tool", "run book"]
    )
    def test_tool_names_match_despite_prefixes_and_suffixes(self, run: str) -> None:
        assert requested_name(run, {"book", "other"}) == "book"
        assert same_tool(run, "book")
        assert same_tool("book", run)

    @pytest.mark.parametrize("run", ["rebook", "book_ferry", "booking", ""])
    def test_similar_names_of_other_tools_do_not_match(self, run: str) -> None:
        assert requested_name(run, {"book"}) == run
        assert not same_tool(run, "book")


def test_sequential_calls_with_one_response_id_but_different_answers_stay_separate() -> None:
    spans = Spans()
    agent = spans.agent()
    spans.llm(agent, said="I look.", response_id="r")
    spans.llm(agent, said="There are none.", response_id="r")
    again = spans.llm(agent, said="There are none.", response_id="r2")
    spans.llm(agent, said=None, response_id="r2", start_ns=again.start_ns, end_ns=again.end_ns)
    tree, folded = merge_duplicates(Tree(spans()))
    assert [span.response_id for span in tree.spans if span.kind is Kind.LLM] == ["r", "r", "r2"]
    assert folded == 1


@pytest.mark.parametrize(("arguments", "folded"), [({"pr": 13}, 1), ({"pr": 14}, 0)])
def test_span_resent_under_another_id_is_merged_if_the_arguments_are_equal(
    arguments: dict[str, int], folded: int
) -> None:
    spans = Spans()
    agent = spans.agent()
    at: dict[str, Any] = {"name": "run", "tool_name": "get_diff", "start_ns": 2_000_000, "end_ns": 3_000_000}
    spans.add(Kind.TOOL, agent, arguments=Captured({"pr": 13}), **at)
    spans.add(Kind.TOOL, agent, arguments=Captured(arguments), **at)
    assert merge_duplicates(Tree(spans()))[1] == folded


def test_agent_spans_of_single_steps_are_merged_into_the_outer_run() -> None:
    spans = Spans()
    outer = spans.agent(name="desk")
    first = spans.agent(outer, input=(user("Is berth 4 free?"),), output=(says(asks()),))
    spans.llm(first, [user("Is berth 4 free?")], says(asks()))
    spans.tool(outer, result="free")
    last = spans.agent(outer, input=(user("Is berth 4 free?"), gives("free")), output=(says("Yes."),))
    spans.llm(last, [user("Is berth 4 free?"), gives("free")], "Yes.")
    tree, folded = merge_duplicates(Tree(spans()))
    assert (folded, tree.roots[0].output) == (2, (says("Yes."),))
