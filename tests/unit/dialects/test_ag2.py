"""AG2."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pandaeval_otel.model import Kind, Usage
from tests.unit.dialects.composed import SAID, seen, texts

SCOPE = "opentelemetry.instrumentation.ag2"
QUESTION = "Weather in Oslo?"


def told(*said: tuple[str, str]) -> str:
    return json.dumps([{"role": role, "parts": [{"type": "text", "content": text}]} for role, text in said])


def chat(made: str) -> dict[str, Any]:
    return {
        "ag2.span.type": "conversation",
        "gen_ai.operation.name": "conversation",
        "gen_ai.agent.name": "user_proxy",
        "gen_ai.conversation.id": "3041",
        "gen_ai.input.messages": told(("user", QUESTION)),
        "gen_ai.output.messages": made,
    }


@pytest.mark.parametrize(
    ("word", "kind"),
    [
        ("agent", Kind.AGENT),
        ("llm", Kind.LLM),
        ("tool", Kind.TOOL),
        ("conversation", Kind.WORKFLOW),
        ("speaker_selection", Kind.STEP),
        ("human_input", Kind.STEP),
        ("envelope", Kind.STEP),
    ],
)
def test_span_type_sets_the_kind(word: str, kind: Kind) -> None:
    assert seen({"ag2.span.type": word}).kind is kind


def test_a_usage_span_is_no_model_call() -> None:
    attributes = {"ag2.span.type": "usage", "gen_ai.response.model": "gpt-x", "gen_ai.usage.input_tokens": 7}
    assert seen(attributes, SCOPE, name="record_usage model_call").kind is Kind.STEP


def test_the_history_of_the_chat_initiator_is_read_with_swapped_roles() -> None:
    made = told(("assistant", QUESTION), ("user", SAID))
    span = seen(chat(made), SCOPE, name="conversation user_proxy")
    assert (texts(span.input), texts(span.output)) == ([("user", QUESTION)], [("assistant", SAID)])


def test_earlier_chats_in_the_history_are_left_out() -> None:
    made = told(("assistant", "Hi"), ("user", "Hello."), ("assistant", QUESTION), ("user", SAID))
    assert texts(seen(chat(made), SCOPE, name="conversation user_proxy").output) == [("assistant", SAID)]


def test_the_chat_initiator_is_not_the_agent_and_the_chat_id_is_no_session() -> None:
    span = seen(chat("[]"), SCOPE, name="conversation user_proxy")
    assert (span.agent_name, span.session_ids) == ("", ())


def test_thinking_tokens_are_read_as_reasoning_usage() -> None:
    attributes = {
        "ag2.span.type": "llm",
        "gen_ai.operation.name": "chat",
        "gen_ai.usage.input_tokens": 12,
        "gen_ai.usage.output_tokens": 9,
        "gen_ai.usage.thinking_tokens": 4,
    }
    assert seen(attributes, SCOPE).usage == Usage(input=12, output=9, reasoning=4)
