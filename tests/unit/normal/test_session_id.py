"""The session and user of a trace."""

from __future__ import annotations

from pandaeval_otel.model import Kind
from pandaeval_otel.normal.session import MAX_ID_CHARS, session_id, user_id
from pandaeval_otel.normal.tree import Tree
from tests.support.builders import Spans


def test_session_and_user_are_none_if_no_span_names_them() -> None:
    spans = Spans()
    spans.llm(spans.agent())
    assert session_id(Tree(spans())) is None
    assert user_id(Tree(spans())) is None


def test_session_id_with_the_best_rank_wins_on_any_span() -> None:
    spans = Spans()
    agent = spans.agent(session_ids=((3, "browser"),))
    spans.llm(agent, session_ids=((2, "chat"), (4, "thread")))
    assert session_id(Tree(spans())) == "chat"


def test_outermost_span_wins_if_ranks_are_equal() -> None:
    spans = Spans()
    agent = spans.agent(start_ns=100, end_ns=200, session_ids=((2, "mine"),))
    spans.agent(spans.tool(agent), name="helper", start_ns=50, session_ids=((2, "helper's own"),))
    assert session_id(Tree(spans())) == "mine"


def test_earliest_span_wins_if_rank_and_depth_are_equal() -> None:
    spans = Spans()
    top = spans.add(Kind.OTHER)
    spans.llm(top, start_ns=20, session_ids=((2, "second"),))
    spans.llm(top, start_ns=10, session_ids=((2, "first"),))
    assert session_id(Tree(spans())) == "first"


def test_empty_session_id_is_ignored() -> None:
    spans = Spans()
    spans.agent(session_ids=((1, ""), (4, "thread")))
    assert session_id(Tree(spans())) == "thread"


def test_session_and_user_ids_are_truncated() -> None:
    spans = Spans()
    spans.agent(session_ids=((2, "x" * 1000),), user_id="y" * 1000)
    assert session_id(Tree(spans())) == "x" * MAX_ID_CHARS
    assert user_id(Tree(spans())) == "y" * MAX_ID_CHARS
