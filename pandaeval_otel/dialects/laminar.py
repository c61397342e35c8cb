"""Reads Laminar: ``lmnr.*`` on the spans of its decorators and of everything that it instruments."""

from __future__ import annotations

from pandaeval_otel.base import semconv
from pandaeval_otel.dialects._kit import (
    Attributes,
    ByKind,
    RawSpan,
    Reading,
    answered,
    asked,
    captured,
    identifier,
    kinds,
    put_input,
    put_output,
    read_metadata,
    run_kind,
    tool_arguments,
)
from pandaeval_otel.model import Kind

_INPUT, _OUTPUT = "lmnr.span.input", "lmnr.span.output"
_PROPERTIES = "lmnr.association.properties."
_KINDS = kinds(
    llm=("LLM", "CACHED"), tool="TOOL", evaluation=("EVALUATOR", "HUMAN_EVALUATOR"), step=("EVALUATION", "EXECUTOR")
)
_DEFAULTS = frozenset({"DEFAULT", "PIPELINE"})


class Laminar(ByKind):
    """Reads ``lmnr.*``."""

    name = "laminar"
    priority = 60
    roots = frozenset({"lmnr"})
    reads_any_kind = True

    def kind_of(self, span: RawSpan, attributes: Attributes) -> Kind | None:
        word = attributes.get("lmnr.span.type")
        if type(word) is not str:
            return None
        if word not in _DEFAULTS:
            return _KINDS.get(word)
        # The conventions state the kind of an instrumented span; nothing states that of a function.
        own = semconv.OPERATION not in attributes and (_INPUT in attributes or _OUTPUT in attributes)
        if own:
            return run_kind(not span.parent_id)
        return None

    def read_any(self, reading: Reading, span: RawSpan, attributes: Attributes) -> None:
        read_metadata(reading, attributes, _PROPERTIES)

    def read_tool(self, reading: Reading, span: RawSpan, attributes: Attributes) -> None:
        if semconv.TOOL_NAME not in attributes:
            reading.tool_name = identifier(span.name)
        if semconv.TOOL_ARGUMENTS not in attributes:
            reading.arguments = tool_arguments(attributes.get(_INPUT))
        if semconv.TOOL_RESULT not in attributes:
            reading.result = captured(attributes.get(_OUTPUT))

    def read_llm(self, reading: Reading, span: RawSpan, attributes: Attributes) -> None:
        if semconv.INPUT_MESSAGES not in attributes:
            put_input(reading, asked(attributes.get(_INPUT)))
        if semconv.OUTPUT_MESSAGES not in attributes:
            put_output(reading, answered(attributes.get(_OUTPUT)))

    read_workflow = read_step = read_llm


DIALECT = Laminar()
