"""MCP calls are counted once, for any tool prefix and position of the span."""

from __future__ import annotations

import pytest

from pandaeval_otel.normal.duplicates import merge_duplicates
from pandaeval_otel.normal.tool_calls import tool_calls
from pandaeval_otel.normal.tool_names import same_mcp_tool
from pandaeval_otel.normal.tree import Tree
from tests.support.builders import MS, Spans, asks, gives, says, user

ARGUMENTS, RESULT = {"id": 4}, {"name": "lamp"}
MCP = {"dialects": ("mcp", "gen_ai")}
SPELLINGS = ["crm_get_item", "crm-get_item", "crm.get_item", "crm/get_item", "crm__get_item", "mcp__crm__get_item"]


def called(spans: Spans) -> list[tuple[str, object, object]]:
    tree, _ = merge_duplicates(Tree(spans()))
    return [(call.name, call.arguments, call.result) for call in tool_calls(tree)]


@pytest.mark.parametrize("name", SPELLINGS)
class TestMcpCallIsCountedOnce:
    def test_with_its_span_inside_the_tool_span(self, name: str) -> None:
        spans = Spans()
        outer = spans.tool(spans.agent(), name, ARGUMENTS, result=RESULT, tool_call_id="c1")
        spans.tool(outer, "get_item", result=RESULT, **MCP)
        assert called(spans) == [(name, ARGUMENTS, RESULT)]

    def test_with_nested_client_and_server_spans(self, name: str) -> None:
        spans = Spans()
        outer = spans.tool(spans.agent(), name, ARGUMENTS, tool_call_id="c1")
        client = spans.tool(outer, "get_item", ARGUMENTS, **MCP)
        spans.tool(client, "get_item", result=RESULT, **MCP)
        assert called(spans) == [(name, ARGUMENTS, RESULT)]

    def test_with_an_inner_span_without_mcp_attributes(self, name: str) -> None:
        spans = Spans()
        outer = spans.tool(spans.agent(), name, ARGUMENTS)
        spans.tool(outer, "get_item", ARGUMENTS, result=RESULT)
        assert called(spans) == [(name, ARGUMENTS, RESULT)]

    def test_with_its_span_beside_the_tool_span(self, name: str) -> None:
        spans = Spans()
        agent = spans.agent()
        spans.tool(agent, name, ARGUMENTS, result=RESULT, end_ns=9 * MS)
        spans.tool(agent, "get_item", ARGUMENTS, **MCP)
        assert called(spans) == [(name, ARGUMENTS, RESULT)]

    def test_with_a_model_request_and_no_tool_span(self, name: str) -> None:
        spans = Spans()
        agent = spans.agent()
        spans.llm(agent, [user("Which lamp?")], says(asks(name, ARGUMENTS, id="c1")))
        spans.tool(agent, "get_item", ARGUMENTS, result=RESULT, **MCP)
        assert called(spans) == [(name, ARGUMENTS, RESULT)]


def test_error_of_the_mcp_server_fails_the_merged_call() -> None:
    spans = Spans()
    outer = spans.tool(spans.agent(), "crm_get_item", ARGUMENTS, result={"content": [], "isError": True})
    spans.tool(outer, "get_item", error="tool_error", **MCP)
    tree, _ = merge_duplicates(Tree(spans()))
    assert [call.error for call in tool_calls(tree)] == ["tool_error"]


def test_nested_calls_of_different_tools_stay_separate() -> None:
    spans = Spans()
    outer = spans.tool(spans.agent(), "web_search", {"query": "lamp"})
    spans.tool(outer, "search", {"index": "lamps", "query": "lamp"})
    assert len(called(spans)) == 2


def test_sibling_calls_with_different_arguments_stay_separate() -> None:
    spans = Spans()
    agent = spans.agent()
    spans.tool(agent, "crm_get_item", {"id": 4}, end_ns=9 * MS)
    spans.tool(agent, "get_item", {"id": 5}, **MCP)
    assert len(called(spans)) == 2


@pytest.mark.parametrize(
    "name", ["get_item@crm", "get_item_mcp_crm", "mcp.crm.get_item", "crm::get_item", "CRM_get_item"]
)
def test_tool_name_matches_with_the_server_name_before_or_after_it(name: str) -> None:
    assert same_mcp_tool(name, "get_item")


@pytest.mark.parametrize(
    ("one", "other"),
    [("item", "get_items"), ("getitem", "crm_get_item"), ("", "crm"), ("get_item", "get_item_details")],
)
def test_names_of_different_tools_do_not_match(one: str, other: str) -> None:
    assert not same_mcp_tool(one, other)


class TestResultsWithoutIds:
    """Results match calls by position."""

    def asked(self, *rounds: list[object], names: tuple[str, ...] = ("", "", "")) -> list[object]:
        spans = Spans()
        agent = spans.agent()
        for at, results in enumerate(rounds):
            given = [user("Go"), *[gives(result, name=names[at]) for at, result in enumerate(results)]]
            output = says(asks(("a", "b", "c")[at], {"n": at})) if at < len(rounds) - 1 else says("Done.")
            spans.llm(agent, given, output)
        return [call.result for call in tool_calls(Tree(spans()))]

    def test_results_match_if_each_input_repeats_earlier_results(self) -> None:
        assert self.asked([], ["one"], ["one", "two"], ["one", "two", "three"]) == ["one", "two", "three"]

    def test_results_match_if_each_input_has_only_the_new_result(self) -> None:
        assert self.asked([], ["one"], ["two"], ["three"]) == ["one", "two", "three"]

    def test_results_match_if_only_the_last_input_has_results(self) -> None:
        assert self.asked([], [], [], ["one", "two", "three"]) == ["one", "two", "three"]

    def test_first_call_has_no_result_if_the_oldest_result_was_cut_off(self) -> None:
        assert self.asked([], [], [], ["two", "three"]) == [None, "two", "three"]

    def test_results_match_by_tool_name(self) -> None:
        assert self.asked([], [], [], ["one", "three"], names=("a", "c")) == ["one", None, "three"]
