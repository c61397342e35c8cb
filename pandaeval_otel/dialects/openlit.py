"""Reads OpenLIT: the GenAI conventions plus ``gen_ai.tool.*``.

Several requested tools share an attribute, joined by commas.
"""

from __future__ import annotations

from typing import Any

from pandaeval_otel.base import semconv
from pandaeval_otel.dialects._kit import ByKind, Messages, Switch, identifier, keys, messages_of, parsed
from pandaeval_otel.model import NOT_CAPTURED, Kind, Message, ToolRequest

_MODEL_CALLS = ("chat", "text_completion", "generate_content", "completion")  # an operation may be anything
_SEPARATOR = ", "
_LEFT_OUT = Message("assistant", (NOT_CAPTURED,))


class OpenLIT(ByKind):
    name = "openlit"
    priority = 55
    roots = frozenset({"openlit"})
    scopes = ("openlit",)
    reads_any_kind = True
    tool_keys = keys(tool_name=semconv.TOOL_NAME)
    content_switch = Switch({"openlit": "call openlit.init(capture_message_content=True)"})

    def kind_of(self) -> Kind | None:
        if self.get(semconv.OPERATION) == "execute_tool":
            return Kind.TOOL
        if self.get(semconv.OPERATION) == "invoke_agent" and semconv.AGENT_NAME not in self.attributes:
            return Kind.STEP  # a method of a framework
        return None

    def read_unstated(self) -> None:
        if self.get("openai.api.type") == "responses":
            self.input = _apart(messages_of(self.get(semconv.INPUT_MESSAGES), "user"))
        if self.get(semconv.OPERATION) not in _MODEL_CALLS or semconv.OUTPUT_MESSAGES in self.attributes:
            return
        names, ids = _pieces(self.get(semconv.TOOL_NAME)), _pieces(self.get(semconv.TOOL_CALL_ID))
        # JSON objects joined by commas as a list, if there are as many as expected; else so many `None`.
        value = self.first(*semconv.TOOL_ARGUMENTS_OLD)
        arguments = parsed(f"[{value}]") if type(value) is str else None
        if not isinstance(arguments, list) or len(arguments) != len(names):
            arguments = [None] * len(names)
        if len(ids) != len(names):
            ids = [""] * len(names)
        if names:
            self.output = (Message("assistant", (NOT_CAPTURED, *map(ToolRequest, names, arguments, ids))),)


DIALECT = OpenLIT


def _apart(given: Messages | None) -> Messages | None:
    """Separate the user's messages, because the answers between them are left out for the Responses API."""
    if not given or any(message.role != "user" for message in given):
        return given
    *before, last = given
    return (*(each for message in before for each in (message, _LEFT_OUT)), last)


def _pieces(value: Any) -> list[str]:
    text = value if type(value) is str else ""
    return [name for name in map(identifier, text.split(_SEPARATOR)) if name]
