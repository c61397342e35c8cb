"""Reads one message from a dictionary with its role and content, in any form that a provider or framework writes."""

from __future__ import annotations

from typing import Any

from pandaeval_otel.dialects._parts import blocks_of, outcome_of, part_of, parts_of, request_of, result_value, text_part
from pandaeval_otel.dialects._values import first, identifier, parsed
from pandaeval_otel.model import NOT_CAPTURED, Message, Part, Reasoning, Text, ToolRequest, ToolResponse

ROLES = {
    **dict.fromkeys(("system", "developer"), "system"),
    **dict.fromkeys(("user", "human"), "user"),
    **dict.fromkeys(("assistant", "ai", "model", "bot", "chatbot", "tool-call"), "assistant"),
    **dict.fromkeys(("tool", "function", "tool-response", "toolresult", "ipython"), "tool"),
}
_OURS = frozenset(ROLES.values())
# LangChain: "type": "human"; constructors: "id": [..., "HumanMessage"]; also "AIMessageChunk".
CLASS_ROLES = {"human": "user", "ai": "assistant", "system": "system", "tool": "tool", "function": "tool", "chat": ""}
ITEM_ROLES = {"function_call": "assistant", "reasoning": "assistant", "function_call_output": "tool"}
_WRAPPED = {"content", "message", "finish_reason", "role"}
BESIDE_PARTS = frozenset({"tool_calls", "tool_call_id", "function_call", "reasoning_content"})
"""Members of an OpenAI chat message that some emitters (LiteLLM) leave beside today's ``parts``."""
_SELDOM = frozenset(
    {
        *("kwargs", "data", "additional_kwargs", "response_metadata", "reasoning_content", "thinking"),
        *("toolCalls", "function_call", "finishReason", "stop_reason", "stopReason"),
    }
)
"""Members that few messages have: one set operation tells that a message has none of them."""


def message_of(item: dict[str, Any], role: str) -> Message:
    """Returns the message in a dictionary; ``role`` where it names none."""
    if type(item.get("parts")) is list:
        return otel_message(item, role)
    if _SELDOM.isdisjoint(item):
        role = role_of(item, role)
        said = _content_parts(item, role)
        if "tool_calls" in item:
            said += _requests(item["tool_calls"])
        return Message(true_role(role, said), tuple(said), identifier(item.get("finish_reason")))
    item = _unwrapped(item)
    role = role_of(item, role)
    thought = item.get("reasoning_content") or _member(item, "additional_kwargs", "reasoning_content")
    thoughts = (thought, item.get("thinking"))
    parts: list[Part] = [Reasoning(thought) for thought in thoughts if type(thought) is str and thought]
    parts += _content_parts(item, role)
    calls = item.get("tool_calls") or _member(item, "additional_kwargs", "tool_calls") or item.get("toolCalls")
    parts += _requests(calls)
    if type(item.get("function_call")) is dict:
        parts.append(request_of(item["function_call"]))
    return Message(true_role(role, parts), tuple(parts), finish_reason_of(item))


def _requests(calls: Any) -> list[Part]:
    calls = parsed(calls)
    return [request_of(call) for call in calls if type(call) is dict] if isinstance(calls, (list, tuple)) else []


def otel_message(item: dict[str, Any], role: str) -> Message:
    """Returns a message in today's form, which most have: a role and parts."""
    parts: list[Part] = []
    for part in item["parts"]:
        parts.append(part_of(part) if type(part) is dict else text_part(part))  # noqa: PERF401 - they are few
    word = item.get("role")
    said_by = (ROLES.get(word) if type(word) is str else None) or role_of(item, role)
    if not BESIDE_PARTS.isdisjoint(item):
        parts = with_members(parts, item, said_by)
    reason = "" if len(item) == 2 and "role" in item else finish_reason_of(item)
    return Message(true_role(said_by, parts) if said_by == "user" else said_by, tuple(parts), reason)


def with_members(parts: list[Part], item: dict[str, Any], role: str) -> list[Part]:
    """Returns ``parts`` completed from the members of ``item`` that are named in :data:`BESIDE_PARTS`: thoughts go
    before, calls behind, and the text of a message that answers a call becomes the call's result."""
    kinds = {type(part) for part in parts}
    call_id = identifier(item.get("tool_call_id"))
    if role == "tool" and call_id and ToolResponse not in kinds:
        text = "\n".join(part.text for part in parts if type(part) is Text)
        return [ToolResponse(result_value(text) if text else None, call_id, identifier(item.get("name")))]
    thought = item.get("reasoning_content")
    if type(thought) is str and thought and Reasoning not in kinds:
        parts = [Reasoning(thought), *parts]
    if ToolRequest not in kinds:
        parts = [*parts, *_requests(item.get("tool_calls"))]
        if type(item.get("function_call")) is dict:
            parts.append(request_of(item["function_call"]))
    return parts


def true_role(role: str, parts: list[Part]) -> str:
    """Returns ``tool`` for a message of role ``user`` that holds only tool results, as several frameworks write them;
    else ``role``."""
    if role != "user" or not parts or type(parts[0]) is not ToolResponse:
        return role
    return "tool" if all(type(part) is ToolResponse for part in parts) else role


def role_of(item: dict[str, Any], default: str) -> str:
    """Returns ``system | user | assistant | tool`` from a role, a LangChain type or a class name, else ``default``."""
    word = item.get("role")
    if type(word) is str and word:
        if word in _OURS:
            return word
        return ROLES.get(word) or ROLES.get(word.rpartition(".")[2].lower().replace("_", "-")) or default
    word = item.get("type")
    if type(word) is str:
        if word in ITEM_ROLES:
            return ITEM_ROLES[word]
        return CLASS_ROLES.get(word.lower().removesuffix("chunk").removesuffix("message")) or default
    return default


def _unwrapped(item: dict[str, Any]) -> dict[str, Any]:
    """Returns the members of a message in one of LangChain's serialised forms, else ``item``:
    ``{"lc": 1, "id": [.., class], "kwargs": {..}}`` or ``{"type", "data": {..}}``."""
    kwargs = item.get("kwargs")
    if type(kwargs) is dict and isinstance(item.get("id"), (list, tuple)):
        name = item["id"][-1] if item["id"] else ""
        return {**kwargs, "type": kwargs.get("type") or name}
    data = item.get("data")
    if type(data) is dict and "content" in data:
        return {"type": item.get("type"), **data}
    return item


def _content_parts(item: dict[str, Any], role: str) -> list[Part]:
    if "parts" in item:
        return list(parts_of(parsed(item["parts"])))
    kind = item.get("type")
    if type(kind) is str and kind in ITEM_ROLES:
        return [part_of(item)]
    content = item.get("content")
    if content is None:
        content = first(item, ("text", "blocks", "message"))  # blocks: LlamaIndex
    if type(content) is str and role != "tool":
        return [text_part(content)]
    if type(content) is dict and "type" not in content and not content.keys() - _WRAPPED:
        content = blocks_of(first(content, ("content", "message")))
    if role == "tool":
        if isinstance(content, (list, tuple)):
            parts = parts_of(content)
            if any(type(part) is ToolResponse for part in parts):
                return list(parts)
        call_id = identifier(item.get("tool_call_id") or item.get("id") or item.get("toolCallId"))
        return [ToolResponse(outcome_of(item, result_value(content)), call_id, identifier(item.get("name")))]
    if content is None:
        silent = "tool_calls" in item or "function_call" in item or "refusal" in item or "toolCalls" in item
        refusal = item.get("refusal")
        return [text_part(refusal)] if refusal else [] if silent else [NOT_CAPTURED]
    return list(parts_of(content))


def finish_reason_of(item: dict[str, Any]) -> str:
    if type(item.get("finish_reason")) is str:
        return identifier(item["finish_reason"])
    for key in ("finish_reason", "finishReason", "stop_reason", "stopReason"):
        if item.get(key) is not None:
            return identifier(item[key])
    return identifier(_member(item, "response_metadata", "finish_reason"))


def _member(item: dict[str, Any], key: str, inner: str) -> Any:
    value = item.get(key)
    return value.get(inner) if type(value) is dict else None
