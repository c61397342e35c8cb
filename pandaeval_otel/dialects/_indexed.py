"""Lists spread over many attributes, one leaf each: ``llm.input_messages.0.message.role``, ``gen_ai.prompt.0.content``.

SDKs drop the oldest attributes of a span that has too many, so a list may begin anywhere and have gaps.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pandaeval_otel.dialects._messages import Messages, role_of
from pandaeval_otel.dialects._parts import blocks_of, part_of, parts_of, request_of, result_value, text_part
from pandaeval_otel.dialects._values import hidden, identifier, parsed
from pandaeval_otel.model import NOT_CAPTURED, Message, Part, Reasoning, Text, ToolRequest, ToolResponse

Fields = dict[str, Any]
"""The leaves of one list item by what follows the index: ``{"message.role": "user", …}``."""

_MAX_DIGITS = 9
_UNKNOWN_ROLE = "assistant"
"""Of a message that lost its role to the limit while others have theirs: nobody's question must be made up."""


def indexed(attributes: Mapping[str, Any], prefixes: tuple[str, ...], segments: int = 2) -> dict[str, list[Fields]]:
    """The items of each list, in order, by the list's name (``input_messages``).

    ``prefixes`` end in a dot and have ``segments`` segments, of which the last is the list's name.
    """
    found: dict[str, dict[int, Fields]] = {}
    for key, value in attributes.items():
        if key.startswith(prefixes):
            parts = key.split(".", segments + 1)
            if len(parts) == segments + 2 and parts[segments].isdecimal() and len(parts[segments]) <= _MAX_DIGITS:
                found.setdefault(parts[segments - 1], {}).setdefault(int(parts[segments]), {})[parts[-1]] = value
    return {name: [items[index] for index in sorted(items)] for name, items in found.items()}


def indexed_messages(items: Iterable[Fields] | None, role: str, finish_reason: str = "") -> Messages | None:
    """The messages of a list; ``role`` is theirs where none has one, ``finish_reason`` that of the last. ``None`` when
    there is no list, or all of its content was hidden."""
    if not items:
        return None
    missing = role if not any(key.endswith("role") for fields in items for key in fields) else _UNKNOWN_ROLE
    found = [_message(fields, missing) for fields in items]
    if all(part is NOT_CAPTURED for message in found for part in message.parts):
        return None
    last = found[-1]
    if finish_reason and not last.finish_reason:
        found[-1] = Message(last.role, last.parts, finish_reason)
    return tuple(found)


def _message(fields: Fields, default_role: str) -> Message:
    plain: dict[str, Any] = {}
    calls: dict[str, dict[str, Any]] = {}
    blocks: dict[str, dict[str, Any]] = {}
    for path, value in fields.items():
        head, _, rest = path.removeprefix("message.").partition(".")
        if not rest:
            plain[head] = value
        elif head == "tool_calls":
            index, _, leaf = rest.partition(".")
            calls.setdefault(index, {})[leaf.rpartition(".")[2]] = value
        elif head == "contents":
            index, _, leaf = rest.partition(".")
            blocks.setdefault(index, {})[leaf.removeprefix("message_content.")] = value
        elif head == "function":  # AutoGen: function.0 = one tool result as JSON
            calls.setdefault(rest, {})["result"] = value
    role = role_of(plain, "tool" if "tool_call_id" in plain else "assistant" if calls else default_role)
    reason = plain.get("finish_reason")
    return Message(role, tuple(_parts(plain, calls, blocks, role)), reason if type(reason) is str else "")


def _parts(plain: Fields, calls: dict[str, Fields], blocks: dict[str, Fields], role: str) -> list[Part]:
    parts = [part for block in _in_order(blocks) if (part := _block(block)) is not None]
    content = plain.get("content", plain.get("user"))
    if role == "tool" and content is None:
        content = "\n".join(part.text for part in parts if type(part) is Text) or None
        parts = [part for part in parts if type(part) is not Text] if content else parts
    if content is not None and not any(type(part) is Text for part in parts):
        parts += _content(content, plain, role)
    # A call whose name was dropped, but not all of the rest, is not known well enough to count as one.
    requests = [_call(call) for call in _in_order(calls) if "result" in call or call.get("name")]
    if requests:  # some write each call a second time, among the content blocks
        parts = [part for part in parts if type(part) is not ToolRequest]
    parts += requests
    if "function_call_name" in plain:
        arguments = plain.get("function_call_arguments_json")
        parts.append(request_of({"name": plain["function_call_name"], "arguments": arguments}))
    if not parts and plain.get("refusal"):
        parts.append(text_part(plain["refusal"]))
    return parts or [NOT_CAPTURED]


def _in_order(items: dict[str, Fields]) -> Iterable[Fields]:
    if len(items) < 2:
        return items.values()
    return [items[index] for index in sorted(items, key=lambda index: (len(index), index))]


def _content(content: Any, plain: Fields, role: str) -> list[Part]:
    if role == "tool":
        value = None if hidden(content) else result_value(content)
        return [ToolResponse(value, identifier(plain.get("tool_call_id")), identifier(plain.get("name")))]
    if type(content) is str and content.startswith('[{"type"'):
        content = blocks_of(content)
    return list(parts_of(content))


def _call(call: Fields) -> Part:
    if "result" in call:
        said = parsed(call["result"])
        if type(said) is dict:
            return ToolResponse(
                result_value(said.get("content")), identifier(said.get("call_id")), identifier(said.get("name"))
            )
        return ToolResponse(said)
    arguments = call.get("arguments")
    return ToolRequest(
        identifier(call.get("name")), None if hidden(arguments) else parsed(arguments), identifier(call.get("id"))
    )


def _block(block: Fields) -> Part | None:
    """The part of one content block; ``None`` for thoughts of which only a signature or ciphertext was kept."""
    if "tool_call.function.name" in block:
        return _call({path.rpartition(".")[2]: value for path, value in block.items()})
    kind = block.get("type")
    if kind == "reasoning":
        thought = block.get("text")
        return (NOT_CAPTURED if hidden(thought) else Reasoning(str(thought))) if thought else None
    if kind == "text" or (kind is None and "text" in block):
        return text_part(block.get("text"))
    return part_of({path.rpartition(".")[2]: value for path, value in block.items()})
