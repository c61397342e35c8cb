"""Reads Pipecat: a voice call is one trace, a ``conversation`` of turns. Model calls have the conventions' names, but
bare ones for messages; tools have ``tool.*``."""

from __future__ import annotations

from pandaeval_otel.dialects._common import CUT, captured, one_session, tool_definitions
from pandaeval_otel.dialects._messages import read_messages, system_text
from pandaeval_otel.dialects._reading import Attributes, ByKind, Reading
from pandaeval_otel.dialects._tool_values import tool_arguments
from pandaeval_otel.dialects._values import first, identifier
from pandaeval_otel.model import Kind
from pandaeval_otel.model.raw import RawSpan

_KINDS = {
    "turn": Kind.AGENT,
    **dict.fromkeys(("llm", "llm_request", "llm_response"), Kind.LLM),
    "llm_tool_call": Kind.TOOL,
}
_TOOL = "tool.function_name"


class Pipecat(ByKind):
    """Reads the spans of ``pipecat`` tracers."""

    name = "pipecat"
    priority = 70
    scopes = ("pipecat",)

    def kind_of(self, span: RawSpan, attributes: Attributes) -> Kind | None:
        kind = _KINDS.get(span.name, Kind.STEP)
        return Kind.TOOL if kind is Kind.STEP and _TOOL in attributes and not span.name.startswith("llm_") else kind

    def read_any(self, reading: Reading, span: RawSpan, attributes: Attributes) -> None:
        reading.session_ids = one_session(first(attributes, ("conversation.id", "conversation_id")))

    def read_llm(self, reading: Reading, span: RawSpan, attributes: Attributes) -> None:
        reading.input, cut = read_messages(first(attributes, ("input", "context_messages", "context.messages")), "user")
        reading.output, cut_too = read_messages(first(attributes, ("output", "text_output")), "assistant")
        reading.notes = CUT if cut or cut_too else ()
        system = first(attributes, ("system", "system_instruction"))
        reading.system = system_text(system)
        reading.tools = tool_definitions(first(attributes, ("tools", "tools.definitions")))

    def read_tool(self, reading: Reading, span: RawSpan, attributes: Attributes) -> None:
        reading.tool_name = identifier(attributes.get(_TOOL))
        reading.tool_call_id = identifier(attributes.get("tool.call_id"))
        reading.arguments = tool_arguments(attributes.get("tool.arguments"))
        result = attributes.get("tool.result")
        reading.result = captured(result)
        if attributes.get("tool.result_status") == "error":
            reading.error = str(result or "tool error")


DIALECT = Pipecat()
