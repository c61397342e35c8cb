"""Anthropic messages."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from tests.support.script import Conversation, Fault, Message, Reply, Served, conversation
from tests.support.wire.parts import Event, Ids, output_tokens, text_of


def parse(body: Mapping[str, Any]) -> Conversation:
    messages = [_message(m) for m in body.get("messages", ())]
    if body.get("system"):
        messages.insert(0, Message("system", text_of(body["system"])))
    return conversation(body.get("model", ""), messages, [t["name"] for t in body.get("tools") or ()])


def _message(message: Mapping[str, Any]) -> Message:
    content = message["content"]
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
    text = text_of([part for part in parts if part["type"] == "text"])
    return Message(message["role"], text, tuple(part["name"] for part in parts if part["type"] == "tool_use"))


def render(reply: Reply, conversation: Conversation, ids: Ids) -> dict[str, Any]:
    content: list[dict[str, Any]] = []
    if reply.reasoning:
        content.append({"type": "thinking", "thinking": reply.reasoning, "signature": ids("")})
    for served in reply.served:
        content += _served(served, ids)
    if reply.text:
        content.append({"type": "text", "text": reply.text})
    content += (
        {"type": "tool_use", "id": ids("toolu_"), "name": call.name, "input": dict(call.arguments)}
        for call in reply.calls
    )
    return {
        "id": ids("msg_"),
        "type": "message",
        "role": "assistant",
        "model": conversation.model,
        "content": content,
        "stop_reason": "tool_use" if reply.calls else "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": conversation.input_tokens(), "output_tokens": output_tokens(reply)},
    }


def _served(call: Served, ids: Ids) -> Iterator[dict[str, Any]]:
    call_id = ids("srvtoolu_")
    if call.kind == "mcp":
        call_id = ids("mcptoolu_")
        yield {
            "type": "mcp_tool_use",
            "id": call_id,
            "name": call.name,
            "server_name": "sports",
            "input": dict(call.arguments),
        }
        blocks = [{"type": "text", "text": call.error or call.result}]
        yield {"type": "mcp_tool_result", "tool_use_id": call_id, "is_error": bool(call.error), "content": blocks}
        return
    name = "code_execution" if call.kind == "code" else "web_search"
    yield {"type": "server_tool_use", "id": call_id, "name": name, "input": dict(call.arguments)}
    content: Any
    if call.error:
        content = {"type": f"{name}_tool_result_error", "error_code": call.error}
    elif call.kind == "code":
        streams = {"stdout": call.result, "stderr": "", "return_code": 0}
        content = {"type": "code_execution_result", **streams, "content": []}
    else:
        page = {
            "url": "https://races.example/2026",
            "title": call.result,
            "encrypted_content": ids(""),
            "page_age": None,
        }
        content = [{"type": "web_search_result", **page}]
    yield {"type": f"{name}_tool_result", "tool_use_id": call_id, "content": content}


def stream(response: dict[str, Any]) -> Iterator[Event]:
    """Send one delta per part, because clients read deltas."""
    yield "message_start", {"type": "message_start", "message": response | {"content": []}}
    for index, block in enumerate(response["content"]):
        empty, delta = _begun(block)
        yield "content_block_start", {"type": "content_block_start", "index": index, "content_block": empty}
        if delta:
            yield "content_block_delta", {"type": "content_block_delta", "index": index, "delta": delta}
        yield "content_block_stop", {"type": "content_block_stop", "index": index}
    delta = {"stop_reason": response["stop_reason"], "stop_sequence": None}
    yield "message_delta", {"type": "message_delta", "delta": delta, "usage": response["usage"]}
    yield "message_stop", {"type": "message_stop"}


def _begun(block: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return a starting block and its delta, if any."""
    if block["type"].endswith("_result"):
        return block, {}
    if block["type"].endswith("tool_use"):
        return block | {"input": {}}, {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
    key = block["type"]
    return block | {key: ""}, {"type": f"{key}_delta", key: block[key]}


def fault(fault: Fault) -> dict[str, Any]:
    return {"type": "error", "error": {"type": fault.kind, "message": fault.message}}
