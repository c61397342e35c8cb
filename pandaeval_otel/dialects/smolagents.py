"""Reads tool calls and results in smolagents' model texts.

``Calling tools:`` ends the assistant's message. The next user message has ``Observation:`` or ``Error:``, perhaps ``New
task:``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from pandaeval_otel.base import semconv
from pandaeval_otel.base._json import as_text
from pandaeval_otel.base.recent import Recent
from pandaeval_otel.dialects._kit import (
    Dialect,
    Logs,
    Messages,
    RawSpan,
    Reading,
    messages_of,
    parsed,
    request_of,
)
from pandaeval_otel.model import Message, Text, ToolRequest, ToolResponse

_CALLS, _TASK, _OBSERVATION = "Calling tools:\n", "New task:\n", "Observation:\n"
_SECTIONS = re.compile(r"^(?:New task|Observation|Error):\n", re.MULTILINE)
_FAILED = re.compile(r"Error executing tool '(?P<name>[^']+)'")
_RETRY = "\nNow let's retry:"


class Smolagents(Dialect):
    name = "smolagents"
    priority = 60
    roots = frozenset({"gen_ai"})
    marks = frozenset({semconv.INPUT_MESSAGES})

    def read(self, span: RawSpan, logs: Logs) -> Reading | None:
        value = span.attributes.get(semconv.INPUT_MESSAGES)
        text = as_text(value) if type(value) is list else value
        if type(text) is not str or "New task:\\n" not in text:
            return None
        messages = messages_of(text, "user")
        if messages:
            return Reading(input=tuple(_restored(messages)))
        return None


DIALECT = Smolagents()


def _restored(messages: Messages) -> Iterator[Message]:
    asked: tuple[ToolRequest, ...] = ()
    for message in messages:
        text = message.text
        if message.role == "assistant" and _CALLS in text:
            message = _with_calls(message, text)
            asked = message.tool_requests
        if message.role == "user" and _SECTIONS.search(text):
            yield from _sections(text, asked)
        else:
            yield message


def _with_calls(message: Message, text: str) -> Message:
    words, _, listed = text.rpartition(_CALLS)
    calls = _calls_in(listed)
    if not isinstance(calls, list):
        return message
    parts = [Text(words.strip())] if words.strip() else []
    return message.with_parts(*parts, *[request_of(call) for call in calls if type(call) is dict])


@Recent
def _calls_in(text: str) -> Any:
    return parsed(text)


def _sections(text: str, asked: Sequence[ToolRequest]) -> Iterator[Message]:
    marks = [*_SECTIONS.finditer(text)]
    if marks[0].start():
        yield Message("user", (Text(text[: marks[0].start()].strip()),))
    ends = [mark.start() for mark in marks[1:]] + [len(text)]
    for mark, end in zip(marks, ends, strict=True):
        words = text[mark.end() : end].strip()
        if mark[0] == _TASK:
            yield Message("user", (Text(words),))
        elif mark[0] == _OBSERVATION:
            yield Message("tool", tuple(_results(words, asked)))
        else:
            failed = _FAILED.match(words)
            yield Message(
                "tool", (ToolResponse(words.partition(_RETRY)[0].strip(), "", failed["name"] if failed else ""),)
            )


def _results(text: str, asked: Sequence[ToolRequest]) -> list[ToolResponse]:
    lines = text.split("\n")
    if len(asked) < 2:
        return [ToolResponse(parsed(text), "".join(request.id for request in asked))]
    if len(lines) != len(asked):
        return [ToolResponse(text)]
    return [ToolResponse(parsed(line), request.id) for line, request in zip(lines, asked, strict=True)]
