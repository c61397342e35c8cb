"""Reads LangSmith's OpenTelemetry export: each run with all its inputs and outputs as one JSON text.

These texts stand under ``gen_ai.prompt`` and ``gen_ai.completion`` on every kind of run, a tool's arguments included,
and retrievers call themselves embeddings; so this dialect goes before the GenAI conventions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pandaeval_otel.base import semconv
from pandaeval_otel.dialects._common import (
    MAX_ERROR,
    agent_named,
    give_outcome,
    prefixed_sessions,
    prefixed_user,
    run_kind,
    system_of,
)
from pandaeval_otel.dialects._prompted import without_protocol
from pandaeval_otel.dialects._reading import Dialect, Reading
from pandaeval_otel.dialects._runs import asked, read_sides
from pandaeval_otel.dialects._tool_values import is_final_answer, tool_arguments, tool_outcome
from pandaeval_otel.dialects._values import as_list, first, identifier, parsed
from pandaeval_otel.model import Captured, Kind
from pandaeval_otel.model.raw import RawLog, RawSpan

_RUN_TYPE = "langsmith.span.kind"
_METADATA = "langsmith.metadata."
_AGENT = f"{_METADATA}lc_agent_name"
_NODE = f"{_METADATA}langgraph_node"
_RUN_NAME = "langsmith.trace.name"
_KINDS = {
    "llm": Kind.LLM,
    "tool": Kind.TOOL,
    "retriever": Kind.RETRIEVAL,
    "embedding": Kind.EMBEDDING,
    "prompt": Kind.STEP,
    "parser": Kind.STEP,
}


class LangSmith(Dialect):
    """Reads ``langsmith.*`` and the JSON texts of its runs."""

    name = "langsmith"
    priority = 70
    roots = frozenset({"langsmith"})
    scopes = ("langsmith",)

    def read(self, span: RawSpan, logs: Sequence[RawLog]) -> Reading | None:
        attributes = span.attributes
        if _RUN_TYPE not in attributes and span.scope.name != "langsmith":
            return None
        reading = Reading(kind=_kind(span), error=_error(span), agent_name=identifier(attributes.get(_AGENT)))
        reading.session_ids = prefixed_sessions(attributes, _METADATA)
        reading.user_id = prefixed_user(attributes, _METADATA)
        if reading.kind is Kind.TOOL:
            _read_tool(reading, span)
        elif reading.kind in (Kind.LLM, Kind.AGENT, Kind.WORKFLOW):
            _read_messages(reading, span)
        elif reading.kind is Kind.RETRIEVAL:
            _read_retrieval(reading, attributes)
        return reading


DIALECT = LangSmith()


def _kind(span: RawSpan) -> Kind:
    attributes = span.attributes
    run_type = attributes.get(_RUN_TYPE)
    kind = _KINDS.get(run_type) if type(run_type) is str else None
    if kind is Kind.TOOL and is_final_answer(_tool_name(span), attributes.get(semconv.PROMPT_OLD)):
        return Kind.STEP
    if kind is not None:
        return kind
    return Kind.AGENT if _is_agent(span) else run_kind(not span.parent_id)


def _is_agent(span: RawSpan) -> bool:
    """Returns whether a run is the agent's own: it has the agent's name, which LangChain writes on all of the agent's
    runs, and is no node of its graph."""
    named = span.attributes.get(_AGENT)
    return bool(named) and named == _run_name(span) and span.attributes.get(_NODE) != named


def _run_name(span: RawSpan) -> str:
    return identifier(span.attributes.get(_RUN_NAME)) or span.name


def _error(span: RawSpan) -> str | None:
    """Returns the error in an ``exception`` event: a failed run has the status OK like any other."""
    for event in span.events:
        if event.name == semconv.EXCEPTION:
            return str(event.attributes.get(semconv.EXCEPTION_MESSAGE) or semconv.EXCEPTION)[:MAX_ERROR]
    return None


def _tool_name(span: RawSpan) -> str:
    return identifier(span.attributes.get(semconv.TOOL_NAME)) or _run_name(span)


def _arguments(attributes: Mapping[str, Any]) -> Captured | None:
    found = tool_arguments(attributes.get(semconv.PROMPT_OLD))
    if found is not None and type(found.value) is dict and found.value.keys() == {"input"}:
        inner = parsed(found.value["input"])  # the repr of the arguments, from older LangChain releases
        return Captured(inner) if type(inner) is dict else found
    return found


def _read_tool(reading: Reading, span: RawSpan) -> None:
    attributes = span.attributes
    reading.tool_name = _tool_name(span)
    reading.tool_call_id = identifier(attributes.get(semconv.TOOL_CALL_ID))
    reading.arguments = _arguments(attributes)
    if semconv.COMPLETION_OLD in attributes:
        give_outcome(reading, tool_outcome(attributes[semconv.COMPLETION_OLD], wrapped=True))


def _read_messages(reading: Reading, span: RawSpan) -> None:
    attributes = span.attributes
    read_sides(reading, attributes.get(semconv.PROMPT_OLD), attributes.get(semconv.COMPLETION_OLD))
    if reading.kind is Kind.LLM:
        reading.output = without_protocol(reading.output)
        reading.system = system_of(reading.input)
    elif reading.agent_name != _run_name(span):
        reading.agent_name = agent_named(span.name) if not span.parent_id else ""


def _read_retrieval(reading: Reading, attributes: Mapping[str, Any]) -> None:
    reading.input = asked(attributes.get(semconv.PROMPT_OLD))[0]
    found = parsed(attributes.get(semconv.COMPLETION_OLD))
    documents = first(found, ("documents", "output", "outputs")) if type(found) is dict else found
    reading.documents = tuple(as_list(documents))
