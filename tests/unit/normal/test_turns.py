"""Turns from agents or bare model calls."""

from __future__ import annotations

import pytest

from pandaeval_otel.model import NOT_CAPTURED, Kind, Media, Message, Reasoning, Span, Text, ToolResponse, Turn
from pandaeval_otel.normal.speech import answered, asked, user_messages
from pandaeval_otel.normal.tree import Tree
from pandaeval_otel.normal.turns import Turns, turns
from tests.support.builders import Spans, asks, gives, says, user

HI = user("hi")


def read(spans: Spans) -> Turns:
    return turns(Tree(spans()))


def shown(spans: Spans) -> list[tuple[str | None, str | None]]:
    return [(turn.user, turn.assistant) for turn in read(spans).turns]


def asking(*given: Message) -> Span:
    return Spans().llm(None, given)


class TestQuestion:
    def test_the_last_user_message(self) -> None:
        assert asked(asking(user("one"), says("1"), user("two"))).text == "two"

    def test_messages_in_a_row_are_one(self) -> None:
        assert asked(asking(user("look at this:"), user("a poem"))).text == "look at this:\na poem"

    def test_instructions_between_them_do_not_part_them(self) -> None:
        assert asked(asking(user("one"), Message("system", (Text("be brief"),)), user("two"))).text == "one\ntwo"

    def test_tool_results_in_the_users_name_are_none(self) -> None:
        result = Message("user", gives(1).parts)
        assert asked(asking(user("go"), says(asks()), result)).text == "go"

    @pytest.mark.parametrize("replay", ["For context: [a] said: x", "Observation:\n{}"])
    def test_what_a_framework_retells_is_none(self, replay: str) -> None:
        assert asked(asking(user("go"), says("on it"), user(replay))).text == "go"

    def test_media_without_words(self) -> None:
        said = asked(asking(user(Media("image", "https://a.example/b.png"))))
        assert (said.text, said.media_only) == (None, True)

    def test_media_with_words(self) -> None:
        said = asked(asking(user("what is this?", Media("image"))))
        assert (said.text, said.media_only) == ("what is this?", False)

    def test_captured_and_empty(self) -> None:
        assert asked(asking(user(""))).text == ""

    def test_hidden(self) -> None:
        said = asked(asking(user(NOT_CAPTURED)))
        assert (said.text, said.media_only) == (None, False)

    def test_a_list_that_was_cut_does_not_tell_who_spoke_last(self) -> None:
        assert asked(asking(user("one"), says(Text("half a wo"), NOT_CAPTURED))).text is None

    def test_a_message_that_was_cut_is_better_than_none(self) -> None:
        assert asked(asking(Message("system", (Text("x"),)), user("half a wo", NOT_CAPTURED))).text == "half a wo"

    def test_unless_it_may_be_history(self) -> None:
        assert asked(asking(user("one"), says("1"), user("half a wo", NOT_CAPTURED))).text is None

    def test_user_messages_are_counted_and_not_compared(self) -> None:
        assert user_messages([user("yes"), says("sure?"), user("yes")]) == ["yes", "yes"]


class TestAnswer:
    def test_the_last_text(self) -> None:
        assert answered([says("let me see", asks()), gives(1), says("done")]).text == "done"

    def test_a_pending_call_is_no_answer(self) -> None:
        said = answered([says("let me see", asks())])
        assert (said.text, said.pending) == (None, True)

    def test_a_run_that_stopped_at_its_second_call(self) -> None:
        said = answered([says(asks()), gives(1), says("once more", asks())])
        assert (said.text, said.pending) == (None, True)

    def test_a_whole_run_in_one_message_in_order(self) -> None:
        assert answered([says("let me see", asks(), *gives(1).parts, "done")]).text == "done"

    def test_a_whole_run_in_one_message_with_the_answer_first(self) -> None:
        assert answered([says("done", asks(), *gives(1).parts)]).text == "done"

    def test_thoughts_are_not_said(self) -> None:
        assert answered([says(Reasoning("hm"), "done")]).text == "done"
        assert answered([says(Reasoning("hm"))]).text is None

    def test_captured_and_empty(self) -> None:
        assert answered([]).text == ""
        assert answered([says("")]).text == ""
        assert answered([says()]).text == ""

    def test_hidden_is_neither_empty_nor_what_was_said_before(self) -> None:
        assert answered([says("let me see"), says(NOT_CAPTURED)]).text is None

    def test_media(self) -> None:
        said = answered([says(Media("image"))])
        assert (said.text, said.media_only) == (None, True)

    @pytest.mark.parametrize(
        ("arguments", "answer"), [({"answer": "42"}, "42"), ("42", "42"), ({"a": 1, "b": "ø"}, '{"a": 1, "b": "ø"}')]
    )
    def test_an_answer_that_is_handed_over_by_a_tool(self, arguments: object, answer: str) -> None:
        said = answered([says(asks("final_answer", arguments))])
        assert (said.text, said.pending) == (answer, False)


class TestRuns:
    def test_what_the_agent_states_comes_first(self) -> None:
        spans = Spans()
        agent = spans.agent(input=(HI,), output=(says("hello"),))
        spans.llm(agent, [user("Task: hi")], "draft")
        assert read(spans) == Turns((Turn("hi", "hello", agent.span_id),))

    def test_else_the_first_and_the_last_model_call(self) -> None:
        spans = Spans()
        agent = spans.agent()
        spans.llm(agent, [HI], says(asks()))
        spans.llm(agent, [HI, says(asks()), gives(1)], "hello")
        assert shown(spans) == [("hi", "hello")]
        assert read(spans).notes == (
            "input taken from the first model call",
            "final answer taken from the last model call",
        )

    def test_else_the_next_model_call_whose_input_was_captured(self) -> None:
        spans = Spans()
        agent = spans.agent()
        spans.llm(agent)
        spans.llm(agent, [HI], "hello")
        assert shown(spans) == [("hi", "hello")]

    def test_else_the_first_and_the_last_inner_agent(self) -> None:
        spans = Spans()
        flow = spans.add(Kind.WORKFLOW)
        spans.agent(flow, name="a", input=(HI,), output=(says("draft"),))
        spans.agent(flow, name="b", input=(user("draft"),), output=(says("hello"),))
        assert shown(spans) == [("hi", "hello")]
        assert read(spans).notes == ("input taken from an inner agent", "final answer taken from an inner agent")

    def test_an_agent_around_the_first_model_call_knows_the_question_without_a_prompt(self) -> None:
        spans = Spans()
        agent = spans.agent(spans.add(Kind.WORKFLOW), input=(HI,), output=(says("hello"),))
        spans.llm(agent, [user("Current task: hi. Answer in full.")], "hello")
        assert shown(spans) == [("hi", "hello")]

    def test_an_agent_used_as_a_tool_does_not_speak_to_the_user(self) -> None:
        spans = Spans()
        agent = spans.agent()
        spans.llm(agent, [HI], says(asks("helper")))
        helper = spans.agent(spans.tool(agent, "helper"), name="helper", end_ns=10**12)
        spans.llm(helper, [user("do it")], "done", end_ns=10**12)
        spans.llm(agent, [HI, says(asks("helper")), gives("done")], "hello")
        assert shown(spans) == [("hi", "hello")]

    def test_a_guard_does_not_speak_to_the_user(self) -> None:
        spans = Spans()
        agent = spans.agent()
        spans.llm(agent, [HI], "hello")
        spans.llm(spans.add(Kind.GUARDRAIL, agent), [user("is this polite? hello")], "yes")
        assert shown(spans) == [("hi", "hello")]

    def test_a_handover_below_one_workflow_is_one_turn(self) -> None:
        spans = Spans()
        flow = spans.add(Kind.WORKFLOW)
        spans.llm(spans.agent(flow, name="triage"), [HI], says(asks("transfer_to_desk")))
        spans.llm(spans.agent(flow, name="desk"), [HI, says(asks("transfer_to_desk")), gives("ok")], "hello")
        assert shown(spans) == [("hi", "hello")]

    def test_a_handover_between_agents_side_by_side_is_one_turn(self) -> None:
        spans = Spans()
        top = spans.add(Kind.OTHER)
        spans.llm(spans.agent(top, name="triage"), [HI], says(asks("transfer_to_desk")))
        spans.llm(spans.agent(top, name="desk"), [HI], "hello")
        assert shown(spans) == [("hi", "hello")]

    def test_several_agents_that_answered_are_several_turns(self) -> None:
        spans = Spans()
        top = spans.add(Kind.OTHER)
        for text in ("one", "two", "two"):
            spans.agent(top, input=(user(text),), output=(says(text.upper()),))
        assert shown(spans) == [("one", "ONE"), ("two", "TWO"), ("two", "TWO")]

    def test_agents_whose_content_was_not_captured_are_not_joined(self) -> None:
        spans = Spans()
        for _ in range(2):
            spans.agent()
        assert shown(spans) == [(None, None), (None, None)]

    def test_several_turns_below_one_silent_span(self) -> None:
        spans = Spans()
        chat = spans.add(Kind.WORKFLOW)
        history: list[Message] = []
        for text in ("one", "yes", "yes"):
            history = [*history, user(text)]
            spans.llm(chat, history, says(asks()))
            history = [*history, says(asks()), gives(1)]
            spans.llm(chat, history, f"{text}!")
            history = [*history, says(f"{text}!")]
        assert shown(spans) == [("one", "one!"), ("yes", "yes!"), ("yes", "yes!")]

    def test_another_prompt_does_not_begin_a_turn(self) -> None:
        spans = Spans()
        flow = spans.add(Kind.WORKFLOW)
        spans.llm(flow, [user("book it")], "booking", name="router")
        spans.llm(flow, [user("hi"), says("hello"), user("book it")], "done")
        spans.llm(flow, [user("Summarise: done")], "booked")
        assert shown(spans) == [("book it", "booked")]

    def test_inputs_that_hold_only_what_is_new(self) -> None:
        spans = Spans()
        flow = spans.add(Kind.WORKFLOW)
        spans.llm(flow, [user("one")], says(asks()), response_id="r1")
        spans.llm(flow, [gives(1)], "1", previous_response_id="r1", response_id="r2")
        spans.llm(flow, [user("two")], "2", previous_response_id="r2")
        assert shown(spans) == [("one", "1"), ("two", "2")]

    def test_a_run_that_failed_did_not_answer(self) -> None:
        spans = Spans()
        agent = spans.agent(error="boom")
        spans.llm(agent, [HI], "let me see")
        assert shown(spans) == [("hi", None)]

    def test_a_workflow_that_failed_after_its_agents_answer_did_not_give_it(self) -> None:
        spans = Spans()
        agent = spans.agent(spans.add(Kind.WORKFLOW, error="boom"))
        spans.llm(agent, [HI], "hello")
        assert shown(spans) == [("hi", None)]

    def test_a_run_whose_last_model_call_failed_did_not_answer(self) -> None:
        spans = Spans()
        agent = spans.agent()
        spans.llm(agent, [HI], "let me see")
        spans.llm(agent, [HI], error="400")
        assert (shown(spans), read(spans).pending) == ([("hi", None)], False)

    def test_a_run_whose_last_answer_was_not_captured_did_not_end_with_the_one_before(self) -> None:
        spans = Spans()
        agent = spans.agent()
        spans.llm(agent, [HI], says(asks()))
        spans.llm(agent)
        assert (shown(spans), read(spans).pending) == ([("hi", None)], False)

    def test_a_run_that_ends_in_a_call(self) -> None:
        spans = Spans()
        spans.llm(spans.agent(), [HI], says(asks()))
        assert (shown(spans), read(spans).pending) == ([("hi", None)], True)


class TestBareCalls:
    """Model calls without an agent."""

    def test_one_turn_below_a_server_span(self) -> None:
        spans = Spans()
        top = spans.add(Kind.OTHER)
        spans.llm(top, [HI], says(asks("search")))
        spans.tool(top, "search")
        last = spans.llm(top, [HI, says(asks("search")), gives(1)], "hello")
        assert shown(spans) == [("hi", "hello")]
        assert read(spans).turns[0].span_id == last.span_id

    def test_one_trace_per_call(self) -> None:
        asking, answering = Spans(), Spans()
        asking.llm(None, [HI], says(asks()))
        answering.llm(None, [HI, says(asks()), gives(1)], "hello")
        assert (shown(asking), read(asking).pending) == ([("hi", None)], True)
        assert (shown(answering), read(answering).pending) == ([("hi", "hello")], False)

    def test_a_call_that_failed(self) -> None:
        spans = Spans()
        spans.llm(None, [HI], error="400")
        assert (shown(spans), read(spans).pending) == ([("hi", None)], False)

    def test_several_turns(self) -> None:
        spans = Spans()
        top = spans.add(Kind.OTHER)
        spans.llm(top, [HI], "hello")
        spans.llm(top, [HI, says("hello"), user("bye")], "see you")
        assert shown(spans) == [("hi", "hello"), ("bye", "see you")]

    def test_a_trace_without_work_has_no_turns(self) -> None:
        spans = Spans()
        spans.add(Kind.OTHER)
        assert read(spans) == Turns()

    def test_media_is_marked(self) -> None:
        spans = Spans()
        spans.llm(None, [user(Media("audio"))], "a song")
        [turn] = read(spans).turns
        assert turn.media_only


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("<current_datetime>2026-11-28T08:00:00Z</current_datetime>\n\nFix it.", "Fix it."),
        ("Fix it.\n<system-reminder>\nYou have 2 todos.\n</system-reminder>", "Fix it."),
        ("<editorContext>a.py</editorContext>\n<userRequest>\nFix it.\n</userRequest>", "Fix it."),
        ("<environment_context><cwd>/x</cwd></environment_context>Fix <b>it</b>.", "Fix <b>it</b>."),
        ("<system-reminder>a</system-reminder><system-reminder>b</system-reminder>Fix it.", "Fix it."),
        ("<current_datetime>now</current_datetime>\n<system_reminder>b</system_reminder>\nFix it.", "Fix it."),
        ("Translate <p>hello</p>", "Translate <p>hello</p>"),
        (
            "Why does <current_date></current_date> stay empty here?",
            "Why does <current_date></current_date> stay empty here?",
        ),
        ("<current_datetime>2026</current_datetime>", "<current_datetime>2026</current_datetime>"),
        ("<current_datetime>2026 Fix it.</b>", "<current_datetime>2026 Fix it.</b>"),
    ],
)
def test_what_editors_wrap_around_a_message_is_not_the_users(text: str, words: str) -> None:
    spans = Spans()
    spans.llm(None, [user(text)], "Done.")
    assert turns(Tree(spans())).turns[0].user == words


def test_a_list_that_was_cut_in_a_result_keeps_the_message_that_has_no_answer_yet() -> None:
    cut, short = (Message("tool", (ToolResponse(text, "c1"), NOT_CAPTURED)) for text in ("y" * 5000, "y" * 50))
    asked, called = user("Why does it fail?"), says(asks(id="c1"))
    spans = Spans()
    spans.llm(None, [asked, called, cut], "It fails.")
    assert turns(Tree(spans())).turns[0].user == "Why does it fail?"
    answered = [asked, says("It fails."), called, cut]
    for history in ([user("hi"), says("hello"), asked, called, cut], answered, [asked, called, short]):
        spans = Spans()
        spans.llm(None, history, "It fails.")
        assert turns(Tree(spans())).turns[0].user is None, "a later message may be lost"


class TestAnEmptyAgentBesideItsModelCalls:
    """Streams lose parents of model calls, as in Spring AI."""

    @pytest.mark.parametrize("step", [False, True])
    @pytest.mark.parametrize("agent_first", [False, True])
    def test_question_and_answer_come_from_the_calls(self, agent_first: bool, step: bool) -> None:
        spans = Spans()
        top = spans.add(Kind.OTHER)
        if agent_first:
            spans.agent(top)
        spans.llm(spans.add(Kind.STEP, top) if step else top, [HI], "hello")
        if not agent_first:
            spans.agent(top)
        assert shown(spans) == [("hi", "hello")]

    def test_several_questions_are_several_turns(self) -> None:
        spans = Spans()
        top = spans.add(Kind.OTHER)
        spans.agent(top)
        spans.llm(top, [HI], "hello")
        spans.llm(top, [HI, says("hello"), user("bye")], "see you")
        assert shown(spans) == [("hi", "hello"), ("bye", "see you")]

    def test_a_workflow_too(self) -> None:
        spans = Spans()
        top = spans.add(Kind.OTHER)
        spans.add(Kind.WORKFLOW, top)
        spans.llm(top, [HI], "hello")
        assert shown(spans) == [("hi", "hello")]

    def test_models_of_tools_do_not_answer(self) -> None:
        spans = Spans()
        top = spans.add(Kind.OTHER)
        spans.agent(top)
        spans.llm(spans.tool(top), [HI], "hello")
        assert shown(spans) == [(None, None)]

    def test_an_agent_with_an_answer_keeps_it(self) -> None:
        spans = Spans()
        top = spans.add(Kind.OTHER)
        spans.llm(spans.agent(top), [HI], "hello")
        spans.llm(top, [user("Name this chat.")], "Greeting")
        assert shown(spans) == [("hi", "hello")]


def test_an_agent_that_works_on_anothers_words_is_in_its_turn() -> None:
    spans, found = Spans(), "Hotel Arlo is free from May 1 to May 4."
    spans.agent(None, "hotel", input=(user("Book a trip."),), output=(says(found),))
    spans.agent(None, "advisor", input=(user("Book a trip."), user(found)), output=(says("Your trip is booked."),))
    assert shown(spans) == [("Book a trip.", "Your trip is booked.")]


def test_a_task_in_tags_is_the_question() -> None:
    details = "<environment_details>\nfiles\n</environment_details>"
    assert asked(asking(user("<task>\nlist files\n</task>", details))).text == "list files"
    assert asked(asking(user("Do this: <task>list</task>"))).text == "Do this: <task>list</task>"


@pytest.mark.parametrize(
    ("given", "text"), [({"message": "Hi!", "inner_thoughts": "new"}, "Hi!"), ({"message": "Hi!", "to": "Kim"}, None)]
)
def test_a_message_without_a_recipient_is_the_answer(given: dict[str, str], text: str | None) -> None:
    said = answered((says(asks("send_message", given)),))
    assert (said.text, said.pending) == (text, text is None)


def test_a_workflow_whose_steps_lost_their_parents() -> None:
    spans = Spans()
    spans.add(Kind.WORKFLOW)
    spans.agent(input=(user("Where is berth 4?"),), output=(says("In the west."),))
    assert shown(spans) == [("Where is berth 4?", "In the west.")]
