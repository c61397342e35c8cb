"""Reads Ax (``@ax-llm/ax``): spans of programs and tools. Model calls follow the GenAI conventions."""

from __future__ import annotations

from pandaeval_otel.dialects._kit import ByKind, keys, tool_definitions
from pandaeval_otel.model import Kind

_FUNCTIONS = "provided_functions"


class Ax(ByKind):
    name = "ax"
    priority = 60
    names = ("Tool: ", "AxGen")
    tool_keys = keys(tool_name="tool.name", tool_call_id="function.id")

    def kind_of(self) -> Kind | None:
        if "tool.mode" in self.attributes:
            return Kind.TOOL
        return Kind.WORKFLOW if "signature_name" in self.attributes else None

    def read_workflow(self) -> None:
        names = dict.fromkeys(filter(None, str(self.get(_FUNCTIONS) or "").split(",")))
        self.tools = tool_definitions([*names]) or None


DIALECT = Ax
