"""Reads Agenta: ``ag.type.node``, and a key below ``ag.data`` for each argument and each member of the result."""

from __future__ import annotations

from typing import Any

from pandaeval_otel.dialects._kit import (
    KINDS,
    ByKind,
    Object,
    agent_named,
    give_outcome,
    keys,
    kinds,
    parsed,
    read_sides,
    tool_arguments,
    tool_definitions,
    tool_outcome,
    usage_in,
)
from pandaeval_otel.model import Kind

_KINDS = KINDS | kinds(llm=("chat", "completion"), retrieval="query", step=("task", "chain", "rerank"))
_INPUTS, _OUTPUTS = "ag.data.inputs.", "ag.data.outputs."
_WHOLE = "__default__"
"""Key of a result without members."""
_JSON = "@ag.type=json:"
_TOKENS = "ag.metrics.unit.tokens"


class Agenta(ByKind):
    name = "agenta"
    priority = 65
    roots = frozenset({"ag"})
    scopes = ("agenta.",)
    any_keys = keys(session_ids="ag.session.id", user_id="ag.user.id")

    def kind_of(self) -> Kind | None:
        kind = _KINDS.get(str(self.get("ag.type.node")).lower())
        # Each decorated function is a task by default.
        is_chat = f"{_INPUTS}messages" in self.attributes and f"{_OUTPUTS}role" in self.attributes
        return Kind.LLM if kind is Kind.STEP and is_chat else kind

    def read_llm(self) -> None:
        given = self._below(_INPUTS)
        read_sides(self, given, self._below(_OUTPUTS))
        self.tools = tool_definitions(given.get("tools")) if type(given) is dict else None
        self.usage = usage_in(self.attributes, f"{_TOKENS}.prompt", f"{_TOKENS}.completion")

    def read_agent(self) -> None:
        read_sides(self, self._below(_INPUTS), self._below(_OUTPUTS))
        is_own = self.kind is Kind.AGENT or not self.span.parent_id  # the outermost function is a workflow
        self.agent_name = agent_named(self.span.name) if is_own else ""

    read_workflow = read_agent

    def read_tool(self) -> None:
        self.tool_name = self.span.name
        self.arguments = tool_arguments(self._below(_INPUTS))
        give_outcome(self, tool_outcome(self._below(_OUTPUTS)))

    def _below(self, prefix: str) -> Any:
        held: Object = {
            key.removeprefix(prefix): parsed(value.removeprefix(_JSON)) if _is_json(value) else value
            for key, value in self.attributes.items()
            if key.startswith(prefix)
        }
        return held.get(_WHOLE, held or None)


DIALECT = Agenta


def _is_json(value: Any) -> bool:
    return type(value) is str and value.startswith(_JSON)
