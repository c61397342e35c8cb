"""Reads VoltAgent: ``entity.*`` on every span of an agent or workflow, ``span.type`` on the spans inside."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pandaeval_otel.dialects._common import KINDS, captured, one_session, tool_definitions, usage_in
from pandaeval_otel.dialects._messages import messages_of, system_text
from pandaeval_otel.dialects._reading import Attributes, ByKind, Reading
from pandaeval_otel.dialects._runs import answered, asked, read_sides
from pandaeval_otel.dialects._tool_values import tool_arguments
from pandaeval_otel.dialects._values import as_list, first, identifier
from pandaeval_otel.model import Kind, Usage
from pandaeval_otel.model.raw import RawSpan

_KINDS = KINDS | {"scorer": Kind.EVALUATION}
_INPUT, _OUTPUT = "input", "output"
_LOOPS = frozenset({"generateText", "streamText"})
"""Operations that, with tools, call the model again and again under one span. It states the tokens of the last call;
the agent's span states those of all."""
_MODELS = ("llm.model", "ai.model.name")


class VoltAgent(ByKind):
    """Reads ``voltagent.*``, ``entity.*`` and the bare names beside them."""

    name = "voltagent"
    priority = 70
    roots = frozenset({"entity", "voltagent"})

    def kind_of(self, span: RawSpan, attributes: Attributes) -> Kind | None:
        word = first(attributes, ("span.type", "voltagent.type", "entity.type"))
        return None if word is None else _KINDS.get(str(word), Kind.STEP)

    def read_any(self, reading: Reading, span: RawSpan, attributes: Attributes) -> None:
        reading.session_ids = one_session(first(attributes, ("voltagent.conversation_id", "conversation.id")))

    def read_agent(self, reading: Reading, span: RawSpan, attributes: Attributes) -> None:
        reading.agent_name = identifier(first(attributes, ("subagent.name", "entity.name")))
        self.read_workflow(reading, span, attributes)

    def read_workflow(self, reading: Reading, span: RawSpan, attributes: Attributes) -> None:
        read_sides(reading, attributes.get(_INPUT), attributes.get(_OUTPUT))
        reading.system = system_text(attributes.get("agent.instructions"))
        reading.request_model = identifier(first(attributes, _MODELS))
        reading.usage = _usage(attributes, "usage")

    def read_retrieval(self, reading: Reading, span: RawSpan, attributes: Attributes) -> None:
        read_sides(reading, attributes.get(_INPUT), attributes.get(_OUTPUT))
        reading.documents = tuple(as_list(attributes.get(_OUTPUT)))

    def read_llm(self, reading: Reading, span: RawSpan, attributes: Attributes) -> None:
        said = first(attributes, ("llm.messages", "agent.messages"))
        reading.input = asked(attributes.get(_INPUT))[0] if said is None else messages_of(said, "user")
        reading.output = answered(attributes.get(_OUTPUT))[0]
        reading.request_model = identifier(first(attributes, _MODELS))
        names = attributes.get("llm.tools")
        reading.tools = tool_definitions(names.split(",")) if type(names) is str and names else None
        if names is None or attributes.get("llm.operation") not in _LOOPS:
            reading.usage = _usage(attributes, "llm.usage") or _usage(attributes, "usage")

    def read_tool(self, reading: Reading, span: RawSpan, attributes: Attributes) -> None:
        reading.tool_name = identifier(attributes.get("tool.name"))
        reading.tool_call_id = identifier(attributes.get("tool.call.id"))
        reading.arguments = tool_arguments(attributes.get(_INPUT))
        reading.result = captured(attributes.get(_OUTPUT))


DIALECT = VoltAgent()


def _usage(attributes: Mapping[str, Any], prefix: str) -> Usage | None:
    return usage_in(
        attributes,
        f"{prefix}.prompt_tokens",
        f"{prefix}.completion_tokens",
        f"{prefix}.cached_tokens",
        thought=f"{prefix}.reasoning_tokens",
    )
