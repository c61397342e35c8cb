"""Reads smolagents under the conventions: tool calls and results that it tells its models in plain text.

``Calling tools:`` and a list stand at the end of the assistant's message, ``Observation:`` and the results, or
``Error:`` and what failed, in the user's next one, which may go on with ``New task:``.
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
from pandaeval_otel.model import Message, Part, Text, ToolRequest, ToolResponse

_CALLS, _TASK, _OBSERVATION = "Calling tools:\n", "New task:\n", "Observation:\n"
_SECTIONS = re.compile(r"^(?:New task|Observation|Error):\n", re.MULTILINE)
_FAILED = re.compile(r"Error executing tool '(?P<name>[^']+)'")
_RETRY = "\nNow let's retry:"
# The calls of a run stand in the input of every model call after them.
_CALLS_IN = Recent[Any](parsed)


class Smolagents(Dialect):
    """Reads the calls and results in the texts of a model's input."""

    name = "smolagents"
    priority = 60
    roots = frozenset({"gen_ai"})
    marks = frozenset({semconv.INPUT_MESSAGES})

    def read(self, span: RawSpan, logs: Logs) -> Reading | None:
        attributes = span.attributes
        value = attributes.get(semconv.INPUT_MESSAGES)
        text = as_text(value) if type(value) is list else value
        if type(text) is not str or "New task:\\n" not in text:
            return None
        found = messages_of(text, "user")
        return Reading(input=_told(found)) if found else None


DIALECT = Smolagents()


def _told(messages: Messages) -> Messages:
    asked: tuple[ToolRequest, ...] = ()
    told: list[Message] = []
    for message in messages:
        text = message.text
        if message.role == "assistant" and _CALLS in text:
            said, _, calls = text.rpartition(_CALLS)
            found = _CALLS_IN(calls)
            if isinstance(found, list):
                parts: list[Part] = [Text(said.strip())] if said.strip() else []
                parts += [request_of(call) for call in found if type(call) is dict]
                message = Message(message.role, tuple(parts), message.finish_reason)
            asked = message.tool_requests
            told.append(message)
        elif message.role == "user" and _SECTIONS.search(text):
            told += _sections(text, asked)
        else:
            told.append(message)
    return tuple(told)


def _sections(text: str, asked: Sequence[ToolRequest]) -> Iterator[Message]:
    marks = [*_SECTIONS.finditer(text)]
    if marks[0].start():
        yield Message("user", (Text(text[: marks[0].start()].strip()),))
    ends = [mark.start() for mark in marks[1:]] + [len(text)]
    for mark, end in zip(marks, ends, strict=True):
        said = text[mark.end() : end].strip()
        if mark[0] == _TASK:
            yield Message("user", (Text(said),))
        elif mark[0] == _OBSERVATION:
            yield Message("tool", tuple(_results(said, asked)))
        else:
            failed = _FAILED.match(said)
            error = said.partition(_RETRY)[0].strip()
            yield Message("tool", (ToolResponse(error, "", failed["name"] if failed else ""),))


def _results(text: str, asked: Sequence[ToolRequest]) -> Iterator[ToolResponse]:
    """Yields one result per line if there are as many lines as calls; else one for all, since nothing separates
    them."""
    lines: list[Any] = [text] if len(asked) < 2 else text.split("\n")
    if len(asked) > 1 and len(lines) != len(asked):
        yield ToolResponse(text)
        return
    for index, line in enumerate(lines):
        yield ToolResponse(parsed(line), asked[index].id if index < len(asked) else "")
