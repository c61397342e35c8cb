"""Reads VoltAgent: ``voltagent.*``, and in its scopes ``entity.*``, ``span.type`` and bare names."""

from __future__ import annotations

from typing import Any

from pandaeval_otel.dialects._kit import (
    KINDS,
    ByKind,
    answered,
    as_dict,
    as_list,
    asked,
    keys,
    kinds,
    messages_of,
    read_sides,
    tool_definitions,
    usage_in,
)
from pandaeval_otel.model import Kind, Usage

_KINDS = KINDS | kinds(evaluation="scorer")
_INPUT, _OUTPUT = "input", "output"
_LOOPS = ("generateText", "streamText")  # compared, not looked up: an operation may be anything
"""Operations that repeat model calls under a single span if they have tools. The span has the tokens of the last call,
the agent's span those of all calls.
"""
_STATE = "agent.stateSnapshot"
_MODELS = ("llm.model", "ai.model.name")
_RUN_KEYS = keys(system="agent.instructions", request_model=_MODELS)


class VoltAgent(ByKind):
    name = "voltagent"
    priority = 70
    roots = frozenset({"voltagent"})
    scopes = ("@voltagent", "voltagent")
    any_keys = keys(session_ids=("voltagent.conversation_id", "conversation.id"))
    agent_keys = keys(agent_name=("subagent.name", "entity.name"))
    llm_keys = keys(request_model=_MODELS)
    retrieval_keys = keys(documents=_OUTPUT)
    tool_keys = keys(tool_name="tool.name", tool_call_id="tool.call.id", arguments=_INPUT, result=_OUTPUT)

    def kind_of(self) -> Kind | None:
        word = self.first("span.type", "voltagent.type", "entity.type")
        if word is None:
            return None
        return _KINDS.get(str(word), Kind.STEP)

    def read_workflow(self) -> None:
        read_sides(self, self.get(_INPUT), self.get(_OUTPUT))
        self.fill(_RUN_KEYS)
        self.usage = self._usage("usage")
        listed = as_list(as_dict(self.parsed(_STATE)).get("tools"))
        self.tools = tool_definitions([_with_schema(tool) for tool in listed]) or None

    read_agent = read_workflow

    def read_retrieval(self) -> None:
        read_sides(self, self.get(_INPUT), self.get(_OUTPUT))

    def read_llm(self) -> None:
        history = self.first("llm.messages", "agent.messages")
        self.input = asked(self.get(_INPUT))[0] if history is None else messages_of(history, "user")
        self.output = answered(self.get(_OUTPUT))[0]
        names = self.get("llm.tools")
        if type(names) is str and names:
            self.tools = tool_definitions(names.split(","))
        if names is None or self.get("llm.operation") not in _LOOPS:
            self.usage = self._usage("llm.usage") or self._usage("usage")

    def _usage(self, prefix: str) -> Usage | None:
        return usage_in(
            self.attributes,
            f"{prefix}.prompt_tokens",
            f"{prefix}.completion_tokens",
            f"{prefix}.cached_tokens",
            thought=f"{prefix}.reasoning_tokens",
        )


DIALECT = VoltAgent


def _with_schema(tool: Any) -> Any:
    """Return a tool with a JSON schema in place of the object of the schema library Zod."""
    inner = as_dict(as_dict(as_dict(tool).get("parameters")).get("def"))
    if type(inner.get("shape")) is not dict:
        return tool
    properties = {name: {"type": as_dict(field).get("type", "string")} for name, field in inner["shape"].items()}
    optional = {name for name, field in properties.items() if field["type"] in ("optional", "default")}
    typed = {name: {} if name in optional else field for name, field in properties.items()}
    required = [name for name in typed if name not in optional]
    return {**tool, "parameters": {"type": "object", "properties": typed, "required": required}}
