"""Reads ``llama-index-observability-otel``: spans named after methods, with dotted fields in span events."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from pandaeval_otel.dialects._kit import (
    ByKind,
    Object,
    RawEvent,
    RawSpan,
    Reading,
    answered,
    as_dict,
    asked,
    dicts_in,
    fill,
    first,
    keys,
    message_of,
    one_message,
    parsed,
    run_kind,
    said_by_user,
    tool_arguments,
    usage_in,
)
from pandaeval_otel.model import Kind, Message, Text

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
_ANSWER = "response.message."
_CALL_KEYS = keys(
    tools="additional_kwargs.tools",
    request_model=("model_dict.model_name", "model_dict.model"),
    response_model="response.raw.model",
    response_id="response.raw.id",
)
_RETRIEVAL_KEYS = keys(question=(_QUERY, f"{_QUERY}.query_str"), documents="nodes")
_TOOL_KEYS = keys(tool_name="tool.name", arguments="arguments")


class LlamaIndex(ByKind):
    name = "llama_index"
    priority = 70
    scopes = (_SCOPE,)

    def read_span(self) -> Reading | None:
        span = self.span
        if not span.scope.name.startswith(_SCOPE):
            return None
        events = {event.name: event for event in span.events}
        calls = [event for event in span.events if event.name in _CALL_EVENTS]
        if calls:
            return _call(calls)
        if _RETRIEVED in events:
            fill(self, events[_RETRIEVED].attributes, _RETRIEVAL_KEYS)
            return self.read_as(Kind.RETRIEVAL)
        if any(name in events for name in _EMBEDDED):
            return self.read_as(Kind.EMBEDDING)
        if span.name.endswith(".call_tool") or _TOOL_EVENT in events:
            return _tool(span, events.get(_TOOL_EVENT))
        if any(name in events for name in _QUERY_EVENTS):
            fields: Object = {}
            for name in _QUERY_EVENTS:
                fields |= events[name].attributes if name in events else {}
            self.input = asked(first(fields, ("query", "query.query_str")))[0]
            self.output = answered(first(fields, ("response", "response.response")))[0]
            return self.read_as(run_kind(not span.parent_id))
        owner, _, method = span.name.rpartition(".")
        if method != "run":
            return self.read_as(Kind.STEP)
        return self.read_as(Kind.AGENT if "Agent" in owner else Kind.WORKFLOW)


DIALECT = LlamaIndex


def _call(events: Sequence[RawEvent]) -> Reading:
    fields: Object = {}
    for event in events:
        fields.update((key, value) for key, value in event.attributes.items() if value not in (None, "null"))
    reading = Reading(kind=Kind.LLM)
    fill(reading, fields, _CALL_KEYS)
    messages = parsed(fields.get("messages"))
    if isinstance(messages, (list, tuple)):
        reading.input = tuple(_message(item) for item in messages if type(item) is dict)
    else:
        reading.input = said_by_user(fields.get("prompt"))
    message = {key.removeprefix(_ANSWER): value for key, value in fields.items() if key.startswith(_ANSWER)}
    text = first(fields, ("response.text", "response"))
    if message:
        calls = parsed(message.get("additional_kwargs.tool_calls"))
        reading.output = (_message({**message, "additional_kwargs": {"tool_calls": calls}}),)
    elif type(text) is str:
        reading.output = one_message("assistant", Text(text))
    reading.usage = usage_in(fields, _SPENT, _MADE, cache_read=_CACHED, thought=_THOUGHT)
    return reading


def _message(item: Object) -> Message:
    blocks = dicts_in(item.get("blocks"))
    content: Any = [
        {**block, "type": block.get("block_type"), "arguments": block.get("tool_kwargs")} for block in blocks
    ]
    if "blocks" not in item and "content" in item:
        content = item["content"]
    beside = as_dict(item.get("additional_kwargs"))
    message = {"role": item.get("role"), "tool_call_id": beside.get("tool_call_id"), "name": beside.get("name")}
    if not any(block.get("block_type") == "tool_call" for block in blocks):
        message["tool_calls"] = beside.get("tool_calls")
    return message_of({**message, "content": content}, "user")


def _tool(span: RawSpan, event: RawEvent | None) -> Reading:
    reading = Reading(kind=Kind.TOOL)
    if event is not None:
        fill(reading, event.attributes, _TOOL_KEYS)
        return reading
    summary = span.attributes.get("llamaindex.step.input_summary")
    if type(summary) is str and (name := _TOOL_NAME.match(summary)):
        reading.tool_name = name["name"]
        if whole := _TOOL_CALL.match(summary):
            reading.tool_call_id = whole["id"] or ""
            reading.arguments = tool_arguments(whole["arguments"])
    return reading
