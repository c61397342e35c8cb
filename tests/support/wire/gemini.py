"""Gemini ``generateContent`` and ``streamGenerateContent``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tests.support.script import Conversation, Fault, Message, Reply, conversation
from tests.support.wire.parts import Event, Ids, output_tokens, text_of


def parse(body: Mapping[str, Any]) -> Conversation:
    """Parse a body; the model is in the path."""
    messages = [_message(content) for content in body.get("contents", ())]
    tools = [f["name"] for t in body.get("tools") or () for f in t.get("functionDeclarations", ())]
    return conversation("", messages, tools)


def _message(content: Mapping[str, Any]) -> Message:
    parts = content.get("parts") or []
    text = text_of([part for part in parts if not part.get("thought")])
    calls = tuple(part["functionCall"]["name"] for part in parts if "functionCall" in part)
    return Message("assistant" if content.get("role") == "model" else "user", text, calls)


def render(reply: Reply, conversation: Conversation, ids: Ids) -> dict[str, Any]:
    parts: list[dict[str, Any]] = []
    if reply.reasoning:
        parts.append({"text": reply.reasoning, "thought": True})
    if reply.text:
        parts.append({"text": reply.text})
    parts += (
        {"functionCall": {"id": ids("fn-", 12), "name": call.name, "args": dict(call.arguments)}}
        for call in reply.calls
    )
    taken, given, thought = conversation.input_tokens(), output_tokens(reply), len(reply.reasoning) // 4
    return {
        "candidates": [{"content": {"role": "model", "parts": parts}, "index": 0, "finishReason": "STOP"}],
        "usageMetadata": {
            "promptTokenCount": taken,
            "candidatesTokenCount": given - thought,
            "thoughtsTokenCount": thought,
            "totalTokenCount": taken + given,
        },
        "modelVersion": "gemini-2.5-flash",
        "responseId": ids("", 16),
    }


def stream(response: dict[str, Any]) -> Iterator[Event]:
    yield None, response


def fault(fault: Fault) -> dict[str, Any]:
    return {"error": {"code": fault.status, "message": fault.message, "status": "INVALID_ARGUMENT"}}
