"""Reads Judgeval: ``judgment.*``, with requests and responses of models as JSON under the conventions' earlier keys."""

from __future__ import annotations

from dataclasses import replace

from pandaeval_otel.base import semconv
from pandaeval_otel.dialects._kit import (
    KINDS,
    ByKind,
    agent_named,
    as_dict,
    keys,
    read_sides,
    run_kind,
    tool_definitions,
    usage_in,
)
from pandaeval_otel.model import Kind

_USAGE = "judgment.usage"


class Judgeval(ByKind):
    name = "judgeval"
    priority = 65
    roots = frozenset({"judgment"})
    scopes = ("judgeval",)
    any_keys = keys(session_ids="judgment.session_id", user_id="judgment.customer_user_id")
    llm_keys = keys(response_model="judgment.llm.model")
    tool_keys = keys(arguments="judgment.input", outcome="judgment.output")

    def kind_of(self) -> Kind | None:
        word = self.get("judgment.span_kind")
        return KINDS.get(str(word)) or (run_kind(not self.span.parent_id) if word else None)

    def read_llm(self) -> None:
        read_sides(self, self.get(semconv.PROMPT_OLD), self.get(semconv.COMPLETION_OLD))
        request = as_dict(self.parsed(semconv.PROMPT_OLD))
        self.tools = tool_definitions(request.get("tools"))
        read, written = f"{_USAGE}.cache_read_input_tokens", f"{_USAGE}.cache_creation_input_tokens"
        usage = usage_in(self.attributes, f"{_USAGE}.non_cached_input_tokens", f"{_USAGE}.output_tokens", read, written)
        self.usage = usage and replace(usage, input=usage.input + usage.cache_read + usage.cache_write)

    def read_agent(self) -> None:
        read_sides(self, self.get("judgment.input"), self.get("judgment.output"))
        self.agent_name = agent_named(self.span.name) if self.kind is Kind.AGENT else ""

    read_workflow = read_agent

    def read_tool(self) -> None:
        self.tool_name = self.span.name


DIALECT = Judgeval
