"""OpenAI responses, in two events where they are streamed. The history is in the request, or kept by the server."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tests.support.script import Conversation, Message, Reply, conversation
from tests.support.wire.chat import fault
from tests.support.wire.parts import CREATED, Event, Ids, arguments_json, output_tokens, text_of

__all__ = ["fault", "parse", "render", "stream"]


def parse(body: Mapping[str, Any]) -> Conversation:
    """The conversation in a request body; its input is a string or a list of items."""
    messages = [message for message in map(_message, _items(body)) if message]
    return conversation(body.get("model", ""), messages, [t.get("name", "") for t in body.get("tools") or ()])


def with_history(body: Mapping[str, Any], histories: Mapping[str, list[Any]]) -> dict[str, Any]:
    """The body as if all that went before were in its input. ``histories``: input and output, by response id."""
    before = histories.get(body.get("previous_response_id") or "", [])
    return {**body, "input": [*before, *_items(body)]}


def _items(body: Mapping[str, Any]) -> list[Any]:
    given = body.get("input", [])
    return [{"role": "user", "content": given}] if isinstance(given, str) else given


def _message(item: Mapping[str, Any]) -> Message | None:
    kind = item.get("type", "message")
    if kind == "message":
        return Message(item["role"], text_of(item.get("content")))
    if kind == "function_call":
        return Message("assistant", calls=(item["name"],))
    if kind == "function_call_output":
        return Message("tool", text_of(item.get("output")))
    return None


def render(reply: Reply, conversation: Conversation, ids: Ids) -> dict[str, Any]:
    """The response body."""
    taken, given = conversation.input_tokens(), output_tokens(reply)
    return {
        "id": ids("resp_"),
        "object": "response",
        "created_at": CREATED,
        "status": "completed",
        "model": conversation.model,
        "output": list(_output(reply, ids)),
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": {
            "input_tokens": taken,
            "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
            "output_tokens": given,
            "output_tokens_details": {"reasoning_tokens": len(reply.reasoning) // 4},
            "total_tokens": taken + given,
        },
    }


def _output(reply: Reply, ids: Ids) -> Iterator[dict[str, Any]]:
    if reply.reasoning:
        summary = [{"type": "summary_text", "text": reply.reasoning}]
        yield {"id": ids("rs_"), "type": "reasoning", "summary": summary}
    if reply.text:
        content = [{"type": "output_text", "text": reply.text, "annotations": []}]
        yield {"id": ids("msg_"), "type": "message", "role": "assistant", "status": "completed", "content": content}
    for call in reply.calls:
        yield {
            "id": ids("fc_"),
            "type": "function_call",
            "call_id": ids("call_"),
            "name": call.name,
            "arguments": arguments_json(call),
            "status": "completed",
        }


def stream(response: dict[str, Any]) -> Iterator[Event]:
    """Two events only, the first and the last; deltas are left out."""
    yield "response.created", {"type": "response.created", "sequence_number": 0, "response": response | {"output": []}}
    yield "response.completed", {"type": "response.completed", "sequence_number": 1, "response": response}
