"""MCP calls with any tool prefix and span place."""

from __future__ import annotations

import pytest

from pandaeval_otel.normal.duplicates import merge_duplicates
from pandaeval_otel.normal.tool_calls import tool_calls
from pandaeval_otel.normal.tool_names import same_served
from pandaeval_otel.normal.tree import Tree
from tests.support.builders import MS, Spans, asks, gives, says, user

ARGUMENTS, RESULT = {"id": 4}, {"name": "lamp"}
MCP = {"dialects": ("mcp", "gen_ai")}
SPELLINGS = ["crm_get_item", "crm-get_item", "crm.get_item", "crm/get_item", "crm__get_item", "mcp__crm__get_item"]


def called(spans: Spans) -> list[tuple[str, object, object]]:
    tree, _ = merge_duplicates(Tree(spans()))
    return [(call.name, call.arguments, call.result) for call in tool_calls(tree)]


@pytest.mark.parametrize("name", SPELLINGS)
class TestOneCall:
    def test_inside_of_the_tools_span(self, name: str) -> None:
        spans = Spans()
        outer = spans.tool(spans.agent(), name, ARGUMENTS, result=RESULT, tool_call_id="c1")
        spans.tool(outer, "get_item", result=RESULT, **MCP)
        assert called(spans) == [(name, ARGUMENTS, RESULT)]

    def test_client_and_server(self, name: str) -> None:
        spans = Spans()
        outer = spans.tool(spans.agent(), name, ARGUMENTS, tool_call_id="c1")
        client = spans.tool(outer, "get_item", ARGUMENTS, **MCP)
        spans.tool(client, "get_item", result=RESULT, **MCP)
        assert called(spans) == [(name, ARGUMENTS, RESULT)]

    def test_inside_without_attributes_of_mcp(self, name: str) -> None:
        spans = Spans()
        outer = spans.tool(spans.agent(), name, ARGUMENTS)
        spans.tool(outer, "get_item", ARGUMENTS, result=RESULT)
        assert called(spans) == [(name, ARGUMENTS, RESULT)]

    def test_beside_the_tools_span(self, name: str) -> None:
        spans = Spans()
        agent = spans.agent()
        spans.tool(agent, name, ARGUMENTS, result=RESULT, end_ns=9 * MS)
        spans.tool(agent, "get_item", ARGUMENTS, **MCP)
        assert called(spans) == [(name, ARGUMENTS, RESULT)]

    def test_asked_by_the_model_without_a_tools_span(self, name: str) -> None:
        spans = Spans()
        agent = spans.agent()
        spans.llm(agent, [user("Which lamp?")], says(asks(name, ARGUMENTS, id="c1")))
        spans.tool(agent, "get_item", ARGUMENTS, result=RESULT, **MCP)
        assert called(spans) == [(name, ARGUMENTS, RESULT)]


def test_a_server_failure_fails_the_one_call() -> None:
    spans = Spans()
    outer = spans.tool(spans.agent(), "crm_get_item", ARGUMENTS, result={"content": [], "isError": True})
    spans.tool(outer, "get_item", error="tool_error", **MCP)
    tree, _ = merge_duplicates(Tree(spans()))
    assert [call.error for call in tool_calls(tree)] == ["tool_error"]


def test_two_tools_stay_two() -> None:
    spans = Spans()
    outer = spans.tool(spans.agent(), "web_search", {"query": "lamp"})
    spans.tool(outer, "search", {"index": "lamps", "query": "lamp"})
    assert len(called(spans)) == 2


def test_two_calls_side_by_side_stay_two() -> None:
    spans = Spans()
    agent = spans.agent()
    spans.tool(agent, "crm_get_item", {"id": 4}, end_ns=9 * MS)
    spans.tool(agent, "get_item", {"id": 5}, **MCP)
    assert len(called(spans)) == 2


@pytest.mark.parametrize(
    "name", ["get_item@crm", "get_item_mcp_crm", "mcp.crm.get_item", "crm::get_item", "CRM_get_item"]
)
def test_the_name_of_the_server_before_or_behind_the_tool(name: str) -> None:
    assert same_served(name, "get_item")


@pytest.mark.parametrize(
    ("one", "other"),
    [("item", "get_items"), ("getitem", "crm_get_item"), ("", "crm"), ("get_item", "get_item_details")],
)
def test_other_names(one: str, other: str) -> None:
    assert not same_served(one, other)


class TestResultsWithoutIds:
    """Results match calls by position."""

    def asked(self, *rounds: list[object], names: tuple[str, ...] = ("", "", "")) -> list[object]:
        spans = Spans()
        agent = spans.agent()
        for at, results in enumerate(rounds):
            given = [user("Go"), *[gives(result, name=names[at]) for at, result in enumerate(results)]]
            said = says(asks(("a", "b", "c")[at], {"n": at})) if at < len(rounds) - 1 else says("Done.")
            spans.llm(agent, given, said)
        return [call.result for call in tool_calls(Tree(spans()))]

    def test_all_results_repeated(self) -> None:
        assert self.asked([], ["one"], ["one", "two"], ["one", "two", "three"]) == ["one", "two", "three"]

    def test_only_the_new_result(self) -> None:
        assert self.asked([], ["one"], ["two"], ["three"]) == ["one", "two", "three"]

    def test_only_the_last_input_has_any(self) -> None:
        assert self.asked([], [], [], ["one", "two", "three"]) == ["one", "two", "three"]

    def test_the_oldest_was_cut_off(self) -> None:
        assert self.asked([], [], [], ["two", "three"]) == [None, "two", "three"]

    def test_by_name(self) -> None:
        assert self.asked([], [], [], ["one", "three"], names=("a", "c")) == ["one", None, "three"]
