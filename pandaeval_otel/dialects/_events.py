"""Reads messages that travel as events: one event or log record per message, or one that holds them all.

Until semantic conventions 1.36 each message was an event (``gen_ai.user.message`` … ``gen_ai.choice``), as a log record
whose body is a map, as JSON text in the body, or as a span event whose attributes are the map. Since 1.37 one
``gen_ai.client.inference.operation.details`` record carries the attributes of the span itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

from pandaeval_otel.base import semconv
from pandaeval_otel.dialects._messages import Messages, message_of, messages_of, tells
from pandaeval_otel.dialects._parts import blocks_of
from pandaeval_otel.dialects._values import Object, as_list, first, parsed
from pandaeval_otel.model import Message
from pandaeval_otel.model.raw import RawLog, RawSpan

_TIME = attrgetter("time_ns")
_MESSAGE_KEYS = frozenset({"role", "content", "parts", "tool_calls"})
_INPUT_ROLES = {
    "gen_ai.system.message": "system",
    "gen_ai.user.message": "user",
    "gen_ai.assistant.message": "assistant",
    semconv.TOOL_EVENT: "tool",
}


@dataclass(slots=True)
class EventContent:
    """Messages in the events of one span. ``None``: no event has any, or their content was hidden."""

    input: Messages | None = None
    output: Messages | None = None
    details: list[Mapping[str, Any]] = field(default_factory=list)
    """Attributes of operation-details events, to be read as the span's own."""


def told_by(span: RawSpan, logs: Sequence[RawLog]) -> EventContent:
    """Returns what the span's events say; where they say nothing, what its log records say in time order."""
    told = _told([(event.name, event.attributes, event.attributes) for event in span.events])
    if logs:
        in_order = sorted(logs, key=_TIME) if len(logs) > 1 else logs
        by_log = _told([(log_name(log), log.body, log.attributes) for log in in_order])
        told.input = by_log.input if told.input is None else told.input
        told.output = by_log.output if told.output is None else told.output
        told.details += by_log.details
    return told


def log_name(log: RawLog) -> str:
    """Returns the event name of a log record: its field, or for older emitters its ``event.name`` attribute."""
    return log.event_name or str(log.attributes.get(semconv.EVENT_NAME) or "")


def message_of_event(name: str, body: Any) -> Message | None:
    """Returns the message of one per-message event, given its name and its body (or its attributes, for a span event);
    ``None`` for other events. A message without any content is marked as not captured."""
    if name == semconv.CHOICE_EVENT:
        body = _body(body)
        said = first(body, ("message", "content"))
        inner = parsed(said)
        if type(inner) is not dict or not inner.keys() & _MESSAGE_KEYS:
            inner = {"content": blocks_of(said)}
        rest = {key: body[key] for key in ("tool_calls", "finish_reason") if body.get(key) is not None}
        return message_of({"role": "assistant", **inner, **rest}, "assistant")
    role = _INPUT_ROLES.get(name)
    if role is None:
        return None
    whole = _body(body)
    content = whole.get("content")
    if type(content) is dict and ("parts" in content or "role" in content):
        return message_of(content, role)
    return message_of({**whole, "role": role, "content": blocks_of(content)}, role)


def _told(events: Iterable[tuple[str, Any, Mapping[str, Any]]]) -> EventContent:
    told = EventContent()
    given: list[Message] = []
    made: list[Message] = []
    for name, body, attributes in events:
        if name == "gen_ai.client.inference.operation.details":
            told.details.append(attributes)
            if type(body) is dict and body is not attributes:
                told.details.append(body)
        elif name == "gen_ai.content.prompt":
            given += messages_of(attributes.get(semconv.PROMPT_OLD), "user") or ()
        elif name == "gen_ai.content.completion":
            made += messages_of(attributes.get(semconv.COMPLETION_OLD), "assistant") or ()
        else:
            message = message_of_event(name, body)
            if message is not None:
                (given if name in _INPUT_ROLES else made).append(message)
    told.input = tuple(given) if tells(given) else None
    told.output = tuple(made) if tells(made) else None
    return told


def _body(body: Any) -> Object:
    """Returns the map of an event, which may be JSON text; plain text becomes its content."""
    body = parsed(body)
    if type(body) is dict or isinstance(body, Mapping):
        whole = parsed(body.get(semconv.EVENT_CONTENT))
        return whole if type(whole) is dict else dict(body)
    return {} if body is None else {"content": body}


def tool_values(span: RawSpan) -> tuple[Any, Any]:
    """Returns arguments and result of a tool span that records them as events (Strands): ``gen_ai.tool.message`` holds
    the arguments, ``gen_ai.choice`` the result. ``None`` where there is no such event."""
    arguments = result = None
    for event in span.events:
        if event.name == semconv.TOOL_EVENT:
            arguments = event.attributes.get("content")
        elif event.name == semconv.CHOICE_EVENT:
            result = event.attributes.get("message")
    return arguments, result


def told_in_list(value: Any) -> tuple[Messages | None, Messages | None]:
    """Returns a model's input and answer from a list of per-message events in one attribute, each a map of the body's
    members and its ``event.name``. ``None`` for a side that the list lacks or that was hidden."""
    listed = [event for item in as_list(value) if type(event := parsed(item)) is dict]
    told = _told([(str(event.get(semconv.EVENT_NAME) or ""), event, event) for event in listed])
    return told.input, told.output
