"""Laminar."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pandaeval_otel.model import Captured, Kind
from tests.unit.dialects.composed import ASK, SAID, seen, texts

PARENT = "d" * 16


@pytest.mark.parametrize(
    ("word", "kind"),
    [
        ("LLM", Kind.LLM),
        ("TOOL", Kind.TOOL),
        ("EVALUATOR", Kind.EVALUATION),
        ("EXECUTOR", Kind.STEP),
    ],
)
def test_span_type_sets_the_kind(word: str, kind: Kind) -> None:
    assert seen({"lmnr.span.type": word}).kind is kind


def test_a_function_without_parent_is_a_workflow() -> None:
    attributes = {
        "lmnr.span.type": "DEFAULT",
        "lmnr.span.input": '{"question": "Weather in Oslo?"}',
        "lmnr.span.output": f'"{SAID}"',
    }
    span = seen(attributes, name="answer")
    assert (span.kind, texts(span.output)) == (Kind.WORKFLOW, [("assistant", SAID)])
    assert seen(attributes, name="answer", parent_id=PARENT).kind is Kind.STEP


def test_the_genai_operation_wins_over_the_default_span_type() -> None:
    attributes = {"lmnr.span.type": "DEFAULT", "lmnr.span.input": "{}", "gen_ai.operation.name": "invoke_agent"}
    assert seen(attributes).kind is Kind.AGENT


def test_a_model_call() -> None:
    attributes = {
        "lmnr.span.type": "LLM",
        "lmnr.span.input": json.dumps([{"role": "user", "content": "Weather in Oslo?"}]),
        "lmnr.span.output": json.dumps([{"role": "assistant", "content": SAID}]),
    }
    span = seen(attributes)
    assert (span.input, texts(span.output)) == ((ASK,), [("assistant", SAID)])


def test_genai_messages_win_over_laminar_messages() -> None:
    said: dict[str, Any] = {"role": "user", "parts": [{"type": "text", "content": "Weather in Oslo?"}]}
    attributes = {
        "lmnr.span.type": "LLM",
        "lmnr.span.input": "something else",
        "gen_ai.operation.name": "chat",
        "gen_ai.input.messages": json.dumps([said]),
    }
    assert seen(attributes).input == (ASK,)


def test_the_tool_name_is_the_span_name() -> None:
    attributes = {"lmnr.span.type": "TOOL", "lmnr.span.input": '{"city": "Oslo"}', "lmnr.span.output": '{"temp_c": 4}'}
    span = seen(attributes, name="get_weather")
    assert (span.tool_name, span.arguments, span.result) == (
        "get_weather",
        Captured({"city": "Oslo"}),
        Captured({"temp_c": 4}),
    )


def test_sessions_and_users() -> None:
    prefix = "lmnr.association.properties."
    span = seen({"lmnr.span.type": "LLM", f"{prefix}session_id": "chat-1", f"{prefix}user_id": "u-1"})
    assert ([name for _, name in span.session_ids], span.user_id) == (["chat-1"], "u-1")
