"""Reads MLflow's own spans. Every value is JSON, strings too: ``mlflow.spanType`` is ``"\\"AGENT\\""``.

With ``MLFLOW_ENABLE_OTEL_GENAI_SEMCONV`` MLflow writes the GenAI conventions instead.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pandaeval_otel.dialects._common import (
    agent_named,
    give_outcome,
    one_session,
    run_kind,
    system_of,
    tool_definitions,
)
from pandaeval_otel.dialects._prompted import prompted_tools, without_protocol
from pandaeval_otel.dialects._reading import Dialect, Reading
from pandaeval_otel.dialects._runs import asked, read_sides
from pandaeval_otel.dialects._tool_values import is_final_answer, tool_arguments, tool_outcome
from pandaeval_otel.dialects._values import as_list, count, identifier, parsed
from pandaeval_otel.model import Kind, Usage
from pandaeval_otel.model.raw import RawLog, RawSpan

_TYPE, _INPUTS, _OUTPUTS = "mlflow.spanType", "mlflow.spanInputs", "mlflow.spanOutputs"
_FUNCTION = "mlflow.spanFunctionName"
_MODEL, _TOOLS, _USAGE = "mlflow.llm.model", "mlflow.chat.tools", "mlflow.chat.tokenUsage"
_SESSION, _USER = "mlflow.trace.session", "mlflow.trace.user"
_KINDS = {
    "LLM": Kind.LLM,
    "CHAT_MODEL": Kind.LLM,
    "AGENT": Kind.AGENT,
    "WORKFLOW": Kind.WORKFLOW,
    "TOOL": Kind.TOOL,
    "RETRIEVER": Kind.RETRIEVAL,
    "EMBEDDING": Kind.EMBEDDING,
    "GUARDRAIL": Kind.GUARDRAIL,
    "EVALUATOR": Kind.EVALUATION,
    "PARSER": Kind.STEP,
    "RERANKER": Kind.STEP,
    "MEMORY": Kind.STEP,
}
_RUNS = frozenset({Kind.AGENT, Kind.WORKFLOW})
_TOOL_PREFIX = "Tool."


class MLflow(Dialect):
    """Reads ``mlflow.*``."""

    name = "mlflow"
    priority = 65
    roots = frozenset({"mlflow"})

    def read(self, span: RawSpan, logs: Sequence[RawLog]) -> Reading | None:
        attributes = span.attributes
        if _TYPE not in attributes and _INPUTS not in attributes and _OUTPUTS not in attributes:
            return None
        session, user = one_session(parsed(attributes.get(_SESSION))), identifier(parsed(attributes.get(_USER)))
        reading = Reading(kind=_kind(span), session_ids=session, user_id=user)
        if reading.kind is Kind.TOOL:
            reading.tool_name = _tool_name(span)
            reading.arguments = tool_arguments(attributes.get(_INPUTS))
            if _OUTPUTS in attributes:
                give_outcome(reading, tool_outcome(attributes[_OUTPUTS]))
        elif reading.kind is Kind.LLM:
            _read_model_call(reading, attributes)
        elif reading.kind in _RUNS:
            _read_run(reading, span)
        elif reading.kind is Kind.RETRIEVAL:
            reading.input = asked(attributes.get(_INPUTS))[0]
            reading.documents = tuple(as_list(attributes.get(_OUTPUTS)))
        return reading


DIALECT = MLflow()


def _kind(span: RawSpan) -> Kind:
    stated = parsed(span.attributes.get(_TYPE))
    kind = _KINDS.get(stated.upper()) if type(stated) is str else None
    if kind is Kind.TOOL and is_final_answer(_tool_name(span), span.attributes.get(_INPUTS)):
        return Kind.STEP
    return kind or run_kind(not span.parent_id)


def _tool_name(span: RawSpan) -> str:
    """Returns the function's name if the span's is that name and a number (``search_1``), with which MLflow marks later
    spans of one name; else the span's name."""
    function = identifier(parsed(span.attributes.get(_FUNCTION)))
    stem, _, number = span.name.rpartition("_")
    if function and number.isdecimal() and stem == function:
        return function
    return span.name.removeprefix(_TOOL_PREFIX)


def _read_model_call(reading: Reading, attributes: Mapping[str, Any]) -> None:
    given = parsed(attributes.get(_INPUTS))
    read_sides(reading, given, attributes.get(_OUTPUTS))
    reading.output = without_protocol(reading.output)
    reading.system = system_of(reading.input)
    offered = attributes.get(_TOOLS)
    if offered is None and type(given) is dict:
        offered = given.get("tools")
    reading.tools = tool_definitions(offered) or prompted_tools(reading.system)
    named = parsed(attributes.get(_MODEL)) or (given.get("model") if type(given) is dict else None)
    reading.request_model = identifier(named)
    reading.usage = _usage(attributes)


def _read_run(reading: Reading, span: RawSpan) -> None:
    attributes = span.attributes
    read_sides(reading, attributes.get(_INPUTS), attributes.get(_OUTPUTS))
    reading.usage = _usage(attributes)
    if reading.kind is Kind.AGENT:
        reading.agent_name = agent_named(span.name)


def _usage(attributes: Mapping[str, Any]) -> Usage | None:
    spent = parsed(attributes.get(_USAGE))
    if type(spent) is not dict:
        return None
    return Usage(
        input=count(spent.get("input_tokens")) or 0,
        output=count(spent.get("output_tokens")) or 0,
        cache_read=count(spent.get("cache_read_input_tokens")) or 0,
        cache_write=count(spent.get("cache_creation_input_tokens")) or 0,
    )
