"""Reads VoltAgent: ``entity.*`` on every span of an agent or workflow, ``span.type`` on the spans inside."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pandaeval_otel.dialects._common import captured, one_session, system_of, tool_definitions, usage_in
from pandaeval_otel.dialects._messages import messages_of
from pandaeval_otel.dialects._reading import Dialect, Reading
from pandaeval_otel.dialects._runs import answered, asked, read_sides
from pandaeval_otel.dialects._tool_values import tool_arguments
from pandaeval_otel.dialects._values import as_list, first, hidden, identifier
from pandaeval_otel.model import Kind, Usage
from pandaeval_otel.model.raw import RawLog, RawSpan

_ENTITY, _ENTITY_NAME, _TYPE, _OWN_TYPE = "entity.type", "entity.name", "span.type", "voltagent.type"
_KINDS = {
    "agent": Kind.AGENT,
    "llm": Kind.LLM,
    "tool": Kind.TOOL,
    "workflow": Kind.WORKFLOW,
    "retriever": Kind.RETRIEVAL,
    "embedding": Kind.EMBEDDING,
    "guardrail": Kind.GUARDRAIL,
    "scorer": Kind.EVALUATION,
}
_SUBAGENT = "subagent.name"
_SESSIONS = ("voltagent.conversation_id", "conversation.id")
_INPUT, _OUTPUT, _INSTRUCTIONS = "input", "output", "agent.instructions"
_LLM_MESSAGES, _LLM_TOOLS = ("llm.messages", "agent.messages"), "llm.tools"
_MODELS = ("llm.model", "ai.model.name")
_TOOL, _CALL_ID = "tool.name", "tool.call.id"
_RETRIEVED = frozenset({Kind.AGENT, Kind.WORKFLOW, Kind.RETRIEVAL})


class VoltAgent(Dialect):
    """Reads ``voltagent.*``, ``entity.*`` and the bare names beside them."""

    name = "voltagent"
    priority = 70
    roots = frozenset({"entity", "voltagent"})

    def read(self, span: RawSpan, logs: Sequence[RawLog]) -> Reading | None:
        attributes = span.attributes
        word = first(attributes, (_TYPE, _OWN_TYPE, _ENTITY))
        if word is None:
            return None
        kind = _KINDS.get(str(word), Kind.STEP)
        reading = Reading(kind=kind, session_ids=one_session(first(attributes, _SESSIONS)))
        if kind is Kind.AGENT:
            reading.agent_name = identifier(first(attributes, (_SUBAGENT, _ENTITY_NAME)))
        if kind in _RETRIEVED:
            _read_run(reading, attributes)
        elif kind is Kind.LLM:
            _read_call(reading, attributes)
        elif kind is Kind.TOOL:
            _read_tool(reading, attributes)
        return reading


DIALECT = VoltAgent()


def _read_run(reading: Reading, attributes: Mapping[str, Any]) -> None:
    read_sides(reading, attributes.get(_INPUT), attributes.get(_OUTPUT))
    if reading.kind is Kind.RETRIEVAL:
        reading.documents = tuple(as_list(attributes.get(_OUTPUT)))
        return
    system = attributes.get(_INSTRUCTIONS)
    reading.system = system if type(system) is str and system and not hidden(system) else None
    reading.request_model = identifier(first(attributes, _MODELS))
    reading.usage = _usage(attributes, "usage")


def _read_call(reading: Reading, attributes: Mapping[str, Any]) -> None:
    said = first(attributes, _LLM_MESSAGES)
    reading.input = asked(attributes.get(_INPUT))[0] if said is None else messages_of(said, "user")
    reading.output = answered(attributes.get(_OUTPUT))[0]
    reading.system = system_of(reading.input)
    reading.request_model = identifier(first(attributes, _MODELS))
    names = attributes.get(_LLM_TOOLS)
    reading.tools = tool_definitions(names.split(",")) if type(names) is str and names else None
    reading.usage = _usage(attributes, "llm.usage") or _usage(attributes, "usage")


def _usage(attributes: Mapping[str, Any], prefix: str) -> Usage | None:
    spent, made, cached, thought = (
        (f"{prefix}.{side}_tokens",) for side in ("prompt", "completion", "cached", "reasoning")
    )
    return usage_in(attributes, spent, made, cache_read=cached, thought=thought)


def _read_tool(reading: Reading, attributes: Mapping[str, Any]) -> None:
    reading.tool_name = identifier(attributes.get(_TOOL))
    reading.tool_call_id = identifier(attributes.get(_CALL_ID))
    reading.arguments = tool_arguments(attributes.get(_INPUT))
    reading.result = captured(attributes.get(_OUTPUT))
