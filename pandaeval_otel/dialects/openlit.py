"""Reads OpenLIT: the GenAI conventions, with its own attributes for tools.

A model call that asks for several tools has their names, ids and arguments joined by commas under the keys of one tool.
The answer's message tells them apart; where content is not captured, only these keys have names and ids.
"""

from __future__ import annotations

from typing import Any

from pandaeval_otel.base import semconv
from pandaeval_otel.dialects._kit import (
    Attributes,
    Dialect,
    Logs,
    RawSpan,
    Reading,
    Switch,
    first,
    give_outcome,
    identifier,
    parsed,
    tool_arguments,
    tool_outcome,
)
from pandaeval_otel.model import NOT_CAPTURED, Kind, Message, ToolRequest

_ARGUMENTS = ("gen_ai.tool.args", "gen_ai.tool.input", "gen_ai.tool.arguments")
_MODEL_CALLS = ("chat", "text_completion", "generate_content", "completion")  # an operation may be anything
_SEPARATOR = ", "


class OpenLIT(Dialect):
    """Reads OpenLIT's extensions under ``gen_ai.tool.*``."""

    name = "openlit"
    priority = 55
    roots = frozenset({"openlit"})
    scopes = ("openlit",)
    content_switch = Switch({"openlit": "call openlit.init(capture_message_content=True)"})

    def read(self, span: RawSpan, logs: Logs) -> Reading | None:
        attributes = span.attributes
        operation = attributes.get(semconv.OPERATION)
        if operation != "execute_tool":
            if operation in _MODEL_CALLS:
                return _asked_for(attributes)
            return None
        reading = Reading(Kind.TOOL)
        reading.tool_name = identifier(attributes.get(semconv.TOOL_NAME))
        if semconv.TOOL_ARGUMENTS not in attributes:
            reading.arguments = tool_arguments(first(attributes, _ARGUMENTS))
        if semconv.TOOL_RESULT not in attributes:
            give_outcome(reading, tool_outcome(first(attributes, ("gen_ai.tool.output", "gen_ai.tool.result"))))
        return reading


DIALECT = OpenLIT()


def _asked_for(attributes: Attributes) -> Reading | None:
    if semconv.TOOL_NAME not in attributes or semconv.OUTPUT_MESSAGES in attributes:
        return None
    names, ids = _pieces(attributes.get(semconv.TOOL_NAME)), _pieces(attributes.get(semconv.TOOL_CALL_ID))
    # JSON objects joined by commas as a list, if there are as many as expected; else so many `None`.
    value = first(attributes, _ARGUMENTS)
    arguments = parsed(f"[{value}]") if type(value) is str else None
    if not isinstance(arguments, list) or len(arguments) != len(names):
        arguments = [None] * len(names)
    if len(ids) != len(names):
        ids = [""] * len(names)
    requests = map(ToolRequest, names, arguments, ids)
    if names:
        return Reading(output=(Message("assistant", (NOT_CAPTURED, *requests)),))
    return None


def _pieces(value: Any) -> list[str]:
    text = value if type(value) is str else ""
    return [name for name in map(identifier, text.split(_SEPARATOR)) if name]
