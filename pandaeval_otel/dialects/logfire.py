"""Reads Logfire's own integrations: OpenAI Agents SDK, and the clients of OpenAI, Anthropic and others.

Spans are named by templates (``Function: {name}``), and hold the SDKs' own objects: ``raw_input`` and ``response``,
``request_data`` and ``response_data``, ``events``. Newer releases also follow the conventions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pandaeval_otel.base import semconv
from pandaeval_otel.dialects._common import give_outcome, one_session, tool_definitions
from pandaeval_otel.dialects._events import told_in_list
from pandaeval_otel.dialects._messages import messages_of, system_text
from pandaeval_otel.dialects._reading import Attributes, ByKind, Reading
from pandaeval_otel.dialects._tool_values import tool_arguments, tool_outcome
from pandaeval_otel.dialects._values import first, hidden, identifier, parsed
from pandaeval_otel.model import Kind
from pandaeval_otel.model.raw import RawLog, RawSpan

_SPAN_TYPE, _PENDING = "logfire.span_type", "pending_span"
"""A second span for each that has only begun, with what was known of it by then."""
_REQUEST, _RESPONSE, _EVENTS = "request_data", "response_data", "events"
_NAME, _INPUT, _OUTPUT = "name", "input", "output"
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

    def read(self, span: RawSpan, logs: Sequence[RawLog]) -> Reading | None:
        attributes = span.attributes
        if attributes.get(_SPAN_TYPE) == _PENDING:
            return Reading(kind=Kind.STEP)
        if not span.scope.name.startswith("logfire.openai_agents"):
            return _client(attributes) if _REQUEST in attributes else None
        return self.read_as(next((kind for title, kind in _KINDS if span.name.startswith(title)), Kind.STEP), span)

    def read_any(self, reading: Reading, span: RawSpan, attributes: Attributes) -> None:
        error = parsed(attributes.get("error"))  # {"message", "data": {"error"}}
        if type(error) is dict:
            data = error.get("data")
            said = (error.get("message"), data.get("error") if type(data) is dict else None)
            reading.error = ": ".join(str(word) for word in said if word) or "error"

    def read_workflow(self, reading: Reading, span: RawSpan, attributes: Attributes) -> None:
        reading.session_ids = one_session(attributes.get("group_id"))

    def read_agent(self, reading: Reading, span: RawSpan, attributes: Attributes) -> None:
        reading.agent_name = identifier(attributes.get(_NAME))
        reading.tools = tool_definitions(attributes.get("tools"))

    def read_tool(self, reading: Reading, span: RawSpan, attributes: Attributes) -> None:
        reading.tool_name = identifier(attributes.get(_NAME))
        reading.arguments = tool_arguments(attributes.get(_INPUT))
        if not hidden(attributes.get(_OUTPUT)):
            give_outcome(reading, tool_outcome(attributes[_OUTPUT]))

    def read_llm(self, reading: Reading, span: RawSpan, attributes: Attributes) -> None:
        response = parsed(attributes.get("response"))
        if type(response) is dict:
            reading.output = messages_of(response.get("output"), "assistant")
            reading.tools = tool_definitions(response.get("tools"))
            reading.system = system_text(response.get("instructions"))
        reading.input = messages_of(first(attributes, ("raw_input", _INPUT)), "user")
        reading.output = reading.output or messages_of(attributes.get(_OUTPUT), "assistant")
        if reading.input is None and reading.output is None and _EVENTS in attributes:
            _read_events(reading, attributes[_EVENTS])


DIALECT = Logfire()


def _client(attributes: Mapping[str, Any]) -> Reading | None:
    """Reads a provider's call in Logfire's older format; ``None`` where the conventions' messages are there."""
    if semconv.INPUT_MESSAGES in attributes:
        return None
    reading = Reading()
    request, response = parsed(attributes.get(_REQUEST)), parsed(attributes.get(_RESPONSE))
    if type(request) is dict:
        reading.request_model = identifier(request.get("model"))
        reading.tools = tool_definitions(request.get("tools"))
        reading.system = system_text(request.get("system"))
        reading.input = messages_of(first(request, ("messages", "prompt", "contents")), "user")
        if reading.input is not None:
            reading.kind = Kind.LLM
    if type(response) is dict:
        answer = first(response, ("message", "combined_chunk_content", "text", "choices"))
        reading.output = messages_of(answer, "assistant")
    if _EVENTS in attributes and reading.input is None:
        _read_events(reading, attributes[_EVENTS])
    return None if reading == Reading() else reading


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
