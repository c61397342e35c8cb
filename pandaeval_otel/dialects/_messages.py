"""Reads messages from attributes, events or log bodies, structured or as JSON text.

Supports OTel, OpenAI (chat, Responses), Anthropic, Bedrock, Gemini and LangChain messages, and request and response
bodies. Text may be encoded twice or cut.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pandaeval_otel.base._json import as_text
from pandaeval_otel.base.recent import GrowingList, Recent
from pandaeval_otel.dialects import _hosted
from pandaeval_otel.dialects._message_edits import Messages, has_content, without_cut_values
from pandaeval_otel.dialects._parts import (
    blocks_of,
    outcome_of,
    parts_in,
    parts_of,
    request_of,
    result_value,
    text_part,
)
from pandaeval_otel.dialects._thoughts import split_thoughts
from pandaeval_otel.dialects._values import (
    Object,
    as_dict,
    first,
    hidden,
    identifier,
    is_prose,
    parsed,
    salvage,
    starts_like_json,
)
from pandaeval_otel.model import NOT_CAPTURED, Message, OtherPart, Part, Reasoning, Text, ToolRequest, ToolResponse

MaybeCut = tuple[Messages | None, bool]
"""Messages, and whether a length limit cut them short."""

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
_BLOCKS = frozenset({"text", "input_text", "output_text", "tool_call", "tool_call_response", "tool_use", "tool_result"})
_LISTS = ("messages", "contents", "choices", "candidates", "generations", "input_messages", "output_messages")
_ANY_LIST = frozenset(_LISTS)
_SAID = frozenset({"content", "parts", "tool_calls"})
_MAX_NESTING = 6
_REASON_KEYS = ("finishReason", "stop_reason", "stopReason")
_CALLS = frozenset({"tool_calls", "function_call", "refusal", "toolCalls"})
"""Members of messages that need no content."""
_CONVERSATIONS: GrowingList[Messages] = GrowingList()
BESIDE_PARTS = frozenset({"tool_calls", "tool_call_id", "function_call", "reasoning_content"})
"""Members of an OpenAI chat message that some emitters (LiteLLM) leave beside ``parts``."""


def message_of(item: Object, role: str) -> Message:
    if type(item.get("parts")) is list:
        return otel_message(item, role)
    # LangChain's serialised forms: {"lc": 1, "id": [.., class], "kwargs": {..}} and {"type", "data": {..}}.
    kwargs, data = item.get("kwargs"), item.get("data")
    if type(kwargs) is dict and isinstance(item.get("id"), (list, tuple)):
        name = next(reversed(item["id"]), "")
        item = {**kwargs, "type": kwargs.get("type") or name}
    elif type(data) is dict and "content" in data:
        item = {"type": item.get("type"), **data}
    role = role_of(item, role)
    more = as_dict(item.get("additional_kwargs"))
    thoughts = (item.get("reasoning_content") or more.get("reasoning_content"), item.get("thinking"))
    parts: list[Part] = [Reasoning(thought) for thought in thoughts if type(thought) is str and thought]
    parts += _content_parts(item, role)
    calls = _requests(item.get("tool_calls") or more.get("tool_calls") or item.get("toolCalls"))
    if calls:
        known = {part.id for part in parts if type(part) is ToolRequest and part.id}
        parts += [call for call in calls if call.id not in known]  # LangChain writes each a second time
    if type(item.get("function_call")) is dict:
        parts.append(request_of(item["function_call"]))
    parts = [*split_thoughts(role, parts)] if role == "assistant" else parts
    return Message(true_role(role, parts), tuple(parts), finish_reason_of(item))


def _requests(calls: Any) -> list[ToolRequest]:
    calls = parsed(calls)
    if isinstance(calls, (list, tuple)):
        return [request_of(call) for call in calls if type(call) is dict]
    return []


def otel_message(item: Object, role: str) -> Message:
    parts = list(parts_of([part if type(part) is dict else _decoded(part) for part in item["parts"]]))
    word = item.get("role")
    speaker = (ROLES.get(word) if type(word) is str else None) or role_of(item, role)
    if not BESIDE_PARTS.isdisjoint(item):
        parts = with_members(parts, item, speaker)
    reason = "" if len(item) == 2 and "role" in item else finish_reason_of(item)
    if speaker == "assistant":
        parts = [*split_thoughts(speaker, parts)]
    return Message(true_role(speaker, parts) if speaker == "user" else speaker, tuple(parts), reason)


def _decoded(content: Any) -> Any:
    if type(content) is not str or not content.startswith(('{"type"', '[{"type"')):
        return content
    spelled = parsed(content)
    parts = spelled if type(spelled) is list else [spelled]
    if all(type(part) is dict and part.get("type") in _BLOCKS for part in parts):
        return spelled
    return content


def with_members(parts: list[Part], item: Object, role: str) -> list[Part]:
    """Return ``parts`` plus the :data:`BESIDE_PARTS` of ``item``: thoughts first, calls last.

    Text that answers a call becomes a result.
    """
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
    """Return ``tool`` for a ``user`` message with only tool results, else ``role``."""
    if role != "user" or not parts or type(parts[0]) is not ToolResponse:
        return role
    if all(type(part) is ToolResponse for part in parts):
        return "tool"
    return role


def role_of(item: Object, default: str) -> str:
    """Return ``system | user | assistant | tool`` from a role, LangChain type or class name, else ``default``."""
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


def _content_parts(item: Object, role: str) -> Iterable[Part]:
    if "parts" in item:
        return parts_of(parsed(item["parts"]))
    kind = item.get("type")
    if type(kind) is str and kind in ITEM_ROLES:
        return parts_in(item)
    content = item.get("content")
    if content is None:
        content = first(item, ("text", "blocks", "message"))  # blocks: LlamaIndex
    content = _decoded(content)
    if type(content) is dict and "type" not in content and not content.keys() - _WRAPPED:
        content = blocks_of(first(content, ("content", "message")))
    if role == "tool":
        return _results(item, content)
    if content is not None:
        return parts_of(content)
    if item.get("refusal"):
        return (text_part(item["refusal"]),)
    if _CALLS.isdisjoint(item):
        return (NOT_CAPTURED,)
    return ()


def _results(item: Object, content: Any) -> Iterable[Part]:
    if isinstance(content, (list, tuple)):
        parts = parts_of(content)
        if any(type(part) is ToolResponse for part in parts):
            return parts
    call_id = identifier(item.get("tool_call_id") or item.get("id") or item.get("toolCallId"))
    return (ToolResponse(outcome_of(item, result_value(content)), call_id, identifier(item.get("name"))),)


def finish_reason_of(item: Object) -> str:
    reason = item.get("finish_reason")
    if reason is None:
        reason = first(item, _REASON_KEYS)
    if reason is None:
        reason = as_dict(item.get("response_metadata")).get("finish_reason")
    return identifier(reason)


def messages_of(value: Any, role: str) -> Messages | None:
    """Return the messages in ``value``; ``role`` is the default.

    ``()`` for a captured empty list; ``None`` if absent, a placeholder or fully hidden. A hidden message among others
    holds :data:`NOT_CAPTURED`.
    """
    return read_messages(value, role)[0]


def read_messages(value: Any, role: str) -> MaybeCut:
    """Read as :func:`messages_of`, and return whether the text was cut. The last message is then incomplete."""
    if value is None:
        return None, False
    if type(value) is str and role == "user":
        return _read_given(value)
    if type(value) is str and role == "assistant":
        return _read_made(value)
    return _read(value, role)


def was_cut(value: Any) -> bool:
    return _structure(value)[1]


@Recent
def _read_given(text: str) -> MaybeCut:
    before, rest = _CONVERSATIONS.split(text) or ((), text)
    items = parsed(rest) if rest.startswith("[") else None
    if type(items) is list and all(type(item) is dict and "role" in item for item in items):
        messages = (*before, *[message_of(item, "user") for item in items])
        if len(messages) > len(before) and (before or has_content(messages)):
            _CONVERSATIONS.keep(text, messages)
            return messages, False
    return _read(text, "user")


@Recent
def _read_made(text: str) -> MaybeCut:
    return _read(text, "assistant")


def _read(value: Any, role: str) -> MaybeCut:
    value, cut = _structure(value)
    if value is None:
        return None, cut
    messages = tuple(_messages(value, role, 0))
    if cut:
        messages = without_cut_values(messages)
    return (messages if not messages or has_content(messages) else None), cut


def _structure(value: Any) -> tuple[Any, bool]:
    if isinstance(value, (str, bytes)):
        value = parsed(value)
        if type(value) is str and starts_like_json(value):
            saved = salvage(value)
            # Text that is neither JSON nor the beginning of it was written by somebody, unless it begins like messages.
            if saved is None and not value.startswith('[{"'):
                return (value, False)
            return (saved, True)
    if type(value) is list:
        return _spelled_out(value)
    return (None if hidden(value) or value in ("", {}) else value), False


def _spelled_out(items: list[Any]) -> tuple[list[Any], bool]:
    cut = False
    if not items or type(items[-1]) is not str:
        return items, cut
    read = [*items]
    for at, item in enumerate(items):
        if type(item) is str and item[:1] == "{":
            spelled, cut = _structure(item)
            if type(spelled) is dict and "role" in spelled and not _SAID.isdisjoint(spelled):
                read[at] = spelled
            else:
                cut = False
    return read, cut


def system_text(value: Any) -> str | None:
    if type(value) is not str:
        if value is None:
            return None
        return _system_text(value)
    if is_prose(value):
        return value
    return _SYSTEM(value)


def _system_text(value: Any) -> str | None:
    value = parsed(value)
    if hidden(value) or value in ("", {}):
        return None
    if type(value) is str and not starts_like_json(value):
        return value
    if type(value) is dict and "role" not in value and "parts" not in value:
        value = [value]
    return "\n".join(message.text for message in messages_of(value, "system") or () if message.text) or None


def _messages(value: Any, role: str, nesting: int) -> list[Message]:
    if type(value) is dict:
        return _from_dict(value, role, nesting)
    if not isinstance(value, (list, tuple)):
        return [Message(role, (text_part(value),))]
    if len(value) == 2 and type(value[0]) is type(value[1]) is str and value[0] in ROLES:
        return [Message(ROLES[value[0]], (text_part(value[1]),))]
    messages: list[Message] = []
    loose: list[Part] = []
    for item in value:
        if type(item) is dict and _is_block(item):
            loose += parts_in(item)
            continue
        if loose:
            messages += _of_parts(loose, role)
            loose = []
        if nesting < _MAX_NESTING:
            messages += _messages(item, role, nesting + 1)
    return [*messages, *_of_parts(loose, role)]


def _of_parts(parts: list[Part], role: str) -> Iterable[Message]:
    if not parts:
        return ()
    if role == "user" and any(type(part) is ToolRequest for part in parts):
        role = "assistant"
    return (Message(true_role(role, parts), tuple(parts)),)


def _from_dict(item: Object, role: str, nesting: int) -> list[Message]:
    if nesting < _MAX_NESTING and "role" not in item:
        messages = _held(item, role, nesting + 1)
        if messages is not None:
            return messages
    if not _is_block(item):
        return [message_of(item, role)]
    parts = parts_in(item)
    if parts == (OtherPart("", item),):  # neither message nor block: the answer itself is a JSON object
        parts = (Text(as_text(item)),)
    return [Message(role, parts)]


def _held(item: Object, role: str, nesting: int) -> list[Message] | None:
    for key in () if _ANY_LIST.isdisjoint(item) else _LISTS:
        items = item.get(key)
        if type(items) is str and items[:1] == "[":
            items = parsed(items)
        if isinstance(items, (list, tuple)):
            return _messages(_spelled_out([*items])[0], role, nesting)
    inner, content = item.get("message"), item.get("content")
    if inner is not None and type(inner := parsed(inner)) is dict:
        return _with_finish(_messages(inner, role, nesting), item)
    if type(content) is dict and ("parts" in content or "role" in content):
        return _grounded(_with_finish(_messages(content, role, nesting), item), item)
    return None


def _is_block(item: Object) -> bool:
    if "role" in item or "parts" in item or "kwargs" in item or "tool_calls" in item or "data" in item:
        return False
    if type(item.get("message")) is dict:
        return False
    kind = item.get("type")
    if type(kind) is str:
        return kind not in ITEM_ROLES and kind.lower().removesuffix("chunk").removesuffix("message") not in CLASS_ROLES
    return "content" not in item and "message" not in item


def _with_finish(messages: list[Message], item: Object) -> list[Message]:
    reason = finish_reason_of(item)
    if len(messages) == 1 and reason and not messages[0].finish_reason:
        return [Message(messages[0].role, messages[0].parts, reason)]
    return messages


def _grounded(messages: list[Message], candidate: Object) -> list[Message]:
    search = _hosted.grounding_of(candidate)
    if search is None or len(messages) != 1:
        return messages
    name, arguments, result = search
    parts: list[Part] = [ToolRequest(name, arguments, hosted=True)]
    if result is not _hosted.NOT_RECORDED:
        parts.append(ToolResponse(result, name=name))
    return [messages[0].with_parts(*parts, *messages[0].parts)]


_SYSTEM = Recent(_system_text)
