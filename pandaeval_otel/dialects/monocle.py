"""Reads Monocle (``monocle_apptrace``): ``span.type``, ``entity.N.*``, and events with input, output and tokens."""

from __future__ import annotations

from typing import Any

from pandaeval_otel.dialects._kit import (
    ByKind,
    Object,
    agent_named,
    as_dict,
    as_list,
    give_outcome,
    identifier,
    indexed,
    keys,
    kinds,
    messages_of,
    parsed,
    read_sides,
    tool_arguments,
    tool_outcome,
    usage_in,
)
from pandaeval_otel.model import Kind

_KINDS = kinds(
    llm=("inference", "inference.framework"),
    tool=("agentic.tool.invocation", "agentic.mcp.invocation"),
    agent="agentic.invocation",
    workflow="agentic.turn",
    retrieval="retrieval",
    embedding="embedding",
)
"""Other spans are steps, such as ``inference.modelapi`` inside of a model call."""
_ENTITIES = frozenset({"entity"})
_ROLES = {"human": "user", "ai": "assistant"}


class Monocle(ByKind):
    name = "monocle"
    priority = 65
    roots = frozenset({"monocle_apptrace"})
    scopes = ("monocle_apptrace",)
    any_keys = keys(session_ids="scope.agentic.session")

    def kind_of(self) -> Kind | None:
        if "monocle_apptrace.version" not in self.attributes:
            return None
        return _KINDS.get(str(self.get("span.type")), Kind.STEP)

    def read_llm(self) -> None:
        given = [_message(parsed(item)) for item in as_list(self._event_value("input", "input"))]
        made = _message(parsed(self._event_value("output", "response")))
        self.input, self.output = messages_of(given, "user"), messages_of([made], "assistant")
        self.request_model = self._entity("model.")
        spent = next((event.attributes for event in self.span.events if event.name == "metadata"), None)
        self.usage = usage_in(spent, "prompt_tokens", "completion_tokens")

    def read_agent(self) -> None:
        read_sides(self, self._event_value("input", "input"), self._event_value("output", "response"))
        self.agent_name = agent_named(self._entity("agent."))

    read_workflow = read_retrieval = read_agent

    def read_tool(self) -> None:
        self.tool_name = self._entity("tool.") or self.span.name
        self.arguments = tool_arguments(self._event_value("input", "input"))
        give_outcome(self, tool_outcome(self._event_value("output", "response")))

    def _event_value(self, side: str, name: str) -> Any:
        events = (event for event in self.span.events if event.name == f"data.{side}")
        return next((event.attributes.get(name) for event in events), None)

    def _entity(self, kind: str) -> str:
        found = indexed(self.attributes, _ENTITIES).get("entity", ())
        return next((identifier(each.get("name")) for each in found if str(each.get("type")).startswith(kind)), "")


DIALECT = Monocle


def _message(value: Any) -> Object:
    """Return a message out of ``{role: text}`` or ``{role: call}``."""
    [(role, content)] = as_dict(value).items() or [("assistant", value)]
    message = {"role": _ROLES.get(role, role)}
    if type(content) is dict and "args" in content:
        return {**message, "tool_calls": [content]}
    return {**message, "content": content}
