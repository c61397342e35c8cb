"""Reads Pipecat: a voice call is one trace, a ``conversation`` of turns. Model calls have the conventions' names, but
bare ones for messages; tools have ``tool.*``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pandaeval_otel.dialects._common import CUT, MAX_ERROR, captured, one_session, system_of, tool_definitions
from pandaeval_otel.dialects._messages import read_messages
from pandaeval_otel.dialects._reading import Dialect, Reading
from pandaeval_otel.dialects._tool_values import tool_arguments
from pandaeval_otel.dialects._values import first, hidden, identifier
from pandaeval_otel.model import Kind
from pandaeval_otel.model.raw import RawLog, RawSpan

_SCOPE = "pipecat"
_KINDS = {
    "turn": Kind.AGENT,
    "llm": Kind.LLM,
    "llm_request": Kind.LLM,
    "llm_response": Kind.LLM,
    "llm_tool_call": Kind.TOOL,
}
_SESSIONS = ("conversation.id", "conversation_id")
_GIVEN, _SAID = ("input", "context_messages", "context.messages"), ("output", "text_output")
_SYSTEM, _TOOLS = ("system", "system_instruction"), ("tools", "tools.definitions")
_TOOL, _CALL_ID, _ARGUMENTS, _RESULT, _STATUS = (
    "tool.function_name",
    "tool.call_id",
    "tool.arguments",
    "tool.result",
    "tool.result_status",
)
_FAILED = "error"


class Pipecat(Dialect):
    """Reads the spans of ``pipecat`` tracers."""

    name = "pipecat"
    priority = 70
    scopes = (_SCOPE,)

    def read(self, span: RawSpan, logs: Sequence[RawLog]) -> Reading | None:
        attributes = span.attributes
        kind = _KINDS.get(span.name, Kind.STEP)
        if kind is Kind.STEP and _TOOL in attributes and not span.name.startswith("llm_"):
            kind = Kind.TOOL
        reading = Reading(kind=kind, session_ids=one_session(first(attributes, _SESSIONS)))
        if kind is Kind.LLM:
            _read_call(reading, attributes)
        elif kind is Kind.TOOL:
            _read_tool(reading, attributes)
        return reading


DIALECT = Pipecat()


def _read_call(reading: Reading, attributes: Mapping[str, Any]) -> None:
    reading.input, cut = read_messages(first(attributes, _GIVEN), "user")
    reading.output, cut_too = read_messages(first(attributes, _SAID), "assistant")
    reading.notes = CUT if cut or cut_too else ()
    system = first(attributes, _SYSTEM)
    reading.system = system if type(system) is str and not hidden(system) else system_of(reading.input)
    reading.tools = tool_definitions(first(attributes, _TOOLS))


def _read_tool(reading: Reading, attributes: Mapping[str, Any]) -> None:
    reading.tool_name = identifier(attributes.get(_TOOL))
    reading.tool_call_id = identifier(attributes.get(_CALL_ID))
    reading.arguments = tool_arguments(attributes.get(_ARGUMENTS))
    result = attributes.get(_RESULT)
    reading.result = captured(result)
    if attributes.get(_STATUS) == _FAILED:
        reading.error = str(result or "tool error")[:MAX_ERROR]
