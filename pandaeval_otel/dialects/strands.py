"""Reads the attributes that Strands Agents adds to the conventions.

Messages are span events with Bedrock blocks, or details events.
"""

from __future__ import annotations

from pandaeval_otel.base import semconv
from pandaeval_otel.dialects._kit import (
    ByKind,
    Switch,
    keys,
    result_value,
    tool_definitions,
    tool_values,
)
from pandaeval_otel.model import Kind

_SCOPES = ("strands.telemetry.tracer", "strands-agents")
_TOOL_SCHEMA = "gen_ai.tool.json_schema"


class Strands(ByKind):
    name = "strands"
    priority = 75
    roots = frozenset({"event_loop"})
    scopes = _SCOPES
    reads_any_kind = True
    unstated_keys = keys(system="system_prompt")
    content_switch = Switch(
        {"strands": "send the log records here as well: some exporters move the content of spans into log records"}
    )

    def kind_of(self) -> Kind | None:
        if "event_loop.cycle_id" in self.attributes or self.span.name == "execute_event_loop_cycle":
            return Kind.STEP
        return None

    def read_unstated(self) -> None:
        tool = self.get(semconv.TOOL_NAME)
        if tool is None:
            return
        if _TOOL_SCHEMA in self.attributes:
            description = self.get("gen_ai.tool.description")
            definition = {"name": tool, "description": description, "parameters": self.attributes[_TOOL_SCHEMA]}
            self.tools = tool_definitions([definition])
        if self.first(semconv.TOOL_STATUS, "tool.status") == "error":
            result = self.get(semconv.TOOL_RESULT)
            if result is None:
                result = tool_values(self.span)[1]
            self.error = self.span.status_message or str(result_value(result) or "tool error")


DIALECT = Strands
