"""Messages from whatever a dialect's attribute, event or log body holds.

Understood: OTel messages (``role`` + ``parts``), OpenAI chat messages and Responses items, Anthropic and Bedrock
messages, Gemini contents, LangChain messages (constructors, dictionaries, pairs), and the request and response bodies
around them; each as JSON text (also encoded twice, or cut short) or already structured.
"""

from __future__ import annotations

import json
from functools import partial
from typing import Any

from pandaeval_otel.dialects._parts import blocks_of, part_of, parts_of, request_of, result_value, text_part
from pandaeval_otel.dialects._recent import Recent
from pandaeval_otel.dialects._salvage import salvage, starts_like_json, without_cut_values
from pandaeval_otel.dialects._values import first, hidden, identifier, parsed
from pandaeval_otel.model import NOT_CAPTURED, Message, OtherPart, Part, Reasoning, Text, ToolResponse

Messages = tuple[Message, ...]

_ROLES = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "human": "user",
    "assistant": "assistant",
    "ai": "assistant",
    "model": "assistant",
    "bot": "assistant",
    "chatbot": "assistant",
    "tool-call": "assistant",
    "tool": "tool",
    "function": "tool",
    "tool-response": "tool",
    "toolresult": "tool",
    "ipython": "tool",
}
# LangChain: "type": "human"; constructors: "id": [..., "HumanMessage"]; also "AIMessageChunk".
_CLASS_ROLES = {"human": "user", "ai": "assistant", "system": "system", "tool": "tool", "function": "tool", "chat": ""}
_ITEM_ROLES = {"function_call": "assistant", "reasoning": "assistant", "function_call_output": "tool"}
_LISTS = ("messages", "contents", "choices", "candidates", "generations", "input_messages", "output_messages")
_WRAPPED = {"content", "message", "finish_reason", "role"}
_MAX_NESTING = 6


def messages_of(value: Any, role: str) -> Messages | None:
    """The messages in ``value``; ``role`` is what a message without one gets (``user`` for inputs).

    ``()`` for a captured, empty list; ``None`` for an absent value, a placeholder, or messages all of whose content was
    hidden. A message whose content was hidden beside others that were not holds :data:`NOT_CAPTURED`.
    """
    return read_messages(value, role)[0]


def read_messages(value: Any, role: str) -> tuple[Messages | None, bool]:
    """As :func:`messages_of`, and whether the text had been cut short (its last message is then incomplete)."""
    if value is None:
        return None, False
    return _READ[role](value) if type(value) is str and role in _READ else _read(value, role)


def _read(value: Any, role: str) -> tuple[Messages | None, bool]:
    value, cut = _structure(value)
    if value is None:
        return None, cut
    found = tuple(_messages(value, role, 0))
    if cut:
        found = without_cut_values(found)
    return (found if not found or _tells(found) else None), cut


def _tells(messages: Messages) -> bool:
    for message in messages:
        for part in message.parts:
            if part is not NOT_CAPTURED:
                return True
    return False


def _structure(value: Any) -> tuple[Any, bool]:
    """The structure that ``value`` holds or spells, ``None`` for placeholders, and whether it had been cut short."""
    if isinstance(value, (str, bytes)):
        value = parsed(value)
        if type(value) is str and starts_like_json(value):
            saved = salvage(value)
            # What is neither JSON nor the beginning of it is somebody's text, unless it begins as only messages do.
            return (value, False) if saved is None and not value.startswith('[{"') else (saved, True)
    if type(value) is list:
        return value, False
    return (None, False) if hidden(value) or value in ("", {}) else (value, False)


def message_of(item: dict[str, Any], role: str) -> Message:
    """One message from a dictionary that holds its role and content."""
    if type(item.get("parts")) is list:
        return _otel_message(item, role)
    item = _unwrapped(item)
    role = role_of(item, role)
    thoughts = (item.get(key) for key in ("reasoning_content", "thinking"))
    parts: list[Part] = [Reasoning(thought) for thought in thoughts if type(thought) is str and thought]
    parts += _content_parts(item, role)
    calls = item.get("tool_calls") or _member(item, "additional_kwargs", "tool_calls") or item.get("toolCalls")
    parts += [request_of(call) for call in _list(calls) if type(call) is dict]
    if type(item.get("function_call")) is dict:
        parts.append(request_of(item["function_call"]))
    return Message(_true_role(role, parts), tuple(parts), _finish_reason(item))


def _otel_message(item: dict[str, Any], role: str) -> Message:
    """Today's form, which most messages have: nothing but a role and parts."""
    parts = [part_of(part) if type(part) is dict else text_part(part) for part in item["parts"]]
    reason = "" if len(item) == 2 and "role" in item else _finish_reason(item)
    return Message(_true_role(role_of(item, role), parts), tuple(parts), reason)


def _true_role(role: str, parts: list[Part]) -> str:
    """Tool results come with the role ``user`` from several frameworks; no user wrote them."""
    if role != "user" or not parts or type(parts[0]) is not ToolResponse:
        return role
    return "tool" if all(type(part) is ToolResponse for part in parts) else role


def role_of(item: dict[str, Any], default: str) -> str:
    """``system | user | assistant | tool`` from a role, a LangChain type or class name; ``default`` where none says."""
    word = item.get("role")
    if type(word) is str and word:
        return _ROLES.get(word) or _ROLES.get(word.rpartition(".")[2].lower().replace("_", "-")) or default
    word = item.get("type")
    if type(word) is str:
        if word in _ITEM_ROLES:
            return _ITEM_ROLES[word]
        return _CLASS_ROLES.get(word.lower().removesuffix("chunk").removesuffix("message")) or default
    return default


def system_text(value: Any) -> str | None:
    """The text of system instructions: plain text, a JSON array of parts, or messages; ``None`` if not captured."""
    return _SYSTEM(value) if type(value) is str else _system_text(value)


def _system_text(value: Any) -> str | None:
    value = parsed(value)
    if hidden(value) or value in ("", {}):
        return None
    if type(value) is str and not starts_like_json(value):
        return value
    if type(value) is dict and "role" not in value and "parts" not in value:
        value = [value]
    found = [text for message in messages_of(value, "system") or () if (text := message.text)]
    return "\n".join(found) if found else None


def _messages(value: Any, role: str, nesting: int) -> list[Message]:
    if isinstance(value, (list, tuple)):
        if _is_langchain_pair(value):
            return [Message(_ROLES[value[0]], (text_part(value[1]),))]
        return _from_list(value, role, nesting)
    if type(value) is dict:
        return _from_dict(value, role, nesting)
    return [Message(role, (text_part(value),))]


def _from_list(items: list[Any] | tuple[Any, ...], role: str, nesting: int) -> list[Message]:
    found: list[Message] = []
    loose: list[Part] = []
    for item in items:
        if type(item) is dict and type(item.get("parts")) is list and "role" in item:
            found.append(_otel_message(item, role))
        elif type(item) is dict and _is_block(item):
            loose.append(part_of(item))
        elif nesting < _MAX_NESTING:
            found += _messages(item, role, nesting + 1)
    return [Message(_true_role(role, loose), tuple(loose)), *found] if loose else found


def _from_dict(item: dict[str, Any], role: str, nesting: int) -> list[Message]:
    if nesting < _MAX_NESTING and "role" not in item:
        for key in _LISTS:
            if isinstance(item.get(key), (list, tuple)):
                return _messages(item[key], role, nesting + 1)
        inner = parsed(item.get("message"))
        if type(inner) is dict:
            return _with_finish(_messages(inner, role, nesting + 1), item)
        if type(item.get("content")) is dict and ("parts" in item["content"] or "role" in item["content"]):
            return _with_finish(_messages(item["content"], role, nesting + 1), item)
    if not _is_block(item):
        return [message_of(item, role)]
    part = part_of(item)
    if part == OtherPart("", item):  # neither message nor block: the answer itself is a JSON object
        part = Text(json.dumps(item, ensure_ascii=False, default=str))
    return [Message(role, (part,))]


def _is_block(item: dict[str, Any]) -> bool:
    """Whether ``item`` is a content block rather than a message: it names no role and no member of a message."""
    if "role" in item or "parts" in item or "kwargs" in item or "tool_calls" in item or "data" in item:
        return False
    kind = item.get("type")
    if type(kind) is str:
        return (
            kind not in _ITEM_ROLES and kind.lower().removesuffix("chunk").removesuffix("message") not in _CLASS_ROLES
        )
    return "content" not in item and "message" not in item


def _unwrapped(item: dict[str, Any]) -> dict[str, Any]:
    """LangChain's serialised forms: ``{"lc": 1, "id": [.., class], "kwargs": {..}}`` and ``{"type", "data": {..}}``."""
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
    if type(kind) is str and kind in _ITEM_ROLES:
        return [part_of(item)]
    content = first(item, ("content", "text", "message"))
    if type(content) is dict and "type" not in content and not content.keys() - _WRAPPED:
        content = blocks_of(first(content, ("content", "message")))
    if role == "tool":
        return _tool_content(item, content)
    if content is None:
        silent = "tool_calls" in item or "function_call" in item or "refusal" in item or "toolCalls" in item
        refusal = item.get("refusal")
        return [text_part(refusal)] if refusal else [] if silent else [NOT_CAPTURED]
    return list(parts_of(content))


def _tool_content(item: dict[str, Any], content: Any) -> list[Part]:
    if isinstance(content, (list, tuple)):
        parts = parts_of(content)
        if any(type(part) is ToolResponse for part in parts):
            return list(parts)
    call_id = identifier(item.get("tool_call_id") or item.get("id") or item.get("toolCallId"))
    return [ToolResponse(result_value(content), call_id, identifier(item.get("name")))]


def _with_finish(found: list[Message], item: dict[str, Any]) -> list[Message]:
    reason = _finish_reason(item)
    if len(found) == 1 and reason and not found[0].finish_reason:
        return [Message(found[0].role, found[0].parts, reason)]
    return found


def _finish_reason(item: dict[str, Any]) -> str:
    if type(item.get("finish_reason")) is str:
        return identifier(item["finish_reason"])
    for key in ("finish_reason", "finishReason", "stop_reason", "stopReason"):
        if item.get(key) is not None:
            return identifier(item[key])
    return identifier(_member(item, "response_metadata", "finish_reason"))


def _member(item: dict[str, Any], key: str, inner: str) -> Any:
    value = item.get(key)
    return value.get(inner) if type(value) is dict else None


def _list(value: Any) -> list[Any]:
    value = parsed(value)
    return list(value) if isinstance(value, (list, tuple)) else []


def _is_langchain_pair(value: list[Any] | tuple[Any, ...]) -> bool:
    return len(value) == 2 and type(value[0]) is str and value[0] in _ROLES and type(value[1]) is str


_READ = {role: Recent(partial(_read, role=role)) for role in ("user", "assistant")}
_SYSTEM = Recent(_system_text)
