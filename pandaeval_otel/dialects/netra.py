"""Reads Netra: ``netra.*`` beside ``input`` and ``output``; model calls are in OpenLLMetry's format."""

from __future__ import annotations

from pandaeval_otel.dialects._kit import KINDS, ByKind, give_outcome, keys, read_sides, tool_arguments, tool_outcome
from pandaeval_otel.model import Kind

_TYPE = "netra.span.type"


class Netra(ByKind):
    name = "netra"
    priority = 65
    roots = frozenset({"netra"})
    scopes = ("netra",)
    reads_any_kind = True
    any_keys = keys(session_ids="netra.session_id", user_id="netra.user_id", agent_name="netra.agent.name")

    def kind_of(self) -> Kind | None:
        return KINDS.get(str(self.get(_TYPE)).lower())

    def read_agent(self) -> None:
        read_sides(self, self.get("input"), self.get("output"))

    read_workflow = read_agent

    def read_tool(self) -> None:
        self.tool_name = self.name_in("netra.task.name") or self.span.name
        self.arguments = tool_arguments(self.get("input"))
        give_outcome(self, tool_outcome(self.get("output")))


DIALECT = Netra
