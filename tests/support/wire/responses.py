"""OpenAI responses, with history in the request or on the server."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tests.support.script import Conversation, Message, Reply, Served, conversation
from tests.support.wire.chat import fault
from tests.support.wire.parts import CREATED, Event, Ids, arguments_json, output_tokens, text_of

__all__ = ["fault", "parse", "render", "stream"]


def parse(body: Mapping[str, Any]) -> Conversation:
    """Parse a body whose input is a string or list."""
    messages = [message for message in map(_message, _items(body)) if message]
    return conversation(body.get("model", ""), messages, [t.get("name", "") for t in body.get("tools") or ()])


def with_history(body: Mapping[str, Any], histories: Mapping[str, list[Any]]) -> dict[str, Any]:
    """Add earlier input and output. ``histories``: by response ID."""
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
    for served in reply.served:
        yield _served(served, ids)
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


def _served(call: Served, ids: Ids) -> dict[str, Any]:
    """Return an item with call and result; a search has only its query."""
    status = "failed" if call.error else "completed"
    match call.kind:
        case "search":
            return {
                "id": ids("ws_"),
                "type": "web_search_call",
                "status": status,
                "action": {"type": "search", **call.arguments},
            }
        case "mcp":
            return {
                "id": ids("mcp_"),
                "type": "mcp_call",
                "server_label": "sports",
                "name": call.name,
                "arguments": arguments_json(call),
                "output": None if call.error else call.result,
                "error": call.error or None,
                "status": status,
            }
        case "code":
            return {
                "id": ids("ci_"),
                "type": "code_interpreter_call",
                "container_id": ids("cntr_"),
                "outputs": [{"type": "logs", "logs": call.result}],
                "status": status,
                **call.arguments,
            }
    found = {"file_id": ids("file-"), "filename": "rules.md", "score": 0.9, "text": call.result, "attributes": {}}
    return {"id": ids("fs_"), "type": "file_search_call", "status": status, "results": [found], **call.arguments}


def stream(response: dict[str, Any]) -> Iterator[Event]:
    """Send items in order, then the whole response."""
    for number, event in enumerate(_events(response)):
        yield event["type"], {**event, "sequence_number": number}


def _events(response: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield {"type": "response.created", "response": response | {"output": [], "status": "in_progress"}}
    for index, item in enumerate(response["output"]):
        at = {"output_index": index, "item_id": item["id"]}
        yield {"type": "response.output_item.added", "output_index": index, "item": _begun(item)}
        match item["type"]:
            case "message":
                part, text = item["content"][0], item["content"][0]["text"]
                at["content_index"] = 0
                yield {"type": "response.content_part.added", **at, "part": part | {"text": ""}}
                yield {"type": "response.output_text.delta", **at, "delta": text, "logprobs": []}
                yield {"type": "response.output_text.done", **at, "text": text, "logprobs": []}
                yield {"type": "response.content_part.done", **at, "part": part}
            case "function_call" | "mcp_call":
                kind = "function_call" if item["type"] == "function_call" else "mcp_call"
                yield {"type": f"response.{kind}_arguments.delta", **at, "delta": item["arguments"]}
                yield {"type": f"response.{kind}_arguments.done", **at, "arguments": item["arguments"]} | (
                    {"name": item["name"]} if kind == "function_call" else {}
                )
            case "code_interpreter_call":
                yield {"type": "response.code_interpreter_call_code.delta", **at, "delta": item["code"]}
                yield {"type": "response.code_interpreter_call_code.done", **at, "code": item["code"]}
        yield {"type": "response.output_item.done", "output_index": index, "item": item}
    yield {"type": "response.completed", "response": response}


def _begun(item: dict[str, Any]) -> dict[str, Any]:
    empty: dict[str, Any] = {"content": [], "arguments": "", "code": "", "outputs": [], "results": [], "output": None}
    return {**item, **{key: empty[key] for key in empty.keys() & item.keys()}, "status": "in_progress"}
