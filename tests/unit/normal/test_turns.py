"""Turns from agents or bare model calls."""

from __future__ import annotations

import pytest

from pandaeval_otel.model import NOT_CAPTURED, Kind, Media, Message, Reasoning, Span, Text, ToolResponse, Turn
from pandaeval_otel.normal.speech import answer_of, question_of, user_messages
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
    def test_last_user_message_is_the_question(self) -> None:
        assert question_of(asking(user("one"), says("1"), user("two"))).text == "two"

    def test_consecutive_user_messages_are_joined(self) -> None:
        assert question_of(asking(user("look at this:"), user("a poem"))).text == "look at this:\na poem"

    def test_user_messages_around_a_system_message_are_joined(self) -> None:
        assert question_of(asking(user("one"), Message("system", (Text("be brief"),)), user("two"))).text == "one\ntwo"

    def test_tool_result_with_the_user_role_is_no_question(self) -> None:
        result = Message("user", gives(1).parts)
        assert question_of(asking(user("go"), says(asks()), result)).text == "go"

    @pytest.mark.parametrize("replay", ["For context: [a] said: x", "Observation:\n{}"])
    def test_text_replayed_by_a_framework_is_no_question(self, replay: str) -> None:
        assert question_of(asking(user("go"), says("on it"), user(replay))).text == "go"

    def test_media_without_text_is_marked_as_media_only(self) -> None:
        side = question_of(asking(user(Media("image", "https://a.example/b.png"))))
        assert (side.text, side.media_only) == (None, True)

    def test_text_beside_media_is_the_question(self) -> None:
        side = question_of(asking(user("what is this?", Media("image"))))
        assert (side.text, side.media_only) == ("what is this?", False)

    def test_empty_user_message_gives_an_empty_question(self) -> None:
        assert question_of(asking(user(""))).text == ""

    def test_uncaptured_user_message_gives_no_question(self) -> None:
        side = question_of(asking(user(NOT_CAPTURED)))
        assert (side.text, side.media_only) == (None, False)

    def test_truncated_message_list_gives_no_question(self) -> None:
        assert question_of(asking(user("one"), says(Text("half a wo"), NOT_CAPTURED))).text is None

    def test_truncated_first_user_message_is_the_question(self) -> None:
        assert question_of(asking(Message("system", (Text("x"),)), user("half a wo", NOT_CAPTURED))).text == "half a wo"

    def test_truncated_user_message_after_history_gives_no_question(self) -> None:
        assert question_of(asking(user("one"), says("1"), user("half a wo", NOT_CAPTURED))).text is None

    def test_equal_user_messages_are_listed_separately(self) -> None:
        assert user_messages([user("yes"), says("sure?"), user("yes")]) == ["yes", "yes"]


class TestAnswer:
    def test_last_text_is_the_answer(self) -> None:
        assert answer_of([says("let me see", asks()), gives(1), says("done")]).text == "done"

    def test_a_pending_call_is_no_answer(self) -> None:
        side = answer_of([says("let me see", asks())])
        assert (side.text, side.pending) == (None, True)

    def test_run_that_stops_at_its_second_call_has_no_answer(self) -> None:
        side = answer_of([says(asks()), gives(1), says("once more", asks())])
        assert (side.text, side.pending) == (None, True)

    def test_last_text_of_a_run_in_one_message_is_the_answer(self) -> None:
        assert answer_of([says("let me see", asks(), *gives(1).parts, "done")]).text == "done"

    def test_first_text_of_a_run_in_one_message_is_the_answer_if_no_text_follows(self) -> None:
        assert answer_of([says("done", asks(), *gives(1).parts)]).text == "done"

    def test_reasoning_is_not_part_of_the_answer(self) -> None:
        assert answer_of([says(Reasoning("hm"), "done")]).text == "done"
        assert answer_of([says(Reasoning("hm"))]).text is None

    def test_empty_output_gives_an_empty_answer(self) -> None:
        assert answer_of([]).text == ""
        assert answer_of([says("")]).text == ""
        assert answer_of([says()]).text == ""

    def test_uncaptured_last_message_gives_no_answer(self) -> None:
        assert answer_of([says("let me see"), says(NOT_CAPTURED)]).text is None

    def test_media_without_text_is_marked_as_media_only(self) -> None:
        side = answer_of([says(Media("image"))])
        assert (side.text, side.media_only) == (None, True)

    @pytest.mark.parametrize(
        ("arguments", "answer"), [({"answer": "42"}, "42"), ("42", "42"), ({"a": 1, "b": "ø"}, '{"a": 1, "b": "ø"}')]
    )
    def test_arguments_of_a_final_answer_tool_are_the_answer(self, arguments: object, answer: str) -> None:
        side = answer_of([says(asks("final_answer", arguments))])
        assert (side.text, side.pending) == (answer, False)


class TestRuns:
    def test_agent_messages_precede_model_call_messages(self) -> None:
        spans = Spans()
        agent = spans.agent(input=(HI,), output=(says("hello"),))
        spans.llm(agent, [user("Task: hi")], "draft")
        assert read(spans) == Turns((Turn("hi", "hello", agent.span_id),))

    def test_first_and_last_model_call_are_used_if_the_agent_has_no_messages(self) -> None:
        spans = Spans()
        agent = spans.agent()
        spans.llm(agent, [HI], says(asks()))
        spans.llm(agent, [HI, says(asks()), gives(1)], "hello")
        assert shown(spans) == [("hi", "hello")]
        assert read(spans).notes == (
            "input taken from the first model call",
            "final answer taken from the last model call",
        )

    def test_model_call_without_captured_input_is_skipped(self) -> None:
        spans = Spans()
        agent = spans.agent()
        spans.llm(agent)
        spans.llm(agent, [HI], "hello")
        assert shown(spans) == [("hi", "hello")]

    def test_first_and_last_inner_agent_are_used_if_the_workflow_has_no_messages(self) -> None:
        spans = Spans()
        flow = spans.add(Kind.WORKFLOW)
        spans.agent(flow, name="a", input=(HI,), output=(says("draft"),))
        spans.agent(flow, name="b", input=(user("draft"),), output=(says("hello"),))
        assert shown(spans) == [("hi", "hello")]
        assert read(spans).notes == ("input taken from an inner agent", "final answer taken from an inner agent")

    def test_input_of_an_inner_agent_precedes_the_prompt_of_its_model_call(self) -> None:
        spans = Spans()
        agent = spans.agent(spans.add(Kind.WORKFLOW), input=(HI,), output=(says("hello"),))
        spans.llm(agent, [user("Current task: hi. Answer in full.")], "hello")
        assert shown(spans) == [("hi", "hello")]

    def test_answer_of_an_agent_used_as_a_tool_is_not_the_final_answer(self) -> None:
        spans = Spans()
        agent = spans.agent()
        spans.llm(agent, [HI], says(asks("helper")))
        helper = spans.agent(spans.tool(agent, "helper"), name="helper", end_ns=10**12)
        spans.llm(helper, [user("do it")], "done", end_ns=10**12)
        spans.llm(agent, [HI, says(asks("helper")), gives("done")], "hello")
        assert shown(spans) == [("hi", "hello")]

    def test_answer_of_a_guardrail_model_is_not_the_final_answer(self) -> None:
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

    def test_a_handover_between_sibling_agents_is_one_turn(self) -> None:
        spans = Spans()
        top = spans.add(Kind.OTHER)
        spans.llm(spans.agent(top, name="triage"), [HI], says(asks("transfer_to_desk")))
        spans.llm(spans.agent(top, name="desk"), [HI], "hello")
        assert shown(spans) == [("hi", "hello")]

    def test_sibling_agents_that_answered_are_separate_turns(self) -> None:
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

    def test_turns_below_a_workflow_without_messages_are_separate(self) -> None:
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

    def test_different_prompt_in_a_workflow_does_not_begin_a_turn(self) -> None:
        spans = Spans()
        flow = spans.add(Kind.WORKFLOW)
        spans.llm(flow, [user("book it")], "booking", name="router")
        spans.llm(flow, [user("hi"), says("hello"), user("book it")], "done")
        spans.llm(flow, [user("Summarise: done")], "booked")
        assert shown(spans) == [("book it", "booked")]

    def test_turns_are_found_if_inputs_hold_only_new_messages(self) -> None:
        spans = Spans()
        flow = spans.add(Kind.WORKFLOW)
        spans.llm(flow, [user("one")], says(asks()), response_id="r1")
        spans.llm(flow, [gives(1)], "1", previous_response_id="r1", response_id="r2")
        spans.llm(flow, [user("two")], "2", previous_response_id="r2")
        assert shown(spans) == [("one", "1"), ("two", "2")]

    def test_failed_run_has_no_answer(self) -> None:
        spans = Spans()
        agent = spans.agent(error="boom")
        spans.llm(agent, [HI], "let me see")
        assert shown(spans) == [("hi", None)]

    def test_failed_workflow_has_no_answer_even_if_its_agent_answered(self) -> None:
        spans = Spans()
        agent = spans.agent(spans.add(Kind.WORKFLOW, error="boom"))
        spans.llm(agent, [HI], "hello")
        assert shown(spans) == [("hi", None)]

    def test_run_whose_last_model_call_failed_has_no_answer(self) -> None:
        spans = Spans()
        agent = spans.agent()
        spans.llm(agent, [HI], "let me see")
        spans.llm(agent, [HI], error="400")
        assert (shown(spans), read(spans).pending) == ([("hi", None)], False)

    def test_run_whose_last_output_was_not_captured_has_no_answer(self) -> None:
        spans = Spans()
        agent = spans.agent()
        spans.llm(agent, [HI], says(asks()))
        spans.llm(agent)
        assert (shown(spans), read(spans).pending) == ([("hi", None)], False)

    def test_run_that_ends_in_a_tool_call_is_pending(self) -> None:
        spans = Spans()
        spans.llm(spans.agent(), [HI], says(asks()))
        assert (shown(spans), read(spans).pending) == ([("hi", None)], True)


class TestBareCalls:
    """Model calls without an agent."""

    def test_model_calls_below_a_server_span_are_one_turn(self) -> None:
        spans = Spans()
        top = spans.add(Kind.OTHER)
        spans.llm(top, [HI], says(asks("search")))
        spans.tool(top, "search")
        last = spans.llm(top, [HI, says(asks("search")), gives(1)], "hello")
        assert shown(spans) == [("hi", "hello")]
        assert read(spans).turns[0].span_id == last.span_id

    def test_each_model_call_in_its_own_trace_is_a_turn(self) -> None:
        asking, answering = Spans(), Spans()
        asking.llm(None, [HI], says(asks()))
        answering.llm(None, [HI, says(asks()), gives(1)], "hello")
        assert (shown(asking), read(asking).pending) == ([("hi", None)], True)
        assert (shown(answering), read(answering).pending) == ([("hi", "hello")], False)

    def test_failed_model_call_has_no_answer(self) -> None:
        spans = Spans()
        spans.llm(None, [HI], error="400")
        assert (shown(spans), read(spans).pending) == ([("hi", None)], False)

    def test_model_calls_with_new_user_messages_are_separate_turns(self) -> None:
        spans = Spans()
        top = spans.add(Kind.OTHER)
        spans.llm(top, [HI], "hello")
        spans.llm(top, [HI, says("hello"), user("bye")], "see you")
        assert shown(spans) == [("hi", "hello"), ("bye", "see you")]

    def test_trace_with_only_other_spans_has_no_turns(self) -> None:
        spans = Spans()
        spans.add(Kind.OTHER)
        assert read(spans) == Turns()

    def test_turn_with_only_media_is_marked(self) -> None:
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
def test_editor_context_around_a_message_is_removed(text: str, words: str) -> None:
    spans = Spans()
    spans.llm(None, [user(text)], "Done.")
    assert turns(Tree(spans())).turns[0].user == words


def test_unanswered_question_is_kept_if_a_later_tool_result_is_truncated() -> None:
    cut, short = (Message("tool", (ToolResponse(text, "c1"), NOT_CAPTURED)) for text in ("y" * 5000, "y" * 50))
    question, called = user("Why does it fail?"), says(asks(id="c1"))
    spans = Spans()
    spans.llm(None, [question, called, cut], "It fails.")
    assert turns(Tree(spans())).turns[0].user == "Why does it fail?"
    answered_history = [question, says("It fails."), called, cut]
    for history in ([user("hi"), says("hello"), question, called, cut], answered_history, [question, called, short]):
        spans = Spans()
        spans.llm(None, history, "It fails.")
        assert turns(Tree(spans())).turns[0].user is None, "a later message may be lost"


class TestAnEmptyAgentBesideItsModelCalls:
    """Streaming can lose the parents of model calls, as in Spring AI."""

    @pytest.mark.parametrize("step", [False, True])
    @pytest.mark.parametrize("agent_first", [False, True])
    def test_question_and_answer_come_from_the_model_calls(self, agent_first: bool, step: bool) -> None:
        spans = Spans()
        top = spans.add(Kind.OTHER)
        if agent_first:
            spans.agent(top)
        spans.llm(spans.add(Kind.STEP, top) if step else top, [HI], "hello")
        if not agent_first:
            spans.agent(top)
        assert shown(spans) == [("hi", "hello")]

    def test_each_question_is_a_separate_turn(self) -> None:
        spans = Spans()
        top = spans.add(Kind.OTHER)
        spans.agent(top)
        spans.llm(top, [HI], "hello")
        spans.llm(top, [HI, says("hello"), user("bye")], "see you")
        assert shown(spans) == [("hi", "hello"), ("bye", "see you")]

    def test_empty_workflow_uses_the_model_calls_beside_it(self) -> None:
        spans = Spans()
        top = spans.add(Kind.OTHER)
        spans.add(Kind.WORKFLOW, top)
        spans.llm(top, [HI], "hello")
        assert shown(spans) == [("hi", "hello")]

    def test_model_calls_inside_tools_are_not_the_answer(self) -> None:
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


def test_agent_that_receives_the_answer_of_another_agent_is_in_the_same_turn() -> None:
    spans, found = Spans(), "Hotel Arlo is free from May 1 to May 4."
    spans.agent(None, "hotel", input=(user("Book a trip."),), output=(says(found),))
    spans.agent(None, "advisor", input=(user("Book a trip."), user(found)), output=(says("Your trip is booked."),))
    assert shown(spans) == [("Book a trip.", "Your trip is booked.")]


def test_a_task_in_tags_is_the_question() -> None:
    details = "<environment_details>\nfiles\n</environment_details>"
    assert question_of(asking(user("<task>\nlist files\n</task>", details))).text == "list files"
    assert question_of(asking(user("Do this: <task>list</task>"))).text == "Do this: <task>list</task>"


@pytest.mark.parametrize(
    ("given", "text"), [({"message": "Hi!", "inner_thoughts": "new"}, "Hi!"), ({"message": "Hi!", "to": "Kim"}, None)]
)
def test_send_message_call_without_a_recipient_is_the_answer(given: dict[str, str], text: str | None) -> None:
    side = answer_of((says(asks("send_message", given)),))
    assert (side.text, side.pending) == (text, text is None)


def test_agent_beside_an_empty_workflow_gives_question_and_answer() -> None:
    spans = Spans()
    spans.add(Kind.WORKFLOW)
    spans.agent(input=(user("Where is berth 4?"),), output=(says("In the west."),))
    assert shown(spans) == [("Where is berth 4?", "In the west.")]
