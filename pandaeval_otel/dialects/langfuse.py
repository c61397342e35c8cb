"""Reads Langfuse's SDK: ``langfuse.*``, with input and output as JSON."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pandaeval_otel.dialects._kit import (
    KINDS,
    ByKind,
    Reading,
    agent_named,
    as_list,
    count,
    drop_unnamed,
    first,
    identifier,
    keys,
    kinds,
    parsed,
    prefixed_sessions,
    read_metadata,
    read_sides,
    run_kind,
    tool_definitions,
    usage_in,
)
from pandaeval_otel.dialects.gen_ai import kind_of
from pandaeval_otel.dialects.plain import own_tool
from pandaeval_otel.model import Kind, Usage

_TYPE = "langfuse.observation.type"
_INPUT, _OUTPUT = "langfuse.observation.input", "langfuse.observation.output"
_METADATA = "langfuse.observation.metadata."
_AGENT, _NODE, _CALL_ID = f"{_METADATA}lc_agent_name", f"{_METADATA}langgraph_node", f"{_METADATA}tool_call_id"
_ROOT_MARKS = ("langfuse.internal.is_app_root", "langfuse.internal.as_root", f"{_METADATA}is_langchain_root")
_KINDS = KINDS | kinds(llm="generation", step="event")
_SPENT_WORDS = ("input", "input_tokens", "prompt_tokens", "promptTokens")
_MADE_WORDS = ("output", "output_tokens", "completion_tokens", "completionTokens")
_TOTAL_WORDS = ("total", "total_tokens", "totalTokens")
_CACHE_READ = ("input_cache_read", "cache_read_input_tokens", "input_cached_tokens")
_CACHE_WRITE = ("input_cache_creation", "cache_creation_input_tokens")
_MADE_BESIDE = ("output_reasoning", "output_audio")
_MAY_BE_BESIDE = ("output_reasoning_tokens", "output_audio_tokens")
"""Tokens that JavaScript's SDK takes out of the output tokens. Other programs count them in both."""
_THOUGHT = ("output_reasoning", "reasoning_tokens", "output_reasoning_tokens")
_SCHEMA_KEYS = frozenset({"function", "input_schema", "parameters"})


class Langfuse(ByKind):
    name = "langfuse"
    priority = 65
    roots = frozenset({"langfuse"})
    scopes = ("langfuse",)
    retrieval_keys = keys(run_input=_INPUT)
    tool_keys = keys(arguments=_INPUT, outcome=_OUTPUT)

    def kind_of(self) -> Kind | None:
        stated = self.get(_TYPE)
        kind = _KINDS.get(stated) if type(stated) is str else None
        if kind is not None:
            return kind
        if stated is None and (kind := kind_of(self.span, self.attributes)) is not None:
            return kind  # an untyped span that states its kind by the conventions
        if stated is None and own_tool(self.attributes)[1]:
            return Kind.TOOL
        named = identifier(self.parsed(_AGENT))
        if named and named == self.span.name and identifier(self.parsed(_NODE)) != named:
            return Kind.AGENT
        return run_kind(not self.span.parent_id or any(self.get(mark) in (True, "true") for mark in _ROOT_MARKS))

    def read_span(self) -> Reading | None:
        if _TYPE not in self.attributes and _INPUT not in self.attributes and self.span.scope.name != "langfuse-sdk":
            return None
        return self.read_as(self.kind_of())

    def read_any(self) -> None:
        if self.parsed("langfuse.observation.level") == "ERROR":
            status = self.parsed("langfuse.observation.status_message")
            self.error = str(status or "error")
        self.agent_name = identifier(self.parsed(_AGENT))
        read_metadata(self, self.attributes, _METADATA)
        self.session_ids = self.session_ids or prefixed_sessions(self.attributes, "langfuse.trace.metadata.")

    def read_retrieval(self) -> None:
        made = self.parsed(_OUTPUT)
        self.documents = tuple(as_list(made.get("documents", made) if type(made) is dict else made))

    def read_tool(self) -> None:
        self.tool_name = own_tool(self.attributes)[1] or self.span.name or self.tool_name
        self.tool_call_id = identifier(self.parsed(_CALL_ID)) or self.tool_call_id
        drop_unnamed(self)

    def read_agent(self) -> None:
        given = parsed(self.get(_INPUT, self.get("langfuse.trace.input")))
        if self.kind is Kind.LLM:
            given, offered = _without_tools(given)
            self.tools = tool_definitions(offered)
        read_sides(self, given, self.get(_OUTPUT, self.get("langfuse.trace.output")))
        self.request_model = identifier(self.parsed("langfuse.observation.model.name"))
        self.usage = _usage(self.parsed("langfuse.observation.usage_details"))
        if self.kind in (Kind.AGENT, Kind.WORKFLOW) and self.agent_name != self.span.name:
            is_own = self.kind is Kind.AGENT or (not self.span.parent_id and self.get(_TYPE) == "chain")
            self.agent_name = agent_named(self.span.name) if is_own else ""

    read_workflow = read_llm = read_unstated = read_agent


DIALECT = Langfuse


def _without_tools(given: Any) -> tuple[Any, Any]:
    if type(given) is dict:
        return {key: value for key, value in given.items() if key != "tools"}, given.get("tools")
    if not isinstance(given, list):
        return given, None
    offered = [item["content"] for item in given if _is_definition(item)]
    return [item for item in given if not _is_definition(item)], offered or None


def _is_definition(item: Any) -> bool:
    if type(item) is not dict or item.get("role") != "tool" or type(item.get("content")) is not dict:
        return False
    return not _SCHEMA_KEYS.isdisjoint(item["content"])


def _usage(details: Any) -> Usage | None:
    """Return the tokens. Langfuse counts cached and reasoning tokens separately."""
    usage = usage_in(details, _SPENT_WORDS, _MADE_WORDS, _CACHE_READ, _CACHE_WRITE, _THOUGHT)
    if usage is None:
        return None
    made = usage.output + _tokens(details, _MADE_BESIDE)
    total = count(first(details, _TOTAL_WORDS)) or 0
    beside = _tokens(details, _MAY_BE_BESIDE)
    if total == usage.input + made + beside:
        made += beside
    return replace(usage, input=max(usage.input, total - made), output=made)


def _tokens(details: Any, names: tuple[str, ...]) -> int:
    return sum(count(details.get(name)) or 0 for name in names)
