"""Reads LangWatch's SDK: ``langwatch.*``, with inputs and outputs as ``{"type": …, "value": …}``."""

from __future__ import annotations

from typing import Any

from pandaeval_otel.dialects._kit import (
    KINDS,
    ByKind,
    agent_named,
    as_dict,
    give_outcome,
    identifier,
    keys,
    kinds,
    metadata_sessions,
    parsed,
    read_sides,
    tool_arguments,
    tool_definitions,
    tool_outcome,
    usage_in,
)
from pandaeval_otel.model import Kind

_INPUT, _OUTPUT, _PARAMETERS = "langwatch.input", "langwatch.output", "langwatch.params"
_METADATA = "metadata"
_KINDS = KINDS | kinds(
    retrieval="rag", workflow=("workflow", "server", "client"), step=("chain", "span", "module", "component", "task")
)
_METRICS = (
    ("prompt_tokens", "promptTokens"),
    ("completion_tokens", "completionTokens"),
    (),
    (),
    ("reasoning_tokens", "reasoningTokens"),
)


class LangWatch(ByKind):
    name = "langwatch"
    priority = 65
    roots = frozenset({"langwatch"})
    scopes = ("langwatch",)
    any_keys = keys(
        session_ids=("langwatch.thread.id", "langwatch.thread_id"), user_id=("langwatch.user.id", "langwatch.user_id")
    )
    retrieval_keys = keys(documents="langwatch.rag.contexts")

    def kind_of(self) -> Kind | None:
        word = self.get("langwatch.span.type")
        if word is None and _INPUT not in self.attributes and _OUTPUT not in self.attributes:
            return None
        kind = _KINDS.get(str(word), Kind.STEP)
        return Kind.WORKFLOW if kind is Kind.STEP and not self.span.parent_id else kind

    def read_any(self) -> None:
        metadata = self.get(_METADATA)
        self.session_ids = self.session_ids or metadata_sessions(metadata)
        self.user_id = self.user_id or identifier(as_dict(parsed(metadata)).get("user_id"))

    def read_llm(self) -> None:
        read_sides(self, _value(self.get(_INPUT)), _value(self.get(_OUTPUT)))
        self.tools = tool_definitions(as_dict(self.parsed(_PARAMETERS)).get("tools"))
        self.usage = usage_in(as_dict(_value(self.get("langwatch.metrics"))), *_METRICS)

    def read_workflow(self) -> None:
        read_sides(self, _value(self.get(_INPUT)), _value(self.get(_OUTPUT)))
        self.agent_name = agent_named(self.span.name)

    read_agent = read_workflow

    def read_retrieval(self) -> None:
        read_sides(self, _value(self.get(_INPUT)), None)

    def read_tool(self) -> None:
        self.tool_name = identifier(self.span.name)
        self.arguments = tool_arguments(_value(self.get(_INPUT)))
        give_outcome(self, tool_outcome(_value(self.get(_OUTPUT))))


DIALECT = LangWatch


def _value(typed: Any) -> Any:
    whole = parsed(typed)
    if type(whole) is dict and whole.keys() >= {"type", "value"}:
        return whole["value"]
    return whole
