"""GitHub Copilot's command line: the conventions, and blocks before the user's words."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pandaeval_otel.model import Kind
from tests.unit.dialects.composed import ASK, SAID, seen, texts


def run(text: str, **more: Any) -> dict[str, Any]:
    messages = [{"role": "user", "parts": [{"type": "text", "content": text}]}]
    return {
        "gen_ai.operation.name": "invoke_agent",
        "github.copilot.turn_count": 1,
        "gen_ai.input.messages": json.dumps(messages),
        **more,
    }


@pytest.mark.parametrize(
    "before",
    [
        "",
        "<current_datetime>2026-11-28T08:28:39.744+00:00</current_datetime>\n\n",
        "<current_datetime>now</current_datetime>\n<system_reminder>Be kind.</system_reminder>\n",
    ],
)
@pytest.mark.parametrize("scope", ["github.copilot", "a name of one's own"])
def test_the_users_words_alone_are_the_input(before: str, scope: str) -> None:
    span = seen(run(f"{before}Weather in Oslo?"), scope)
    assert (span.kind, span.input) == (Kind.AGENT, (ASK,))


def test_what_was_typed_stands_at_its_place_in_the_history() -> None:
    history = [
        {"role": "user", "parts": [{"type": "text", "content": "<context>x</context> And in Bergen?"}]},
        {"role": "assistant", "parts": [{"type": "text", "content": SAID}]},
        {"role": "user", "parts": [{"type": "text", "content": "<context>y</context> Weather in Oslo?"}]},
        {"role": "assistant", "parts": [{"type": "tool_call", "id": "c9", "name": "get_weather", "arguments": {}}]},
    ]
    attributes = {"gen_ai.input.messages": json.dumps(history), "copilot_chat.user_request": "Weather in Oslo?"}
    span = seen({"gen_ai.operation.name": "chat", **attributes})
    assert [role for role, _ in texts(span.input)] == ["user", "assistant", "user", "assistant"]
    assert span.input is not None
    assert span.input[2] == ASK
    assert seen({"gen_ai.operation.name": "chat", "copilot_chat.user_request": "Weather in Oslo?"}).input == (ASK,)
