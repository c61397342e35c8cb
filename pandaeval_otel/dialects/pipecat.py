"""Reads ``pipecat`` tracers: a voice call is a ``conversation`` of turns.

Messages have bare names; tools use ``tool.*``.
"""

from __future__ import annotations

from pandaeval_otel.dialects._kit import (
    ByKind,
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
    name = "pipecat"
    priority = 70
    scopes = ("pipecat",)
    any_keys = keys(session_ids=("conversation.id", "conversation_id"))
    llm_keys = keys(system=("system", "system_instruction"), tools=("tools", "tools.definitions"))
    tool_keys = keys(tool_name=_TOOL, tool_call_id="tool.call_id", arguments="tool.arguments", result="tool.result")

    def kind_of(self) -> Kind | None:
        kind = _KINDS.get(self.span.name, Kind.STEP)
        if kind is Kind.STEP and _TOOL in self.attributes and not self.span.name.startswith("llm_"):
            return Kind.TOOL
        return kind

    def read_llm(self) -> None:
        given = self.first("input", "context_messages", "context.messages")
        put_input(self, read_messages(given, "user"))
        put_output(self, read_messages(self.first("output", "text_output"), "assistant"))

    def read_tool(self) -> None:
        if self.get("tool.result_status") == "error":
            give_error(self, self.get("tool.result"))


DIALECT = Pipecat
