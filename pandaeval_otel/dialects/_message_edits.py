"""Changes to messages that are already read."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from pandaeval_otel.dialects._values import hidden
from pandaeval_otel.model import NOT_CAPTURED, Message, Part, Reasoning, Text, ToolRequest, ToolResponse
from pandaeval_otel.model.message import all_parts

Messages = tuple[Message, ...]
_EMPTY_PARTS = (NOT_CAPTURED, Text(""), Reasoning(""), ToolRequest(""), ToolResponse())


def each_part(messages: Messages | None, change: Callable[[Part], Part]) -> Messages | None:
    return messages and tuple(message.with_parts(*map(change, message.parts)) for message in messages)


def with_thought(output: Messages, thought: Any) -> Messages:
    if type(thought) is not str or hidden(thought) or not thought:
        return output
    if any(isinstance(part, Reasoning) for part in all_parts(output)):
        return output
    head, *rest = output
    return (head.with_parts(Reasoning(thought), *head.parts), *rest)


def has_content(messages: Iterable[Message]) -> bool:
    for message in messages:
        for part in message.parts:
            if part is not NOT_CAPTURED:
                return True
    return False


def without_cut_values(messages: Messages) -> Messages:
    """Mark the last message as incomplete. A cut call keeps only name and id."""
    if not messages:
        return messages
    *before, last = messages
    *parts, cut = last.parts or (NOT_CAPTURED,)
    if isinstance(cut, ToolRequest):
        cut = ToolRequest(cut.name, None, cut.id, cut.hosted)
    elif isinstance(cut, ToolResponse) and type(cut.result) is not str:
        cut = ToolResponse(None, cut.id, cut.name)
    if cut not in _EMPTY_PARTS:
        parts.append(cut)
    return (*before, last.with_parts(*parts, NOT_CAPTURED))
