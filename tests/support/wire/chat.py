"""OpenAI chat completions, with ``reasoning_content``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tests.support.script import Conversation, Fault, Message, Reply, conversation
from tests.support.wire.parts import CREATED, Event, Ids, arguments_json, output_tokens, text_of, words


def parse(body: Mapping[str, Any]) -> Conversation:
    messages = [
        Message(m["role"], text_of(m.get("content")), tuple(c["function"]["name"] for c in m.get("tool_calls") or ()))
        for m in body.get("messages", ())
    ]
    return conversation(
        body.get("model", ""), messages, [t["function"]["name"] for t in body.get("tools") or () if "function" in t]
    )


def render(reply: Reply, conversation: Conversation, ids: Ids) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": reply.text or None}
    if reply.reasoning:
        message["reasoning_content"] = reply.reasoning
    if reply.calls:
        message["tool_calls"] = [
            {"id": ids("call_"), "type": "function", "function": {"name": c.name, "arguments": arguments_json(c)}}
            for c in reply.calls
        ]
    taken, given = conversation.input_tokens(), output_tokens(reply)
    return {
        "id": ids("chatcmpl-"),
        "object": "chat.completion",
        "created": CREATED,
        "model": conversation.model,
        "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls" if reply.calls else "stop"}],
        "usage": {
            "prompt_tokens": taken,
            "completion_tokens": given,
            "total_tokens": taken + given,
            "completion_tokens_details": {"reasoning_tokens": len(reply.reasoning) // 4},
        },
    }


def stream(response: dict[str, Any]) -> Iterator[Event]:
    """Return the response in chunks."""
    choice = response["choices"][0]
    message = choice["message"]
    head = {key: response[key] for key in ("id", "created", "model")} | {"object": "chat.completion.chunk"}
    for delta in _deltas(message):
        yield None, head | {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
    yield None, head | {"choices": [{"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}]}
    yield None, head | {"choices": [], "usage": response["usage"]}
    yield None, "[DONE]"


def _deltas(message: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield {"role": "assistant", "content": ""}
    yield from ({"reasoning_content": word} for word in words(message.get("reasoning_content") or ""))
    yield from ({"content": word} for word in words(message["content"] or ""))
    for index, call in enumerate(message.get("tool_calls", ())):
        arguments = call["function"]["arguments"]
        half = len(arguments) // 2
        yield {
            "tool_calls": [{"index": index, **call, "function": {**call["function"], "arguments": arguments[:half]}}]
        }
        yield {"tool_calls": [{"index": index, "function": {"arguments": arguments[half:]}}]}


def fault(fault: Fault) -> dict[str, Any]:
    return {"error": {"message": fault.message, "type": fault.kind, "param": None, "code": None}}
