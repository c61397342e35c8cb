"""Turns of every trace shape, with their history."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pandaeval_collector.judge.conversation import conversation
from pandaeval_collector.judge.turns import TurnView, turn_view
from pandaeval_collector.scoring.evaluator import turn_unit
from pandaeval_otel.model import Kind, Span, Trace, Turn
from pandaeval_otel.normal.turns import of_turn
from support.judged import call, trace
from tests.support.builders import says, user

ASKED = [("Where is it?", "At the depot."), ("And when does it come?", "On Monday."), ("yes", "Done."), ("yes", "Ok.")]
S = 10**9


def _model(number: int, history: int, **more: object) -> Span:
    """Return a model call with ``history`` earlier exchanges."""
    told = [message for asked, said in ASKED[:history] for message in (user(asked), says(said))]
    given = (*told, user(ASKED[history][0]))
    return Span("t", f"{number:016x}", "", "chat", Kind.LLM, number * 10 * S, number * 10 * S + S, input=given, **more)  # type: ignore[arg-type]


def _growing() -> Trace:
    spans = tuple(_model(number, number) for number in range(4))
    turns = tuple(Turn(*ASKED[at], span.span_id, start_ns=span.start_ns) for at, span in enumerate(spans))
    calls = (call(1), call(11), call(12))  # a second after their number
    return replace(trace(), spans=spans, turns=turns, tool_calls=calls, session_id=None)


def test_a_turn_has_its_own_spans_calls_and_history() -> None:
    views = [turn_view(_growing(), at) for at in range(4)]
    assert [view.turn_index for view in views] == [0, 1, 2, 3]
    assert [(view.user_message, view.agent_message) for view in views] == ASKED, "two equal messages are two turns"
    assert [len(view.tool_calls) for view in views] == [1, 2, 0, 0]
    assert [len(view.history) for view in views] == [0, 1, 2, 3], "history that every call repeats counts once"
    assert views[3].history == tuple(ASKED[:3])
    units = {turn_unit(view).id for view in views}
    assert units == {f"{_growing().trace_id}:{number:016x}" for number in range(4)}


def test_earlier_turns_are_the_history_if_model_calls_hold_none() -> None:
    whole = _growing()
    spans = tuple(
        replace(span, input=(user(turn.user or ""),)) for span, turn in zip(whole.spans, whole.turns, strict=True)
    )
    view = turn_view(replace(whole, spans=spans), 2)
    assert view.history == tuple(ASKED[:2])
    assert any(line.startswith("agent called search") for line in view.said)


@pytest.mark.parametrize(("base", "session", "number"), [(None, None, 0), (None, "s", 0), (0, "s", 0), (3, "s", 3)])
def test_turns_are_numbered_across_the_session(base: int | None, session: str | None, number: int) -> None:
    assert turn_view(replace(trace(), session_id=session), 0, base=base).turn_index == number


def test_earlier_messages_of_the_session_are_the_history_if_the_trace_holds_none() -> None:
    view = turn_view(trace("Yes, do that."), 0, ("user: Shall I?", "user: Book it?", "agent: At nine?"), 1)
    assert view.history == (("Shall I?\nBook it?", "At nine?"),), "consecutive messages are merged"


def test_a_single_turn_is_the_trace_itself() -> None:
    one = trace(calls=[call(1)])
    assert of_turn(one, 0) is one
    with pytest.raises(IndexError):
        of_turn(one, 1)


def test_an_error_of_the_trace_belongs_to_its_last_turn() -> None:
    whole = replace(_growing(), error="boom", ends_in_tool_call=True)
    assert [turn_view(whole, at).trace.error for at in range(4)] == [None, None, None, "boom"]
    assert [turn_view(whole, at).trace.ends_in_tool_call for at in range(4)] == [False, False, False, True]


class TestStated:
    def _view(self, **attributes: object) -> TurnView:
        one = trace()
        return turn_view(replace(one, spans=(replace(one.spans[0], attributes=attributes),)), 0)

    def test_goal_and_profile_are_read_from_attributes(self) -> None:
        view = self._view(**{"pandaeval.goal": " Book a haircut ", "pandaeval.user.profile": "in a hurry"})
        assert (view.goal, view.profile) == ("Book a haircut", "in a hurry")

    @pytest.mark.parametrize(
        ("stated", "known"),
        [
            ("Closes at six.", ("Closes at six.",)),
            (["Closes at six.", "Opens at nine."], ("Closes at six.", "Opens at nine.")),
            ('["Closes at six.", {"opens": 9}]', ("Closes at six.", '{"opens": 9}')),
            ("[not json", ("[not json",)),
            ("[" * 50_000 + "]" * 50_000, ("[" * 50_000 + "]" * 50_000,)),
            ('["\\ud800"]', ('["\\ud800"]',)),
            ("", ()),
        ],
    )
    def test_knowledge_is_read_from_a_text_a_list_or_json(self, stated: object, known: tuple[str, ...]) -> None:
        assert self._view(**{"pandaeval.knowledge": stated}).knowledge == known

    def test_deeply_nested_knowledge_is_shortened_where_python_cannot_write_it(self) -> None:
        nested = "[" * 1000 + "]" * 1000  # Python 3.13 can
        first, second = self._view(**{"pandaeval.knowledge": f'["a", {nested}]'}).knowledge
        assert (first, second in ("…", nested)) == ("a", True)

    def test_retrieved_documents_are_knowledge(self) -> None:
        found = Span("t", "1" * 16, "", "search", Kind.RETRIEVAL, 1, 2, documents=("Closes at six.",))
        assert turn_view(replace(trace(), spans=(found,)), 0).knowledge == ("Closes at six.",)


def test_a_conversation_is_merged_into_one_trace() -> None:
    first = trace("Where is it?", "At the depot.", [call(1)])
    second = trace("Send it.", "Sent.", [call(2, "send")])
    whole = conversation([first, second], "d")
    assert [turn.user for turn in whole.trace.turns] == ["Where is it?", "Send it."]
    assert [each.name for each in whole.trace.tool_calls] == ["search", "send"]
    assert (whole.traces, whole.missing, whole.trace.digest) == (2, 0, "d")
