"""Reads Pipecat: a voice call is one trace, a ``conversation`` of turns. Model calls have the conventions' names, but
bare ones for messages; tools have ``tool.*``."""

from __future__ import annotations

from pandaeval_otel.dialects._kit import (
    Attributes,
    ByKind,
    RawSpan,
    Reading,
    first,
    give_error,
    keys,
    kinds,
    put_input,
    put_output,
    read_messages,
)
from pandaeval_otel.model import Kind

_KINDS = kinds(agent="turn", llm=("llm", "llm_request", "llm_response"), tool="llm_tool_call")
_TOOL = "tool.function_name"


class Pipecat(ByKind):
    """Reads the spans of ``pipecat`` tracers."""

    name = "pipecat"
    priority = 70
    scopes = ("pipecat",)
    any_keys = keys(session_ids=("conversation.id", "conversation_id"))
    llm_keys = keys(system=("system", "system_instruction"), tools=("tools", "tools.definitions"))
    tool_keys = keys(tool_name=_TOOL, tool_call_id="tool.call_id", arguments="tool.arguments", result="tool.result")

    def kind_of(self, span: RawSpan, attributes: Attributes) -> Kind | None:
        kind = _KINDS.get(span.name, Kind.STEP)
        if kind is Kind.STEP and _TOOL in attributes and not span.name.startswith("llm_"):
            return Kind.TOOL
        return kind

    def read_llm(self, reading: Reading, span: RawSpan, attributes: Attributes) -> None:
        given = first(attributes, ("input", "context_messages", "context.messages"))
        put_input(reading, read_messages(given, "user"))
        put_output(reading, read_messages(first(attributes, ("output", "text_output")), "assistant"))

    def read_tool(self, reading: Reading, span: RawSpan, attributes: Attributes) -> None:
        if attributes.get("tool.result_status") == "error":
            give_error(reading, attributes.get("tool.result"))


DIALECT = Pipecat()
