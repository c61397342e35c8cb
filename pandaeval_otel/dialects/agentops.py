"""Reads AgentOps: ``agentops.*`` of its decorators, and bare names beside ``instrumentation.name``."""

from __future__ import annotations

from pandaeval_otel.dialects._kit import (
    KINDS,
    ByKind,
    Fields,
    give_error,
    identifier,
    indexed,
    keys,
    kinds,
    parsed,
    read_sides,
)
from pandaeval_otel.model import Kind, ToolDefinition

_KIND = "agentops.span.kind"
_KINDS = KINDS | kinds(workflow="session", step=("task", "operation", "chain"))
_TOOLS = "gen_ai.request.tools"
_INPUT, _OUTPUT = "agentops.entity.input", "agentops.entity.output"
_FAILED = ("failed", "error")  # compared, not looked up: a status may be anything


class AgentOps(ByKind):
    name = "agentops"
    priority = 65
    roots = frozenset({"agentops", "instrumentation"})
    scopes = ("agentops",)
    reads_any_kind = True
    any_keys = keys(session_ids=("group.id", "agentops.session.id"))
    agent_keys = keys(agent_name=("agent.name", "agentops.entity.name", "operation.name"), tools="agent.tools")
    tool_keys = keys(
        tool_name=("tool.name", "agentops.entity.name", "operation.name"),
        tool_call_id="tool.call_id",
        arguments=("tool.parameters", _INPUT),
        outcome=("tool.result", _OUTPUT),
    )

    def kind_of(self) -> Kind | None:
        word = self.get(_KIND)
        if word == "session" or (word is None and self.get("workflow.step.type") == "trace"):
            return Kind.WORKFLOW
        return _KINDS.get(str(word))

    def read_workflow(self) -> None:
        read_sides(self, self.get(_INPUT), self.get(_OUTPUT))

    read_agent = read_workflow

    def read_llm(self) -> None:
        listed = indexed(self.attributes, frozenset({_TOOLS})).get(_TOOLS, [])
        self.tools = tuple(map(_defined, listed)) or None

    def read_tool(self) -> None:
        if self.get("tool.status") in _FAILED:
            give_error(self, self.get("error.message") or (self.result and self.result.value))


DIALECT = AgentOps


def _defined(fields: Fields) -> ToolDefinition:
    schema = parsed(fields.get("arguments", fields.get("parameters")))
    description = fields.get("description")
    return ToolDefinition(identifier(fields.get("name")), str(description or ""), schema)
