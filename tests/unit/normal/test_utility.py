"""Detection of utility calls."""

from __future__ import annotations

from typing import Any

import pytest

from pandaeval_otel.model import Kind, Message, Text, Trace
from pandaeval_otel.normal.trace import Closing, trace_of
from tests.support.builders import Spans, asks, says, user


def system(text: str) -> Message:
    return Message("system", (Text(text),))


def built(spans: Spans) -> Trace:
    return trace_of(spans(), "digest", Closing())


def alone(instructions: str, asked: str = "hello", *, session: str = "s", **fields: Any) -> Trace:
    spans = Spans()
    ids = ((5, session),) if session else ()
    given = [system(instructions), user(asked)] if instructions else [user(asked)]
    spans.llm(None, given, "Ferries", session_ids=ids, **fields)
    return built(spans)


@pytest.mark.parametrize(
    ("trace", "kind"),
    [
        (alone("You are an expert in crafting pithy titles for chat conversations."), "title"),
        (alone("", "Please write a brief title for the following request:\n\nBook it"), "title"),
        (alone("You are a title generator. You output ONLY a thread title.", session=""), "title"),
        (alone("", "### Task:\nGenerate a concise title with an emoji summarizing the chat history."), "title"),
        (alone("", "### Task:\nGenerate 1-3 broad tags categorizing the main themes of the chat."), "tags"),
        (alone("", "### Task:\nSuggest 3 follow-up questions that the user might ask in this chat"), "follow_up"),
        (alone("Summarise the tool calls below in a few words."), "summary"),
        (alone("", "Your task is to create a detailed summary of the conversation so far."), "summary"),
        (alone("Classify the user's message: edit, ask or search.", agent_name="intent_router"), "classification"),
        (alone("Classify the user's message: edit, ask or search.", scope="copilot-chat"), "classification"),
        # an application's own work
        (alone("You are a helpful assistant.", "Write a title for my blog post on ferries."), ""),
        (alone("You are a helpful assistant.", "Summarize our conversation."), ""),
        (alone("You help customers find titles in our library. Suggest titles that fit the request."), ""),
        (alone("Summarise the article below."), ""),
        (alone("Summarise the tool calls below in a few words.", session=""), ""),
        (alone("Classify the user's message as spam or not.", agent_name="desk"), ""),
    ],
)
def test_purpose_of_a_utility_call_is_detected(trace: Trace, kind: str) -> None:
    assert trace.utility == kind


def test_agent_run_or_tool_request_is_no_utility_call() -> None:
    spans = Spans()
    spans.llm(spans.agent(), [system("You write titles for chat conversations."), user("hello")], "Ferries")
    assert built(spans).utility == ""
    spans = Spans()
    spans.llm(None, [system("You write titles for chat conversations."), user("hello")], says(asks()))
    assert built(spans).utility == ""


@pytest.mark.parametrize("kind", [Kind.AGENT, Kind.STEP])
def test_title_generated_last_is_not_the_answer(kind: Kind) -> None:
    spans = Spans()
    root = spans.add(kind)
    spans.llm(root, [user("When does it sail?")], "At nine.")
    spans.llm(root, [system("Generate a short title for this conversation."), user("When does it sail?")], "Sailing")
    found = built(spans)
    assert (found.input, found.output, found.llm_calls) == ("When does it sail?", "At nine.", 2)
