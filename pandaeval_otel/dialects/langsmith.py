"""Reads LangSmith's export: ``langsmith.*``, and the JSON texts of runs in ``gen_ai.prompt`` and ``gen_ai.completion``.

These also hold tool arguments, so this dialect precedes the conventions.
"""

from __future__ import annotations

from pandaeval_otel.base import semconv
from pandaeval_otel.dialects._kit import (
    KINDS,
    ByKind,
    Switch,
    agent_named,
    as_dict,
    documents_in,
    give_outcome,
    keys,
    kinds,
    parsed,
    read_metadata,
    read_sides,
    run_kind,
    tool_arguments,
    tool_outcome,
)
from pandaeval_otel.model import Captured, Kind

_RUN_TYPE = "langsmith.span.kind"
_METADATA = "langsmith.metadata."
_AGENT = f"{_METADATA}lc_agent_name"
_KINDS = KINDS | kinds(step=("prompt", "parser"))


class LangSmith(ByKind):
    name = "langsmith"
    priority = 70
    roots = frozenset({"langsmith"})
    scopes = ("langsmith",)
    content_switch = Switch({"langsmith": "unset LANGSMITH_HIDE_INPUTS and LANGSMITH_HIDE_OUTPUTS"})
    any_keys = keys(agent_name=_AGENT)
    tool_keys = keys(tool_call_id=semconv.TOOL_CALL_ID)
    retrieval_keys = keys(run_input=semconv.PROMPT_OLD)

    def kind_of(self) -> Kind | None:
        run_type = self.get(_RUN_TYPE)
        if _RUN_TYPE not in self.attributes and self.span.scope.name != "langsmith":
            return None
        kind = _KINDS.get(run_type) if type(run_type) is str else None
        if kind is not None:
            return kind
        # An agent's own run has its name, which LangChain writes on all its runs, and is no node of its graph.
        named = self.get(_AGENT)
        is_agent = named and named == self._run_name() and self.get("langsmith.metadata.langgraph_node") != named
        if is_agent:
            return Kind.AGENT
        return run_kind(not self.span.parent_id)

    def read_any(self) -> None:
        read_metadata(self, self.attributes, _METADATA)
        # A failed run has the status OK like any other; its error is an event.
        failed = next((event.attributes for event in self.span.events if event.name == semconv.EXCEPTION), None)
        if failed is not None:
            self.error = str(failed.get(semconv.EXCEPTION_MESSAGE) or semconv.EXCEPTION)

    def read_tool(self) -> None:
        self.tool_name = self.name_in(semconv.TOOL_NAME) or self._run_name()
        self.arguments = tool_arguments(self.get(semconv.PROMPT_OLD))
        value = as_dict(self.arguments and self.arguments.value)
        if value.keys() == {"input"} and type(inner := parsed(value["input"])) is dict:
            self.arguments = Captured(inner)
        if semconv.COMPLETION_OLD in self.attributes:
            give_outcome(self, tool_outcome(self.attributes[semconv.COMPLETION_OLD], wrapped=True))

    def read_llm(self) -> None:
        read_sides(self, self.get(semconv.PROMPT_OLD), self.get(semconv.COMPLETION_OLD))
        if self.kind is not Kind.LLM and self.agent_name != self._run_name():
            self.agent_name = agent_named(self.span.name) if not self.span.parent_id else ""

    read_agent = read_workflow = read_llm

    def read_retrieval(self) -> None:
        self.documents = documents_in(self.get(semconv.COMPLETION_OLD), "documents", "output", "outputs")

    def _run_name(self) -> str:
        return self.name_in("langsmith.trace.name") or self.span.name


DIALECT = LangSmith
