"""Reads MLflow's own spans. Every value is JSON, strings too: ``mlflow.spanType`` is ``"\\"AGENT\\""``.

With ``MLFLOW_ENABLE_OTEL_GENAI_SEMCONV`` MLflow writes the GenAI conventions instead.
"""

from __future__ import annotations

from pandaeval_otel.dialects._kit import (
    KINDS,
    Attributes,
    ByKind,
    RawSpan,
    Reading,
    agent_named,
    as_dict,
    identifier,
    keys,
    kinds,
    one_session,
    parsed,
    prompted_tools,
    read_sides,
    run_kind,
    system_of,
    tool_definitions,
    usage_in,
)
from pandaeval_otel.model import Kind, Usage

_TYPE, _INPUTS, _OUTPUTS = "mlflow.spanType", "mlflow.spanInputs", "mlflow.spanOutputs"
_TOKENS = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
_KINDS = KINDS | kinds(llm="chat_model", step=("parser", "reranker", "memory"))


class MLflow(ByKind):
    """Reads ``mlflow.*``."""

    name = "mlflow"
    priority = 65
    roots = frozenset({"mlflow"})
    tool_keys = keys(arguments=_INPUTS, outcome=_OUTPUTS)
    retrieval_keys = keys(run_input=_INPUTS, documents=_OUTPUTS)

    def kind_of(self, span: RawSpan, attributes: Attributes) -> Kind | None:
        if _TYPE not in attributes and _INPUTS not in attributes and _OUTPUTS not in attributes:
            return None
        stated = parsed(attributes.get(_TYPE))
        return (_KINDS.get(stated.lower()) if type(stated) is str else None) or run_kind(not span.parent_id)

    def read_any(self, reading: Reading, span: RawSpan, attributes: Attributes) -> None:
        reading.session_ids = one_session(parsed(attributes.get("mlflow.trace.session")))
        reading.user_id = identifier(parsed(attributes.get("mlflow.trace.user")))

    def read_tool(self, reading: Reading, span: RawSpan, attributes: Attributes) -> None:
        reading.tool_name = _tool_name(span) or reading.tool_name

    def read_llm(self, reading: Reading, span: RawSpan, attributes: Attributes) -> None:
        given = parsed(attributes.get(_INPUTS))
        read_sides(reading, given, attributes.get(_OUTPUTS))
        request = as_dict(given)
        reading.system = system_of(reading.input)
        offered = attributes.get("mlflow.chat.tools")
        if offered is None:
            offered = request.get("tools")
        reading.tools = tool_definitions(offered) or prompted_tools(reading.system)
        reading.request_model = identifier(parsed(attributes.get("mlflow.llm.model")) or request.get("model"))
        reading.usage = _usage(attributes)

    def read_agent(self, reading: Reading, span: RawSpan, attributes: Attributes) -> None:
        read_sides(reading, attributes.get(_INPUTS), attributes.get(_OUTPUTS))
        reading.usage = _usage(attributes)
        if reading.kind is Kind.AGENT:
            reading.agent_name = agent_named(span.name)

    read_workflow = read_agent


DIALECT = MLflow()


def _tool_name(span: RawSpan) -> str:
    """Returns the function's name if the span's is that name and a number (``search_1``), with which MLflow marks later
    spans of one name; else the span's name."""
    function = identifier(parsed(span.attributes.get("mlflow.spanFunctionName")))
    stem, _, number = span.name.rpartition("_")
    if function and number.isdecimal() and stem == function:
        return function
    return span.name.removeprefix("Tool.")


def _usage(attributes: Attributes) -> Usage | None:
    spent = parsed(attributes.get("mlflow.chat.tokenUsage"))
    return usage_in(spent, *_TOKENS) or (Usage() if type(spent) is dict else None)
