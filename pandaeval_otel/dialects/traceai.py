"""Reads traceAI (Future AGI): OpenInference's attributes under GenAI names, with ``gen_ai.span.kind`` or
``fi.span.kind``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar

from pandaeval_otel.dialects._kit import Logs, RawSpan, Reading
from pandaeval_otel.dialects.openinference import OpenInference
from pandaeval_otel.model import Kind

_KIND = "gen_ai.span.kind"
_PREFIXES = {
    "gen_ai.input.messages.": "llm.input_messages.",
    "gen_ai.output.messages.": "llm.output_messages.",
    "gen_ai.tool.definitions.": "llm.tools.",
    "gen_ai.retrieval.documents.": "retrieval.documents.",
}
_NAMES = {
    _KIND: "openinference.span.kind",
    "fi.span.kind": "openinference.span.kind",
    "gen_ai.request.parameters": "llm.invocation_parameters",
    "gen_ai.request.model": "llm.model_name",
    "gen_ai.tool.name": "tool.name",
    "gen_ai.agent.name": "agent.name",
    "gen_ai.usage.input_tokens": "llm.token_count.prompt",
    "gen_ai.usage.output_tokens": "llm.token_count.completion",
    "gen_ai.usage.input_tokens.cache_read": "llm.token_count.prompt_details.cache_read",
    "gen_ai.usage.output_tokens.reasoning": "llm.token_count.completion_details.reasoning",
}


class TraceAI(OpenInference):
    name = "traceai"
    priority = 52
    roots = frozenset({"fi", "gen_ai"})
    marks = frozenset({_KIND, "fi.span.kind"})
    scopes = ("traceai_",)
    shared_roots = frozenset[str]()
    renamed: ClassVar[Mapping[str, str]] = _NAMES
    prefixes: ClassVar[Mapping[str, str]] = _PREFIXES

    def __init__(self, span: RawSpan, logs: Logs) -> None:
        translated = {self._translated(key): value for key, value in span.attributes.items()}
        super().__init__(replace(span, attributes=translated), logs)

    @classmethod
    def _translated(cls, key: str) -> str:
        if key in cls.renamed:
            return cls.renamed[key]
        return next((key.replace(old, new, 1) for old, new in cls.prefixes.items() if key.startswith(old)), key)

    @classmethod
    def read(cls, span: RawSpan, logs: Logs) -> Reading | None:
        if cls.marks.isdisjoint(span.attributes):
            return None
        return super().read(span, logs)

    def read_any(self) -> None:
        super().read_any()
        if self.kind is Kind.AGENT:
            self.agent_name = self.agent_name or self.name_in("graph.node.id")


DIALECT = TraceAI
