"""Reads messages in span events or log records.

Until semantic conventions 1.36 each message was an event (``gen_ai.user.message`` … ``gen_ai.choice``). Since 1.37, a
``gen_ai.client.inference.operation.details`` record has the span's attributes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

from pandaeval_otel.base import semconv
from pandaeval_otel.dialects._message_edits import Messages, has_content
from pandaeval_otel.dialects._messages import message_of, messages_of
from pandaeval_otel.dialects._parts import blocks_of
from pandaeval_otel.dialects._reading import Attributes
from pandaeval_otel.dialects._values import Object, as_dict, as_list, first, parsed
from pandaeval_otel.model import Message
from pandaeval_otel.model.raw import RawLog, RawSpan

_TIME = attrgetter("time_ns")
_MESSAGE_KEYS = frozenset({"role", "content", "parts", "tool_calls"})
_ROLES = {
    "gen_ai.system.message": "system",
    "gen_ai.user.message": "user",
    "gen_ai.assistant.message": "assistant",
    semconv.TOOL_EVENT: "tool",
    semconv.CHOICE_EVENT: "assistant",
}
_WHOLE = {
    "gen_ai.content.prompt": (semconv.PROMPT_OLD, "user"),
    "gen_ai.content.completion": (semconv.COMPLETION_OLD, "assistant"),
}
"""Events with a whole side: the attribute that holds it, and the role of its speaker."""

_DETAILS = ("gen_ai.client.inference.operation.details", "gen_ai.usage")
"""Events with attributes of the span."""


@dataclass(slots=True)
class EventContent:
    input: Messages | None = None
    output: Messages | None = None
    details: list[Mapping[str, Any]] = field(default_factory=list)
    """Attributes of operation-details events, to be read as the span's own."""


def read_events_and_logs(span: RawSpan, logs: Sequence[RawLog]) -> EventContent:
    """Return the messages in span events, completed from log records in time order."""
    content = _content([(event.name, event.attributes, event.attributes) for event in span.events])
    if logs:
        in_order = sorted(logs, key=_TIME)
        by_log = _content([(log_name(log), log.body, log.attributes) for log in in_order])
        if content.input is None:
            content.input = by_log.input
        if content.output is None:
            content.output = by_log.output
        content.details += by_log.details
    return content


def log_name(log: RawLog) -> str:
    """Return the event name of a log record: its field or ``event.name``."""
    return log.event_name or str(log.attributes.get(semconv.EVENT_NAME) or "")


def message_of_event(name: str, body: Any) -> Message | None:
    """Return the message of a per-message event, or ``None``. Without content it is marked as not captured."""
    role = _ROLES.get(name)
    if role is None:
        return None
    whole = _body(body)
    if name == semconv.CHOICE_EVENT:
        content = first(whole, ("message", "content"))
        inner = as_dict(parsed(content))
        if not inner.keys() & _MESSAGE_KEYS:
            inner = {"content": blocks_of(content)}
        rest = {key: whole[key] for key in ("tool_calls", "finish_reason") if whole.get(key) is not None}
        return message_of({"role": role, **inner, **rest}, role)
    content = whole.get("content")
    if type(content) is dict and ("parts" in content or "role" in content):
        return message_of(content, role)
    return message_of({**whole, "role": role, "content": blocks_of(content)}, role)


def _content(events: Iterable[tuple[str, Any, Attributes]]) -> EventContent:
    content = EventContent()
    sides: dict[str, list[Message]] = {"user": [], "assistant": []}
    for name, body, attributes in events:
        message = message_of_event(name, body)
        if message is not None:
            sides["assistant" if name == semconv.CHOICE_EVENT else "user"].append(message)
        if name in _WHOLE:
            key, role = _WHOLE[name]
            sides[role] += messages_of(attributes.get(key), role) or ()
        if name in _DETAILS:
            content.details.append(attributes)
            if type(body) is dict and body is not attributes:
                content.details.append(body)
    given, made = map(tuple, sides.values())
    content.input = given if has_content(given) else None
    content.output = made if has_content(made) else None
    return content


def _body(body: Any) -> Object:
    body = parsed(body)
    if isinstance(body, Mapping):
        whole = parsed(body.get(semconv.EVENT_CONTENT))
        if type(whole) is dict:
            return whole
        return dict(body)
    if body is None:
        return {}
    return {"content": body}


def tool_values(span: RawSpan) -> tuple[Any, Any]:
    """Return arguments and result that Strands records as events, or ``None``."""
    arguments = result = None
    for event in span.events:
        if event.name == semconv.TOOL_EVENT:
            arguments = event.attributes.get("content")
        elif event.name == semconv.CHOICE_EVENT:
            result = event.attributes.get("message")
    return arguments, result


def messages_in_event_list(value: Any) -> tuple[Messages | None, Messages | None]:
    """Return input and answer from an attribute with a list of per-message events. ``None``: absent or hidden."""
    events = [event for item in as_list(value) if type(event := parsed(item)) is dict]
    content = _content([(str(event.get(semconv.EVENT_NAME) or ""), event, event) for event in events])
    return content.input, content.output
