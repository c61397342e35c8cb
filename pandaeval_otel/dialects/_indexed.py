"""Reads flattened lists: ``llm.input_messages.0.message.role``, ``gen_ai.prompt.0.content``.

Lists may have gaps, because SDKs drop attributes of large spans.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

from pandaeval_otel.dialects import _hosted
from pandaeval_otel.dialects._message_edits import Messages
from pandaeval_otel.dialects._messages import role_of
from pandaeval_otel.dialects._parts import blocks_of, parts_in, parts_of, request_of, result_value, text_part
from pandaeval_otel.dialects._reading import Attributes
from pandaeval_otel.dialects._thoughts import split_thoughts
from pandaeval_otel.dialects._values import Object, as_dict, hidden, identifier, parsed, visible
from pandaeval_otel.model import NOT_CAPTURED, Message, Part, Reasoning, Text, ToolRequest, ToolResponse

Fields = Object
"""The leaves of one list item by what follows the index and, for messages, OpenInference's ``message.``: ``role``,
``content``, ``tool_calls.0.tool_call.id`` …"""

_PLACE = re.compile(r"(?P<list>[^.]+(?:\.[^.0-9][^.]*)*)\.(?P<index>\d{1,9})\.(?P<path>.+)", re.ASCII)
_HIDDEN = (NOT_CAPTURED,)
_UNKNOWN_ROLE = "assistant"
"""Role of a message whose role was dropped while others have roles. It is not ``user``, which would invent a
question.
"""


def indexed(attributes: Attributes, wanted: frozenset[str]) -> dict[str, list[Fields]]:
    lists: dict[str, dict[int, Fields]] = {}
    for key, value in attributes.items():
        place = _place(key)
        if place is not None and place[0] in wanted:
            name, index, path = place
            lists.setdefault(name, {}).setdefault(index, {})[path] = value
    return {name: [items[index] for index in sorted(items)] for name, items in lists.items()}


@lru_cache(maxsize=8192)
def _place(key: str) -> tuple[str, int, str] | None:
    match = _PLACE.match(key)
    return match and (match["list"], int(match["index"]), match["path"].removeprefix("message."))


def indexed_messages(items: Sequence[Fields] | None, role: str, finish_reason: str = "") -> Messages | None:
    """Return the messages of a flattened list; ``None`` if missing or fully hidden.

    ``role`` applies if no message has a role, ``finish_reason`` to the last message.
    """
    if not items:
        return None
    if len(items) > 1 and items[-1].keys() == {"finish_reason"}:
        items, finish_reason = items[:-1], finish_reason or identifier(items[-1]["finish_reason"])
    messages = [_message(fields, items, role) for fields in items]
    if all(message.parts == _HIDDEN for message in messages):
        return None
    last = messages[-1]
    if finish_reason and not last.finish_reason:
        messages[-1] = Message(last.role, last.parts, finish_reason)
    return tuple(messages)


@lru_cache(maxsize=4096)
def _path(path: str) -> tuple[str, str, str]:
    head, _, rest = path.partition(".")
    index, _, leaf = rest.partition(".")
    if head == "function" and index:  # AutoGen: function.0 = one tool result as JSON
        return "tool_calls", index, "result"
    if head == "function_call" and index:  # LiteLLM
        return f"function_call_{'name' if index == 'name' else 'arguments_json'}", "", ""
    if head == "tool_calls":
        leaf = leaf.rpartition(".")[2]
    return head, index, leaf.removeprefix("tool_call.").removeprefix("message_content.")


def _message(fields: Fields, items: Sequence[Fields], default_role: str) -> Message:
    plain: Fields = {}
    lists: dict[str, dict[str, Fields]] = {"tool_calls": {}, "contents": {}, "content": {}}
    for path, value in fields.items():
        head, index, leaf = _path(path)
        if not index:
            plain[head] = value
        elif head in lists:
            lists[head].setdefault(index, {})[leaf] = value
    calls, blocks, texts = [_in_order(items) if items else [] for items in lists.values()]
    if texts and "content" not in plain:  # Claude Agent SDK: content.0 = the first text
        plain["content"] = "\n".join(str([*text.values()][-1]) for text in texts)
    role = _role(plain, calls, items, default_role)
    reason = plain.get("finish_reason")
    parts = _with_content([part for block in blocks for part in _block(block)], plain, role)
    parts = _with_calls(parts, plain, calls)
    return Message(role, tuple(split_thoughts(role, parts)), reason if type(reason) is str else "")


def _role(plain: Fields, calls: Sequence[Fields], items: Sequence[Fields], default: str) -> str:
    if "role" in plain:
        role = role_of(plain, default)
        return "tool" if role == "user" and plain.get("tool_call_id") else role  # as in Anthropic's requests
    if calls:
        return "assistant"
    if "tool_call_id" in plain:
        return "tool"
    if any("role" in item for item in items):
        return _UNKNOWN_ROLE
    return default


def _with_content(parts: list[Part], plain: Fields, role: str) -> list[Part]:
    content = plain.get("content", plain.get("user"))
    texts = [part.text for part in parts if type(part) is Text] if parts else []
    if role == "tool" and content is None and "\n".join(texts):
        content, texts = "\n".join(texts), []
        parts = [part for part in parts if type(part) is not Text]
    if content is None or texts:
        return parts
    if role == "tool":
        call_id, name = identifier(plain.get("tool_call_id")), identifier(plain.get("name"))
        return [*parts, ToolResponse(result_value(content), call_id, name)]
    call = as_dict(parsed(content)) if role == "assistant" and "tool_call_id" in plain else {}
    if call.keys() == {"name", "arguments"}:  # Netra: a message per call
        return [*parts, request_of({**call, "id": plain["tool_call_id"]})]
    if type(content) is str and content.startswith('[{"type"'):
        content = blocks_of(content)
    return [*parts, *parts_of(content)]


def _with_calls(parts: list[Part], plain: Fields, calls: Sequence[Fields]) -> list[Part]:
    # A call whose name was dropped, but not all of the rest, is not known well enough to count as one.
    requests = [_call(call) for call in calls if "result" in call or call.get("name")] if calls else []
    if requests and requests != [part for part in parts if type(part) is ToolRequest]:
        # Some write each call a second time, among the content blocks.
        parts = [*(part for part in parts if type(part) is not ToolRequest), *requests]
    if "function_call_name" in plain:
        arguments = plain.get("function_call_arguments_json")
        parts.append(request_of({"name": plain["function_call_name"], "arguments": arguments}))
    if not parts and plain.get("refusal"):
        parts.append(text_part(plain["refusal"]))
    return parts or [NOT_CAPTURED]


def _in_order(items: dict[str, Fields]) -> list[Fields]:
    if len(items) < 2:
        return [*items.values()]
    return [items[index] for index in sorted(items, key=lambda index: (len(index), index))]


def _call(call: Fields) -> Part:
    if "result" in call:
        result = parsed(call["result"])
        if type(result) is not dict:
            return ToolResponse(result)
        call_id, name = identifier(result.get("call_id")), identifier(result.get("name"))
        return ToolResponse(result_value(result.get("content")), call_id, name)
    name, call_id = identifier(call.get("name")), identifier(call.get("id"))
    return ToolRequest(name, visible(call.get("arguments")), call_id, _hosted.is_hosted(call, name, call_id))


def _block(block: Fields) -> Iterable[Part]:
    kind, text = block.get("type"), block.get("text")
    if kind == "text" or (kind is None and "text" in block and "function.name" not in block):
        return (text_part(text),)
    leaves = {path.rpartition(".")[2]: value for path, value in block.items()}
    if "function.name" in block:
        return (_call(leaves),)
    if kind == "reasoning":
        thought = NOT_CAPTURED if hidden(text) else Reasoning(str(text))
        if text:
            return (thought,)
        return ()
    if type(kind) is str and type(text) is str and _hosted.is_result(kind):  # the whole block as JSON
        leaves = as_dict(parsed(text)) or {"type": kind, "content": parsed(text)}
    return parts_in(leaves)
