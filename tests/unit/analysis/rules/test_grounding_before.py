"""Values from a conversation that the spans do not show."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pandaeval_collector.analysis.rules.grounding.grounding import Grounding, grounding
from pandaeval_otel.model import Trace
from pandaeval_otel.normal.trace import Closing, trace_of
from tests.support.builders import Spans, asks, gives, says, user

EARLIER = (user("Which ferries go to Oslo?"), says("The KO-7731 at 13:15 and another one."))
NOW = user("Please book the one at a quarter past one.")
BOOKED = {"sailing_id": "KO-7731", "booking_ref": "FJ-88213"}


def booked(*before: Any, result: Any = BOOKED, answer: str = "Booked: FJ-88213.", **fields: Any) -> Trace:
    spans = Spans()
    agent = spans.agent()
    asked = asks("book_ferry", {"sailing_id": "KO-7731"}, "c1")
    spans.llm(agent, [*before, NOW], says(asked), **fields)
    spans.tool(agent, "book_ferry", {"sailing_id": "KO-7731"}, tool_call_id="c1", result=result)
    spans.llm(agent, [*before, NOW, says(asked), gives(result, "c1")], answer)
    return trace_of(spans(), "digest", Closing())


def found(trace: Trace) -> Grounding:
    one = grounding(trace)
    assert one is not None
    return one


def test_an_identifier_that_a_tool_knew_may_have_been_told_before() -> None:
    one = found(booked())
    assert ([each.value.text for each in one.open], one.loose, one.total) == (["KO-7731"], [], 1)
    assert one.hidden == "the conversation before was not captured"


@pytest.mark.parametrize("result", ["Error: no such sailing KO-7731", {"booking_ref": "FJ-88213"}])
def test_one_that_no_tool_knew_was_made_up(result: Any) -> None:
    one = found(booked(result=result, answer="Done."))
    assert [each.claim.value.text for each in one.loose] == ["KO-7731"]


def test_where_the_conversation_before_is_shown_it_has_to_stand_there() -> None:
    assert not found(booked(*EARLIER)).open
    assert not found(booked(*EARLIER)).loose
    other = (EARLIER[0], says("There are two."))
    assert [each.claim.value.text for each in found(booked(*other)).loose] == ["KO-7731"]


def test_other_values_are_checked_all_the_same() -> None:
    one = found(booked(answer="Booked: FJ-88213 for 41.50 EUR."))
    assert [each.claim.value.text for each in one.loose] == ["41.50 EUR"]
    assert len(one.open) == 1


def test_a_history_that_the_provider_keeps_is_not_captured() -> None:
    trace = booked(answer="Booked for 41.50 EUR, as said.", previous_response_id="resp_1", system="You book.")
    one = found(trace)
    assert (one.loose, one.hidden) == ([], "the conversation before was not captured")
    assert found(replace(trace, continues="")).loose


@pytest.mark.parametrize(
    ("result", "cut"),
    [
        ('{"sailings": [{"id": "KO-77...', True),
        ('{"sailings": [{"id": "KO-77', True),
        ("KO-7731 departs at 13:15 and …", True),
        ("KO-7731 departs [output truncated, 812 more characters]", True),
        ('{"sailings": []}', False),
        ("[KO-7731", False),
        ("KO-7731 departs at 13:15.", False),
        ({"ref": "KO-7731", "note": "and so on..."}, False),
    ],
)
def test_results_that_break_off_open_what_is_not_found(result: Any, cut: bool) -> None:
    one = found(booked(*EARLIER, result=result, answer="Booked: FJ-88214."))
    assert [each.value.text for each in one.open] == (["FJ-88214"] if cut else [])
    assert one.hidden == ("results of tools were captured in part" if cut else None)
