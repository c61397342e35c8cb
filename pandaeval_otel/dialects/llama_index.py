"""Reads LlamaIndex's own OpenTelemetry integration: spans named after methods, with span events whose nested fields are
flattened with dots. (Other instrumentations of LlamaIndex have dialects of their own.)"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from pandaeval_otel.dialects._common import run_kind, said_by_user, tool_definitions, usage_in
from pandaeval_otel.dialects._messages import message_of
from pandaeval_otel.dialects._reading import Dialect, Reading
from pandaeval_otel.dialects._runs import answered, asked
from pandaeval_otel.dialects._tool_values import tool_arguments
from pandaeval_otel.dialects._values import as_list, first, identifier, parsed
from pandaeval_otel.model import Kind, Message, Text
from pandaeval_otel.model.raw import RawEvent, RawLog, RawSpan

_SCOPE = "llamaindex.opentelemetry"
_TOOL_CALL = re.compile(
    r"ToolCall\(tool_name='(?P<name>[^']+)', tool_kwargs=(?P<arguments>\{.*?\})(?:, tool_id='(?P<id>[^']*)')?\)$", re.S
)
_TOOL_NAME = re.compile(r"ToolCall\(tool_name='(?P<name>[^']+)'")
_CALL_EVENTS = ("LLMChatStartEvent", "LLMChatEndEvent", "LLMCompletionStartEvent", "LLMCompletionEndEvent")
_RETRIEVED, _QUERY = "RetrievalEndEvent", "str_or_query_bundle"
_EMBEDDED = ("EmbeddingStartEvent", "EmbeddingEndEvent", "SparseEmbeddingStartEvent")
_QUERY_EVENTS = ("QueryStartEvent", "QueryEndEvent")
_TOOL_EVENT = "AgentToolCallEvent"
_SPENT = (
    "response.raw.usage.prompt_tokens",
    "response.raw.usage.input_tokens",
    "response.additional_kwargs.prompt_tokens",
)
_MADE = (
    "response.raw.usage.completion_tokens",
    "response.raw.usage.output_tokens",
    "response.additional_kwargs.completion_tokens",
)
_THOUGHT = ("response.raw.usage.completion_tokens_details.reasoning_tokens",)
_CACHED = ("response.raw.usage.prompt_tokens_details.cached_tokens",)


class LlamaIndex(Dialect):
    """Reads the spans of ``llama-index-observability-otel``."""

    name = "llama_index"
    priority = 70
    scopes = (_SCOPE,)

    def read(self, span: RawSpan, logs: Sequence[RawLog]) -> Reading | None:
        if not span.scope.name.startswith(_SCOPE):
            return None
        events = {event.name: event for event in span.events}
        calls = [event for event in span.events if event.name in _CALL_EVENTS]
        if calls:
            return _call(calls)
        if _RETRIEVED in events:
            told = events[_RETRIEVED].attributes
            return Reading(
                kind=Kind.RETRIEVAL,
                input=said_by_user(first(told, (_QUERY, f"{_QUERY}.query_str"))),
                documents=tuple(as_list(told.get("nodes"))),
            )
        if any(name in events for name in _EMBEDDED):
            return Reading(kind=Kind.EMBEDDING)
        if span.name.endswith(".call_tool") or _TOOL_EVENT in events:
            return _tool(span, events.get(_TOOL_EVENT))
        if any(name in events for name in _QUERY_EVENTS):
            told = {
                key: value for name in _QUERY_EVENTS if name in events for key, value in events[name].attributes.items()
            }
            return Reading(
                kind=run_kind(not span.parent_id),
                input=asked(first(told, ("query", "query.query_str")))[0],
                output=answered(first(told, ("response", "response.response")))[0],
            )
        owner, _, method = span.name.rpartition(".")
        if method == "run":
            return Reading(kind=Kind.AGENT if "Agent" in owner else Kind.WORKFLOW)
        return Reading(kind=Kind.STEP)


DIALECT = LlamaIndex()


def _call(events: Sequence[RawEvent]) -> Reading:
    told: dict[str, Any] = {}
    for event in events:
        told.update((key, value) for key, value in event.attributes.items() if value not in (None, "null"))
    reading = Reading(kind=Kind.LLM)
    messages = parsed(told.get("messages"))
    if isinstance(messages, (list, tuple)):
        reading.input = tuple(_message(item) for item in messages if type(item) is dict)
    else:
        reading.input = said_by_user(told.get("prompt"))
    prefix = "response.message."
    message = {key.removeprefix(prefix): value for key, value in told.items() if key.startswith(prefix)}
    if message:
        calls = parsed(message.get("additional_kwargs.tool_calls"))
        reading.output = (_message({**message, "additional_kwargs": {"tool_calls": calls}}),)
    else:
        text = first(told, ("response.text", "response"))
        reading.output = (Message("assistant", (Text(text),)),) if type(text) is str else None
    reading.tools = tool_definitions(told.get("additional_kwargs.tools"))
    reading.request_model = identifier(first(told, ("model_dict.model_name", "model_dict.model")))
    reading.response_model = identifier(told.get("response.raw.model"))
    reading.response_id = identifier(told.get("response.raw.id"))
    reading.usage = usage_in(told, _SPENT, _MADE, cache_read=_CACHED, thought=_THOUGHT)
    return reading


def _message(item: dict[str, Any]) -> Message:
    """Reads a ``ChatMessage``: its blocks name their type ``block_type``, and calls may stand in them or beside
    them."""
    blocks = [block for block in as_list(item.get("blocks")) if type(block) is dict]
    content = [{**block, "type": block.get("block_type"), "arguments": block.get("tool_kwargs")} for block in blocks]
    beside = item.get("additional_kwargs")
    beside = beside if type(beside) is dict else {}
    found = {"role": item.get("role"), "tool_call_id": beside.get("tool_call_id"), "name": beside.get("name")}
    if not any(block.get("block_type") == "tool_call" for block in blocks):
        found["tool_calls"] = beside.get("tool_calls")
    if "blocks" not in item and "content" in item:
        return message_of({**found, "content": item["content"]}, "user")
    return message_of({**found, "content": content}, "user")


def _tool(span: RawSpan, event: RawEvent | None) -> Reading:
    """Reads a call from its event, or from the summary of the step's input, which is cut after 200 characters (the
    model's request is not)."""
    reading = Reading(kind=Kind.TOOL)
    if event is not None:
        reading.tool_name = identifier(event.attributes.get("tool.name"))
        reading.arguments = tool_arguments(event.attributes.get("arguments"))
        return reading
    summary = span.attributes.get("llamaindex.step.input_summary")
    if type(summary) is str:
        whole, name = _TOOL_CALL.match(summary), _TOOL_NAME.match(summary)
        reading.tool_name = name["name"] if name else ""
        if whole:
            reading.tool_call_id = whole["id"] or ""
            reading.arguments = tool_arguments(whole["arguments"])
    return reading
