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
_MODEL_CALLS = frozenset({"chat", "text_completion", "generate_content", "completion"})
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
        if operation == "execute_tool":
            reading = Reading(kind=Kind.TOOL, tool_name=identifier(attributes.get(semconv.TOOL_NAME)))
            if semconv.TOOL_ARGUMENTS not in attributes:
                reading.arguments = tool_arguments(first(attributes, _ARGUMENTS))
            result = first(attributes, ("gen_ai.tool.output", "gen_ai.tool.result"))
            if semconv.TOOL_RESULT not in attributes and result is not None:
                give_outcome(reading, tool_outcome(result))
            return reading
        return _asked_for(attributes) if type(operation) is str and operation in _MODEL_CALLS else None


DIALECT = OpenLIT()


def _asked_for(attributes: Attributes) -> Reading | None:
    if semconv.TOOL_NAME not in attributes or semconv.OUTPUT_MESSAGES in attributes:
        return None
    names = _pieces(attributes.get(semconv.TOOL_NAME))
    ids = _pieces(attributes.get(semconv.TOOL_CALL_ID))
    # JSON objects joined by commas as a list, if there are as many as expected; else so many `None`.
    value = first(attributes, _ARGUMENTS)
    expected = len(names)
    found = parsed(f"[{value}]") if type(value) is str else None
    arguments = found if isinstance(found, list) and len(found) == expected else [None] * expected
    requests = [
        ToolRequest(name, arguments[index], ids[index] if len(ids) == len(names) else "")
        for index, name in enumerate(names)
    ]
    return Reading(output=(Message("assistant", (NOT_CAPTURED, *requests)),)) if requests else None


def _pieces(value: Any) -> list[str]:
    text = value if type(value) is str else ""
    return [name for piece in text.split(_SEPARATOR) if (name := identifier(piece))]
