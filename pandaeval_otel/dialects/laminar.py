"""Reads Laminar: ``lmnr.*`` on spans of its decorators and instrumentations."""

from __future__ import annotations

from pandaeval_otel.base import semconv
from pandaeval_otel.dialects._kit import (
    ByKind,
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
    name = "laminar"
    priority = 60
    roots = frozenset({"lmnr"})
    reads_any_kind = True

    def kind_of(self) -> Kind | None:
        word = self.get("lmnr.span.type")
        if type(word) is not str:
            return None
        if word not in _DEFAULTS:
            return _KINDS.get(word)
        # The conventions state the kind of an instrumented span; nothing states that of a function.
        own = semconv.OPERATION not in self.attributes and (_INPUT in self.attributes or _OUTPUT in self.attributes)
        if own:
            return run_kind(not self.span.parent_id)
        return None

    def read_any(self) -> None:
        read_metadata(self, self.attributes, _PROPERTIES)

    def read_tool(self) -> None:
        if semconv.TOOL_NAME not in self.attributes:
            self.tool_name = identifier(self.span.name)
        if semconv.TOOL_ARGUMENTS not in self.attributes:
            self.arguments = tool_arguments(self.get(_INPUT))
        if semconv.TOOL_RESULT not in self.attributes:
            self.result = captured(self.get(_OUTPUT))

    def read_llm(self) -> None:
        if semconv.INPUT_MESSAGES not in self.attributes:
            put_input(self, asked(self.get(_INPUT)))
        if semconv.OUTPUT_MESSAGES not in self.attributes:
            put_output(self, answered(self.get(_OUTPUT)))

    read_workflow = read_step = read_llm


DIALECT = Laminar
