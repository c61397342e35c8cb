"""Conversations linked by model call history."""

from __future__ import annotations

from pandaeval_otel.model import NOT_CAPTURED, Kind, Message, Span, Text, Trace
from pandaeval_otel.normal.session import is_history
from pandaeval_otel.normal.trace import Closing, trace_of
from tests.support.builders import Spans, asks, gives, says, user

WHERE, THERE = "Where is my parcel 8841?", "Parcel 8841 is on its way and comes on Tuesday, the 14th."
WHEN, THEN = "At what time?", "Between 9 and 11 in the morning."


def trace(*spans: Span) -> Trace:
    return trace_of(list(spans), "digest", Closing())


def plain(*given: Message, said: str | Message | None = THERE, **fields: str) -> Trace:
    spans = Spans()
    spans.llm(given=given, said=said, service="shop", **fields)
    return trace(*spans())


FIRST = plain(user(WHERE))
SECOND = plain(user(WHERE), says(THERE), user(WHEN), said=THEN)


def test_later_turn_continues_the_history_of_an_earlier_turn() -> None:
    [left] = FIRST.responses
    assert is_history(left)
    assert FIRST.continues == ""
    assert SECOND.continues == left
    third = plain(user(WHERE), says(THERE), user(WHEN), says(THEN), user("Thanks, and parcel 8842?"))
    assert [third.continues] == [*SECOND.responses]


def test_history_matches_despite_other_instructions_calls_and_results() -> None:
    spans = Spans()
    agent = spans.agent(service="shop")
    spans.llm(agent, [Message("system", (Text("It is 9:41."),)), user(WHERE)], says("I look.", asks(id="1")))
    spans.llm(agent, [user(WHERE), says("I look.", asks(id="1")), gives("on its way", "1")], THERE)
    left = trace(*spans()).responses
    for before in (
        [user(WHERE), says(THERE)],
        [Message("system", (Text("It is 9:43."),)), user(WHERE), says(asks(id="1")), gives("x", "1"), says(THERE)],
        [user(WHERE), says("I look.", asks(id="1")), gives("on its way", "1"), says(f"{THERE}\n")],
    ):
        again = Spans()
        again.llm(again.agent(service="shop"), [*before, user(WHEN)], THEN)
        assert (trace(*again()).continues,) == left


def test_later_turn_may_repeat_the_agent_answer_or_the_model_answer() -> None:
    spans = Spans()
    agent = spans.agent(service="shop", input=(user(WHERE),), output=(says(f"I look. {THERE}"),))
    spans.llm(agent, [user(WHERE)], THERE)
    left = trace(*spans()).responses
    assert len(left) == 2
    for answer in (THERE, f"I look. {THERE}"):
        again = Spans()
        again.llm(again.agent(service="shop"), [user(WHERE), says(answer), user(WHEN)], THEN)
        assert trace(*again()).continues in left


def test_common_or_short_openings_do_not_link_conversations() -> None:
    for asked, answer in (
        ("hi", "Hello! I am the parcel desk. How can I help you today?"),
        ("hi", "I can track parcels, change addresses and arrange refunds. " * 5),
        ("What can you do for me?", "I can track parcels and arrange refunds."),
        ("Where is my parcel 8841?", "On its way."),
    ):
        assert plain(user(asked), said=answer).responses == ()
        assert plain(user(asked), says(answer), user(WHEN)).continues == ""
    assert plain(Message("system", (Text(f"{WHERE} {THERE}"),)), user(WHEN)).continues == ""


def test_conversation_that_begins_with_a_greeting_is_linked() -> None:
    hello = (user("hi"), says("Hello! How can I help?"))
    [left] = plain(*hello, user(WHERE)).responses
    assert plain(*hello, user(WHERE), says(THERE), user(WHEN)).continues == left


def test_equal_histories_of_other_users_or_agents_are_not_linked() -> None:
    history = (user(WHERE), says(THERE), user(WHEN))
    spans = Spans()
    spans.llm(spans.agent(name="other", service="shop"), history, THEN)
    of_user, of_agent = plain(*history, user_id="u-2").continues, trace(*spans()).continues
    assert len({SECOND.continues, of_user, of_agent}) == 3
    assert all(map(is_history, (of_user, of_agent)))


def test_history_with_missing_content_is_not_linked() -> None:
    cut = Message("assistant", (Text(THERE), NOT_CAPTURED))
    assert plain(user(WHERE), cut, user(WHEN)).continues == ""
    assert plain(user(WHERE), said=None).responses == ()
    assert plain(user(WHERE), said=says(asks())).responses == ()


def test_history_is_ignored_if_a_session_or_previous_response_id_is_given() -> None:
    spans = Spans()
    spans.llm(given=[user(WHERE), says(THERE), user(WHEN)], said=THEN, session_ids=((2, "chat"),))
    named = trace(*spans())
    assert (named.responses, named.continues) == ((), "")
    spans = Spans()
    spans.llm(given=[user(WHERE), says(THERE), user(WHEN)], said=THEN, response_id="r2", previous_response_id="r1")
    assert trace(*spans()).continues == "r1"


def test_history_is_found_after_a_router_call() -> None:
    spans = Spans()
    agent = spans.agent(service="shop")
    spans.llm(agent, [user("Which desk is this for: at what time?")], "parcels")
    spans.llm(agent, [user(WHERE), says(THERE), user(WHEN)], THEN)
    plain_agent = Spans()
    plain_agent.llm(plain_agent.agent(service="shop"), [user(WHERE)], THERE)
    assert (trace(*spans()).continues,) == trace(*plain_agent()).responses


def test_history_is_read_from_the_root_if_there_are_no_model_calls() -> None:
    spans = Spans()
    spans.add(Kind.WORKFLOW, input=(user(WHERE), says(THERE), user(WHEN)), output=(says(THEN),), service="shop")
    assert trace(*spans()).continues == SECOND.continues
