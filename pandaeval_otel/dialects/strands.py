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
    hidden,
    result_value,
    system_text,
    tool_definitions,
    tool_values,
)
from pandaeval_otel.model import Kind

_SCOPES = ("strands.telemetry.tracer", "strands-agents")
_SYSTEM_PROMPT = "system_prompt"
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
        reading = Reading()
        if _SYSTEM_PROMPT in attributes:
            reading.system = system_text(attributes[_SYSTEM_PROMPT])
        if semconv.TOOL_NAME in attributes and _TOOL_SCHEMA in attributes:
            definition = {
                "name": attributes[semconv.TOOL_NAME],
                "description": attributes.get("gen_ai.tool.description"),
                "parameters": attributes[_TOOL_SCHEMA],
            }
            reading.tools = tool_definitions([definition])
        failed = first(attributes, (semconv.TOOL_STATUS, "tool.status")) == "error"
        if semconv.TOOL_NAME in attributes and failed:
            said = attributes.get(semconv.TOOL_RESULT)
            said = tool_values(span)[1] if said is None else said
            text = None if hidden(said) else result_value(said)
            reading.error = span.status_message or str(text or "tool error")
        return reading.stated()


DIALECT = Strands()
