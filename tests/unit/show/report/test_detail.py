"""A trace as a waterfall."""

from __future__ import annotations

from dataclasses import replace

from pandaeval_collector.show.report.detail import MAX_SPANS, detail, outline
from pandaeval_otel.model import Captured, Kind, OtherPart, Trace, Turn, Usage
from support.builders import Spans, asks, gives, says, user


def _trace(spans: Spans, **fields: object) -> Trace:
    made = spans()
    return Trace(made[0].trace_id, tuple(made), made[0].span_id, **fields)  # type: ignore[arg-type]


def test_parents_come_before_children_and_times_are_relative() -> None:
    spans = Spans()
    root = spans.agent()
    inner = spans.agent(root, name="inner")
    spans.tool(inner, arguments={"q": 1}, result=None)
    spans.llm(root, [user("hi")], "hello", usage=Usage(3, 4), response_model="small-1")
    rows = detail(_trace(spans), 10_000)["spans"]
    assert [(row["kind"], row["up"], row["depth"]) for row in rows] == [
        ("agent", -1, 0),
        ("agent", 0, 1),
        ("tool", 1, 2),
        ("llm", 0, 1),
    ]
    assert [row["at"] for row in rows] == [0, 1000, 2000, 3000]
    assert rows[3]["tokens"] == [3, 4]
    assert rows[3]["model"] == "small-1"


def test_missing_content_differs_from_a_null_value() -> None:
    spans = Spans()
    root = spans.agent()
    spans.tool(root, result=None)
    found = detail(_trace(spans), 10_000)
    row = found["spans"][1]
    assert row["args"] is None
    assert found["texts"][row["result"]] == "null"


def test_messages_show_their_role_and_requested_tools() -> None:
    spans = Spans()
    root = spans.agent()
    hidden = says(OtherPart("not_captured"))
    spans.llm(root, [user("where?"), says(asks("search")), gives({"found": 2}), hidden], says("There."))
    found = detail(_trace(spans), 10_000)
    row = found["spans"][1]
    told = [(who, found["texts"][at]) for who, at in row["in"]]
    assert [who for who, _ in told] == ["user", "asks for search", "result", "assistant"]
    assert told[3][1] == "[not captured]"
    assert [(who, found["texts"][at]) for who, at in row["out"]] == [("assistant", "There.")]


def test_a_long_history_keeps_its_last_messages_and_counts_the_rest() -> None:
    spans = Spans()
    spans.llm(None, [user(f"message {number}") for number in range(30)], "ok")
    found = detail(_trace(spans), 10_000)
    row = found["spans"][0]
    assert len(row["in"]) == 8
    assert row["in_more"] == 22
    assert found["texts"][row["in"][-1][1]] == "message 29"


def test_a_large_trace_keeps_agents_tools_and_errors_with_their_ancestors() -> None:
    spans = Spans()
    root = spans.agent()
    steps = [spans.add(Kind.STEP, root) for _ in range(2 * MAX_SPANS)]
    tool = spans.tool(steps[-1], arguments={})
    failed = spans.add(Kind.STEP, steps[-2], error="boom")
    found = detail(_trace(spans), 100_000)
    kept = {row["id"] for row in found["spans"]}
    assert {root.span_id, tool.span_id, failed.span_id, steps[-1].span_id, steps[-2].span_id} <= kept
    assert len(kept) + found["left_out"] == len(spans())
    assert MAX_SPANS <= len(kept) <= MAX_SPANS + 2
    assert all(row["up"] < at for at, row in enumerate(found["spans"]))


def test_spans_with_cyclic_parents_are_shown_as_roots() -> None:
    spans = Spans()
    root, one, two = spans.agent(), spans.llm(), spans.llm()
    looped = (root, replace(one, parent_id=two.span_id), replace(two, parent_id=one.span_id))
    rows = detail(Trace(root.trace_id, looped, root.span_id), 1000)["spans"]
    assert [row["up"] for row in rows] == [-1, -1, -1]


def test_values_that_json_cannot_hold_are_shown_as_text() -> None:
    spans = Spans()
    spans.add(Kind.TOOL, tool_name="t\u202e", arguments=Captured({"big": 1 << 80}), result=Captured("\ud800"))
    found = detail(_trace(spans), 1000)
    row = found["spans"][0]
    assert str(1 << 80) in found["texts"][row["args"]]
    assert found["texts"][row["result"]] == r"\ud800"
    assert row["tool"] == r"t\u202e"


def test_an_outline_has_turns_and_steps_without_step_content() -> None:
    spans = Spans()
    root = spans.agent()
    spans.tool(root, arguments={"q": "secret"}, result="long")
    spans.llm(root, [user("where?")], "There.", usage=Usage(3, 4))
    found = outline(_trace(spans, turns=(Turn("where?", "There.", root),)), 10_000)
    assert found["texts"] == ["where?", "There."]
    assert found["turns"] == [[0, 1, root]]
    assert [(row["kind"], row["up"], row.get("tool"), row.get("tokens")) for row in found["spans"]] == [
        ("agent", -1, None, None),
        ("tool", 0, "search", None),
        ("llm", 0, None, [3, 4]),
    ]
    assert all(not {"args", "result", "in", "out"} & row.keys() for row in found["spans"])
