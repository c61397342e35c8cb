"""Reads lists spread over many attributes, one leaf each: ``llm.input_messages.0.message.role``,
``gen_ai.prompt.0.content``.

SDKs drop the oldest attributes of a span that has too many, so a list may begin anywhere and have gaps.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from pandaeval_otel.dialects import _hosted
from pandaeval_otel.dialects._messages import Messages, role_of
from pandaeval_otel.dialects._parts import blocks_of, parts_in, parts_of, request_of, result_value, text_part
from pandaeval_otel.dialects._values import Object, hidden, identifier, parsed
from pandaeval_otel.model import NOT_CAPTURED, Message, Part, Reasoning, Text, ToolRequest, ToolResponse

Fields = Object
"""The leaves of one list item by what follows the index and, for messages, OpenInference's ``message.``: ``role``,
``content``, ``tool_calls.0.tool_call.id`` …"""

_PLACE = re.compile(r"(?P<list>[^.]+(?:\.[^.0-9][^.]*)*)\.(?P<index>\d{1,9})\.(?P<path>.+)", re.ASCII)
_HIDDEN = (NOT_CAPTURED,)
_UNKNOWN_ROLE = "assistant"
"""Role of a message that lost its own to the limit while others have theirs: no user's question must be invented."""


def indexed(attributes: Mapping[str, Any], wanted: frozenset[str]) -> dict[str, list[Fields]]:
    """Returns the items, in order, of each of the ``wanted`` lists (``llm.input_messages``) that is there."""
    found: dict[str, dict[int, Fields]] = {}
    for key, value in attributes.items():
        place = _place(key)
        if place is not None and place[0] in wanted:
            name, index, path = place
            found.setdefault(name, {}).setdefault(index, {})[path] = value
    return {name: [items[index] for index in sorted(items)] for name, items in found.items()}


@lru_cache(maxsize=8192)
def _place(key: str) -> tuple[str, int, str] | None:
    """Returns an attribute's list, index and path within the item. The same few hundred keys recur with every model
    call."""
    match = _PLACE.match(key)
    return None if match is None else (match["list"], int(match["index"]), match["path"].removeprefix("message."))


def indexed_messages(items: Sequence[Fields] | None, role: str, finish_reason: str = "") -> Messages | None:
    """Returns the messages of a list; ``role`` is for messages where none has one, ``finish_reason`` for the last.
    ``None`` when there is no list, or all of its content was hidden."""
    if not items:
        return None
    found = [_message(fields, items, role) for fields in items]
    if not any(message.parts != _HIDDEN for message in found):
        return None
    last = found[-1]
    if finish_reason and not last.finish_reason:
        found[-1] = Message(last.role, last.parts, finish_reason)
    return tuple(found)


@lru_cache(maxsize=4096)
def _path(path: str) -> tuple[str, str, str]:
    """Splits ``tool_calls.0.tool_call.function.name`` into ``("tool_calls", "0", "function.name")``."""
    head, _, rest = path.partition(".")
    index, _, leaf = rest.partition(".")
    return head, index, leaf.removeprefix("tool_call.").removeprefix("message_content.")


def _message(fields: Fields, items: Sequence[Fields], default_role: str) -> Message:
    plain: Object = {}
    calls: dict[str, Fields] = {}
    blocks: dict[str, Fields] = {}
    texts: Fields = {}
    for path, value in fields.items():
        head, index, leaf = _path(path)
        if not index:
            plain[head] = value
        elif head == "tool_calls":
            calls.setdefault(index, {})[leaf.rpartition(".")[2]] = value
        elif head == "contents":
            blocks.setdefault(index, {})[leaf] = value
        elif head == "content":  # Claude Agent SDK: content.0 = the first text
            texts[index] = value
        elif head == "function":  # AutoGen: function.0 = one tool result as JSON
            calls.setdefault(index, {})["result"] = value
        elif head == "function_call":  # LiteLLM
            plain["function_call_name" if index == "name" else "function_call_arguments_json"] = value
    if texts and "content" not in plain:
        plain["content"] = "\n".join(str(texts[index]) for index in sorted(texts, key=_by_number))
    if "role" in plain:
        role = role_of(plain, default_role)
    elif "tool_call_id" in plain or calls:
        role = "assistant" if calls else "tool"
    else:
        role = _UNKNOWN_ROLE if any("role" in item for item in items) else default_role
    reason = plain.get("finish_reason")
    return Message(role, tuple(_parts(plain, calls, blocks, role)), reason if type(reason) is str else "")


def _parts(plain: Fields, calls: dict[str, Fields], blocks: dict[str, Fields], role: str) -> list[Part]:
    parts = [part for block in _in_order(blocks) for part in _block(block)] if blocks else []
    content = plain.get("content", plain.get("user"))
    if role == "tool" and content is None:
        content = "\n".join(part.text for part in parts if type(part) is Text) or None
        parts = [part for part in parts if type(part) is not Text] if content else parts
    if content is None or any(type(part) is Text for part in parts):
        pass
    elif role == "tool":
        value = None if hidden(content) else result_value(content)
        parts.append(ToolResponse(value, identifier(plain.get("tool_call_id")), identifier(plain.get("name"))))
    else:
        is_blocks = type(content) is str and content.startswith('[{"type"')
        parts += parts_of(blocks_of(content) if is_blocks else content)
    # A call whose name was dropped, but not all of the rest, is not known well enough to count as one.
    requests = [_call(call) for call in _in_order(calls) if "result" in call or call.get("name")] if calls else []
    if requests and requests != [part for part in parts if type(part) is ToolRequest]:
        # Some write each call a second time, among the content blocks.
        parts = [*(part for part in parts if type(part) is not ToolRequest), *requests]
    if "function_call_name" in plain:
        arguments = plain.get("function_call_arguments_json")
        parts.append(request_of({"name": plain["function_call_name"], "arguments": arguments}))
    if not parts and plain.get("refusal"):
        parts.append(text_part(plain["refusal"]))
    return parts or [NOT_CAPTURED]


def _in_order(items: dict[str, Fields]) -> Iterable[Fields]:
    if len(items) < 2:
        return items.values()
    return [items[index] for index in sorted(items, key=_by_number)]


def _by_number(index: str) -> tuple[int, str]:
    return len(index), index


def _call(call: Fields) -> Part:
    if "result" in call:
        said = parsed(call["result"])
        if type(said) is dict:
            return ToolResponse(
                result_value(said.get("content")), identifier(said.get("call_id")), identifier(said.get("name"))
            )
        return ToolResponse(said)
    arguments, name, call_id = call.get("arguments"), identifier(call.get("name")), identifier(call.get("id"))
    return ToolRequest(
        name, None if hidden(arguments) else parsed(arguments), call_id, _hosted.is_hosted(call, name, call_id)
    )


def _block(block: Fields) -> Iterable[Part]:
    """Returns the parts of one content block; none for thoughts of which only a signature or ciphertext was kept."""
    if "function.name" in block:
        return (_call({path.rpartition(".")[2]: value for path, value in block.items()}),)
    kind, text = block.get("type"), block.get("text")
    if kind == "reasoning":
        return (NOT_CAPTURED if hidden(text) else Reasoning(str(text)),) if text else ()
    if kind == "text" or (kind is None and "text" in block):
        return (text_part(text),)
    if type(kind) is str and type(text) is str and _hosted.is_result(kind):  # the whole block as JSON
        found = parsed(text)
        return parts_in(found if type(found) is dict else {"type": kind, "content": found})
    return parts_in({path.rpartition(".")[2]: value for path, value in block.items()})
