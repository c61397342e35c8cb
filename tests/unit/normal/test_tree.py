"""Trees with missing, late, skewed or circular parents."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pandaeval_otel.model import Kind, Span
from pandaeval_otel.normal.tree import Tree
from tests.support.builders import MS, Spans


def names(spans: object) -> list[str]:
    return [span.name for span in spans]  # type: ignore[attr-defined]


def test_spans_are_ordered_by_start_and_outer_spans_come_first() -> None:
    spans = Spans()
    root = spans.agent(name="root", start_ns=5, end_ns=100)
    inner = spans.llm(root, start_ns=5, end_ns=7)
    late = spans.llm(root, start_ns=9, end_ns=10)
    tree = Tree([late, inner, root])
    assert tree.spans == (root, inner, late)
    assert [tree.depth(span) for span in tree.spans] == [0, 1, 1]


def test_span_that_starts_before_its_parent_is_still_its_child() -> None:
    spans = Spans()
    root = spans.agent(start_ns=100 * MS, end_ns=200 * MS)
    early = spans.tool(root, start_ns=99 * MS, end_ns=120 * MS)
    tree = Tree(spans())
    assert tree.spans == (early, root)
    assert tree.parent(early) is root
    assert tree.below(root) == [early]
    assert tree.roots == (root,)


def test_span_with_a_missing_parent_is_a_root() -> None:
    spans = Spans()
    orphan = replace(spans.llm(), parent_id="f" * 16)
    tree = Tree([orphan])
    assert tree.parent(orphan) is None
    assert tree.roots == (orphan,)


def test_span_above_skips_step_and_other_spans() -> None:
    spans = Spans()
    root = spans.agent(name="desk")
    step = spans.add(Kind.STEP, spans.add(Kind.OTHER, root))
    tool = spans.tool(step)
    model = spans.llm(tool)
    tree = Tree(spans())
    assert tree.above(tool) is tree.by_id[root.span_id]
    assert tree.above(model) is tree.by_id[tool.span_id]
    assert [tree.asides(span) for span in (root, step, tool, model)] == [0, 0, 0, 1]
    assert tree.agent(model) == "desk"


def test_span_belongs_to_the_nearest_agent() -> None:
    spans = Spans()
    inner = spans.agent(spans.tool(spans.agent(name="outer")), name="inner")
    model = spans.llm(inner)
    assert Tree(spans()).agent(model) == "inner"


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
def test_a_parent_loop_is_cut_above_its_earliest_span(order: tuple[int, ...]) -> None:
    spans = Spans()
    first, second, third = spans.agent(name="1"), spans.agent(name="2"), spans.agent(name="3")
    looped = [
        replace(first, parent_id=third.span_id),
        replace(second, parent_id=first.span_id),
        replace(third, parent_id=second.span_id),
    ]
    tree = Tree([looped[at] for at in order])
    assert tree.roots == (looped[0],)
    assert tree.parent(looped[0]) is None
    assert [tree.depth(span) for span in looped] == [0, 1, 2]
    assert tree.below(looped[0]) == looped[1:]
    assert tree.children(looped[2]) == []


def test_span_that_is_its_own_parent_is_a_root() -> None:
    span = replace(Spans().agent(), parent_id="0000000000000001")
    tree = Tree([span])
    assert tree.roots == (span,)
    assert tree.below(span) == []


def test_span_below_a_parent_loop_has_a_depth() -> None:
    spans = Spans()
    one, two = spans.agent(name="one"), spans.agent(name="two")
    leaf = spans.llm(two, start_ns=1)
    tree = Tree([leaf, replace(one, parent_id=two.span_id), replace(two, parent_id=one.span_id)])
    assert tree.depth(leaf) == 2


def test_parent_loop_entered_from_below_is_cut_above_its_earliest_span() -> None:
    spans = Spans()
    one, two, three = (spans.agent(name=name, start_ns=at) for name, at in (("one", 3), ("two", 2), ("three", 1)))
    leaf = spans.llm(one, start_ns=0)
    looped = [replace(one, parent_id=two.span_id), replace(two, parent_id=three.span_id)]
    looped.append(replace(three, parent_id=one.span_id))
    tree = Tree([leaf, *looped])
    assert tree.parent(looped[2]) is None
    assert [tree.depth(span) for span in (*looped[::-1], leaf)] == [0, 1, 2, 3]


def test_thousands_of_nested_spans_need_no_recursion() -> None:
    spans = Spans()
    at: Span | None = None
    for _ in range(20_000):
        at = spans.add(Kind.STEP, at, end_ns=0)
    assert at is not None
    tree = Tree(spans())
    assert tree.depth(at) == 19_999
    assert len(tree.below(tree.spans[0])) == 19_999


class TestRoots:
    def test_outermost_agent_below_a_server_span_is_the_root(self) -> None:
        spans = Spans()
        agent = spans.agent(spans.add(Kind.OTHER, name="POST /chat"))
        spans.agent(agent, name="helper")
        assert names(Tree(spans()).roots) == [agent.name]

    def test_sibling_agents_are_all_roots(self) -> None:
        spans = Spans()
        top = spans.add(Kind.OTHER)
        found = [spans.agent(top, name=name) for name in ("a", "b")]
        assert names(Tree(spans()).roots) == names(found)

    def test_agent_called_by_a_tool_is_no_root_beside_another_agent(self) -> None:
        spans = Spans()
        desk = spans.agent(name="desk")
        top = spans.add(Kind.OTHER)
        spans.agent(spans.tool(top), name="helper")
        assert names(Tree(spans()).roots) == [desk.name]

    def test_agent_in_a_tool_is_no_root_beside_model_calls(self) -> None:
        spans = Spans()
        top = spans.add(Kind.OTHER)
        asking = spans.llm(top)
        tool = spans.tool(top)
        spans.agent(tool, name="helper")
        answering = spans.llm(top)
        assert names(Tree(spans()).roots) == names([asking, tool, answering])

    def test_agent_in_a_tool_is_the_root_if_nothing_else_ran(self) -> None:
        spans = Spans()
        helper = spans.agent(spans.tool(name="tools/call"), name="helper")
        assert names(Tree(spans()).roots) == [helper.name]

    def test_topmost_model_call_is_the_root_if_there_is_no_agent(self) -> None:
        spans = Spans()
        top = spans.add(Kind.OTHER)
        model = spans.llm(top)
        spans.add(Kind.STEP, top)
        assert names(Tree(spans()).roots) == [model.name]

    def test_trace_with_only_step_and_other_spans_has_no_root(self) -> None:
        spans = Spans()
        spans.add(Kind.STEP, spans.add(Kind.OTHER))
        assert Tree(spans()).roots == ()


def test_descendants_of_a_span_are_found_at_any_depth() -> None:
    spans = Spans()
    top = spans.agent()
    first, second = spans.tool(top), spans.tool(top)
    inner = spans.add(Kind.STEP, first)
    tree = Tree(spans())
    asked = {(a.name, b.name) for a in tree.spans for b in tree.spans if a in tree.below(b)}
    assert asked == {(each.name, top.name) for each in (first, second, inner)} | {(inner.name, first.name)}
