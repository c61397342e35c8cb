"""GitHub Copilot and VS Code."""

from __future__ import annotations

import json

from tests.unit.dialects.composed import ASK, SAID, seen, texts


def test_the_typed_request_replaces_the_last_user_message_in_the_history() -> None:
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
