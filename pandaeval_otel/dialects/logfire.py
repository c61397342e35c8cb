"""Reads Logfire's own integrations: OpenAI Agents SDK, and the clients of OpenAI, Anthropic and others.

Spans are named by templates (``Function: {name}``), and hold the SDKs' own objects: ``raw_input`` and ``response``,
``request_data`` and ``response_data``, ``events``. Newer releases also follow the conventions.
"""

from __future__ import annotations

from typing import Any

from pandaeval_otel.base import semconv
from pandaeval_otel.dialects._kit import (
    Attributes,
    ByKind,
    Logs,
    RawSpan,
    Reading,
    as_dict,
    fill,
    first,
    keys,
    messages_of,
    parsed,
    told_in_list,
)
from pandaeval_otel.model import Kind

_SPAN_TYPE, _PENDING = "logfire.span_type", "pending_span"
"""A second span for each that has only begun, with what was known of it by then."""
_REQUEST, _RESPONSE, _EVENTS = "request_data", "response_data", "events"
_REQUEST_KEYS = keys(request_model="model", tools="tools", system="system", input=("messages", "prompt", "contents"))
_ANSWER_KEYS = keys(output=("message", "combined_chunk_content", "text", "choices"))
_RESPONSE_KEYS = keys(output="output", tools="tools", system="instructions")
_KINDS = (
    ("OpenAI Agents trace", Kind.WORKFLOW),
    ("Agent run", Kind.AGENT),
    ("Function", Kind.TOOL),
    ("Chat completion", Kind.LLM),
    ("Responses API", Kind.LLM),
    ("Guardrail", Kind.GUARDRAIL),
)


class Logfire(ByKind):
    """Reads ``request_data``, ``response_data``, ``events`` and the attributes of ``logfire.openai_agents``."""

    name = "logfire"
    priority = 82
    roots = frozenset({"logfire", _REQUEST, _RESPONSE})
    scopes = ("logfire.",)
    workflow_keys = keys(session_ids="group_id")
    agent_keys = keys(agent_name="name", tools="tools")
    tool_keys = keys(tool_name="name", arguments="input", outcome="output")

    def read(self, span: RawSpan, logs: Logs) -> Reading | None:
        attributes = span.attributes
        if attributes.get(_SPAN_TYPE) == _PENDING:
            return Reading(kind=Kind.STEP)
        if not span.scope.name.startswith("logfire.openai_agents"):
            if _REQUEST in attributes:
                return _client(attributes)
            return None
        return self.read_as(next((kind for title, kind in _KINDS if span.name.startswith(title)), Kind.STEP), span)

    def read_any(self, reading: Reading, span: RawSpan, attributes: Attributes) -> None:
        error = parsed(attributes.get("error"))  # {"message", "data": {"error"}}
        if type(error) is dict:
            words = (error.get("message"), as_dict(error.get("data")).get("error"))
            reading.error = ": ".join(str(word) for word in words if word) or "error"

    def read_llm(self, reading: Reading, span: RawSpan, attributes: Attributes) -> None:
        response = as_dict(parsed(attributes.get("response")))
        fill(reading, response, _RESPONSE_KEYS)
        reading.input = messages_of(first(attributes, ("raw_input", "input")), "user")
        reading.output = reading.output or messages_of(attributes.get("output"), "assistant")
        if reading.input is None and reading.output is None and _EVENTS in attributes:
            _read_events(reading, attributes[_EVENTS])


DIALECT = Logfire()


def _client(attributes: Attributes) -> Reading | None:
    """Reads a provider's call in Logfire's older format; ``None`` where the conventions' messages are there."""
    if semconv.INPUT_MESSAGES in attributes:
        return None
    reading = Reading()
    fill(reading, as_dict(parsed(attributes.get(_REQUEST))), _REQUEST_KEYS)
    if reading.input is not None:
        reading.kind = Kind.LLM
    fill(reading, as_dict(parsed(attributes.get(_RESPONSE))), _ANSWER_KEYS)
    if _EVENTS in attributes and reading.input is None:
        _read_events(reading, attributes[_EVENTS])
    return reading.stated()


def _read_events(reading: Reading, value: Any) -> None:
    """Splits the one list of items that the Responses API has: the answer is what the assistant said at its end."""
    given, made = told_in_list(value)
    if made is None and given:
        at = len(given)
        while at and given[at - 1].role == "assistant":
            at -= 1
        given, made = given[:at], given[at:] or None
    reading.input, reading.output = given, made
    reading.kind = Kind.LLM
