"""Reads what Strands Agents writes besides the conventions, which its spans follow (in default mode with messages in
span events as Bedrock blocks, in experimental mode with details events)."""

from __future__ import annotations

from pandaeval_otel.base import semconv
from pandaeval_otel.dialects._kit import (
    Dialect,
    Logs,
    RawSpan,
    Reading,
    Switch,
    first,
    result_value,
    system_text,
    tool_definitions,
    tool_values,
)
from pandaeval_otel.model import Kind

_SCOPES = ("strands.telemetry.tracer", "strands-agents")
_TOOL_SCHEMA = "gen_ai.tool.json_schema"


class Strands(Dialect):
    """Reads the attributes of Strands that no convention defines."""

    name = "strands"
    priority = 75
    roots = frozenset({"event_loop"})
    scopes = _SCOPES
    content_switch = Switch(
        {"strands": "send the log records here as well: some exporters move the content of spans into log records"}
    )

    def read(self, span: RawSpan, logs: Logs) -> Reading | None:
        attributes = span.attributes
        if "event_loop.cycle_id" in attributes or span.name == "execute_event_loop_cycle":
            return Reading(kind=Kind.STEP)
        reading = Reading(system=system_text(attributes.get("system_prompt")))
        tool = attributes.get(semconv.TOOL_NAME)
        if tool is not None and _TOOL_SCHEMA in attributes:
            description = attributes.get("gen_ai.tool.description")
            definition = {"name": tool, "description": description, "parameters": attributes[_TOOL_SCHEMA]}
            reading.tools = tool_definitions([definition])
        if tool is not None and first(attributes, (semconv.TOOL_STATUS, "tool.status")) == "error":
            result = attributes.get(semconv.TOOL_RESULT)
            if result is None:
                result = tool_values(span)[1]
            reading.error = span.status_message or str(result_value(result) or "tool error")
        return reading.stated()


DIALECT = Strands()
