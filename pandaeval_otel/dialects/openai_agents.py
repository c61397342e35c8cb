"""Reads the OpenAI Agents SDK through openai-agents-v2: the run looks like an agent, and message parts are reprs of SDK
objects.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pandaeval_otel.base import semconv
from pandaeval_otel.base._json import as_text
from pandaeval_otel.base.recent import Recent
from pandaeval_otel.dialects._kit import (
    ByKind,
    Messages,
    Reading,
    from_repr,
    messages_of,
    parsed,
    parts_in,
)
from pandaeval_otel.model import NOT_CAPTURED, Kind, Message, OtherPart, Part, Text
from pandaeval_otel.model.raw import STATUS_ERROR

_AGENT = "invoke_agent"
_OBJECTS = ('"content":"Response', '"content": "Response', '"content":"{\'', '"content": "{\'')
"""Beginnings of a text part that is the repr of a ``Response…`` object or of a dictionary."""


class OpenAIAgents(ByKind):
    name = "openai_agents"
    priority = 70
    scopes = ("opentelemetry.instrumentation.openai_agents",)

    def read_span(self) -> Reading | None:
        self.input = _with_objects(self.get(semconv.INPUT_MESSAGES), "user")
        self.output = _with_objects(self.get(semconv.OUTPUT_MESSAGES), "assistant")
        if self.get(semconv.OPERATION) == _AGENT:
            if semconv.AGENT_NAME not in self.attributes and not self.span.name.startswith(_AGENT):
                self.kind = Kind.WORKFLOW
            elif self.span.status_code == STATUS_ERROR and semconv.OUTPUT_MESSAGES in self.attributes:
                # What was said last before the failure is no answer.
                self.output = (Message("assistant", (NOT_CAPTURED,)),)
        return self.stated()


DIALECT = OpenAIAgents


def _with_objects(value: Any, role: str) -> Messages | None:
    text = as_text(value) if type(value) is list else value
    if type(text) is not str or not any(mark in text for mark in _OBJECTS):
        return None
    messages = messages_of(value, role)
    return messages and tuple(message.with_parts(*_parts(message)) for message in messages)


def _parts(message: Message) -> Iterator[Part]:
    for part in message.parts:
        yield from (type(part) is Text and _object(part.text)) or (part,)


@Recent
def _object(text: str) -> tuple[Part, ...]:
    found = parsed(text) if text.startswith("{") else from_repr(text)
    if type(found) is not dict or type(found.get("type")) is not str:
        return ()
    read = parts_in(found)
    if any(isinstance(part, OtherPart) for part in read):
        return ()
    return read
