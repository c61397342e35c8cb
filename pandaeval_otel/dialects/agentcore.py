"""Reads Amazon Bedrock AgentCore: log records whose body is ``{"input": {"messages": […]}, "output": {"messages":
[…]}}``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pandaeval_otel.base import semconv
from pandaeval_otel.dialects._kit import (
    ByKind,
    Messages,
    Object,
    Reading,
    answered,
    as_dict,
    as_list,
    asked,
    blocks_of,
    first,
    give_outcome,
    identifier,
    message_of,
    messages_of,
    parsed,
    system_of,
    tool_arguments,
    tool_outcome,
)
from pandaeval_otel.model import Message

_EVENT_KEYS = frozenset({"content", "message", "finish_reason", "role", "id", "tool.result", "index"})
"""Attributes of a per-message span event, from which the content came."""
_TOOL_WORDS = (
    (semconv.OPERATION, "execute_tool"),
    ("traceloop.span.kind", "tool"),
    ("openinference.span.kind", "TOOL"),
)


class AgentCore(ByKind):
    name = "agentcore"
    priority = 85
    # The records name no vendor, and the spans are those of any instrumentation.
    only_logs = True

    def read_span(self) -> Reading | None:
        sides = [items for log in self.logs if (items := _sides(log.body)) is not None]
        if not sides:
            return None
        given = [item for side, _ in sides for item in side]
        made = [item for _, side in sides for item in side]
        if any(self.get(key) == word for key, word in _TOOL_WORDS):
            if given:
                value, self.tool_call_id = _value(given[0])
                self.arguments = tool_arguments(value)
            if made:
                give_outcome(self, tool_outcome(_value(made[-1])[0]))
        else:
            self.input = _messages(given, "user")
            self.output = _messages(made, "assistant")
            self.system = system_of(self.input)
        return self.stated()


DIALECT = AgentCore


def _sides(body: Any) -> tuple[list[Any], list[Any]] | None:
    if type(body) is str and body.startswith('{"'):
        body = parsed(body)
    given, made = (as_list(as_dict(as_dict(body).get(side)).get("messages")) for side in ("input", "output"))
    if given or made:
        return (given, made)
    return None


def _messages(items: Sequence[Any], role: str) -> Messages | None:
    messages: list[Message] = []
    for item in items:
        if type(item) is dict:
            messages += _message(item, role)
    return tuple(messages) or None


def _message(item: Object, role: str) -> Messages:
    content = parsed(item.get("content"))
    if type(content) is dict and "content" not in content and "message" not in content:
        # LangChain: a graph's input or output, with its whole state.
        messages = (asked if role == "user" else answered)(content)[0]
        if messages:
            return messages
    if type(content) is dict and content.keys() <= _EVENT_KEYS:
        item = {**item, "finish_reason": content.get("finish_reason")}
        content = blocks_of(first(content, ("message", "content")))
    if isinstance(content, (list, tuple)) and any(type(block) is dict and "role" in block for block in content):
        return messages_of(content, role) or ()
    return (message_of({**item, "content": content}, role),)


def _value(item: Any) -> tuple[Any, str]:
    content = parsed(item.get("content")) if type(item) is dict else item
    if type(content) is dict and content.keys() & {"content", "message"} and content.keys() <= _EVENT_KEYS:
        return parsed(first(content, ("message", "content"))), identifier(content.get("id"))
    return content, ""
