"""Reads Logfire's integrations (``logfire.openai_agents`` and clients): ``raw_input``, ``response``, ``request_data``,
``response_data`` and ``events``.

Span names are templates (``Function: {name}``).
"""

from __future__ import annotations

from pandaeval_otel.base import semconv
from pandaeval_otel.dialects._kit import (
    ByKind,
    Reading,
    as_dict,
    fill,
    keys,
    messages_in_event_list,
    messages_of,
)
from pandaeval_otel.model import Kind

_SPAN_TYPE, _PENDING = "logfire.span_type", "pending_span"
"""A copy of each open span, with the attributes known so far."""
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
    name = "logfire"
    priority = 82
    roots = frozenset({"logfire", _REQUEST, _RESPONSE})
    scopes = ("logfire.",)
    workflow_keys = keys(session_ids="group_id")
    agent_keys = keys(agent_name="name", tools="tools")
    tool_keys = keys(tool_name="name", arguments="input", outcome="output")

    def read_span(self) -> Reading | None:
        if self.get(_SPAN_TYPE) == _PENDING:
            return Reading(kind=Kind.STEP)
        if self.span.scope.name.startswith("logfire.openai_agents"):
            return self.read_as(next((kind for title, kind in _KINDS if self.span.name.startswith(title)), Kind.STEP))
        if _REQUEST in self.attributes and semconv.INPUT_MESSAGES not in self.attributes:
            self._read_client()
            return self.stated()
        return None

    def _read_client(self) -> None:
        fill(self, as_dict(self.parsed(_REQUEST)), _REQUEST_KEYS)
        if self.input is not None:
            self.kind = Kind.LLM
        fill(self, as_dict(self.parsed(_RESPONSE)), _ANSWER_KEYS)
        if self.input is None:
            self._read_events()

    def read_any(self) -> None:
        error = self.parsed("error")  # {"message", "data": {"error"}}
        if type(error) is dict:
            words = (error.get("message"), as_dict(error.get("data")).get("error"))
            self.error = ": ".join(str(word) for word in words if word) or "error"

    def read_llm(self) -> None:
        response = as_dict(self.parsed("response"))
        fill(self, response, _RESPONSE_KEYS)
        self.input = messages_of(self.first("raw_input", "input"), "user")
        self.output = self.output or messages_of(self.get("output"), "assistant")
        if self.input is None and self.output is None:
            self._read_events()

    def _read_events(self) -> None:
        if _EVENTS not in self.attributes:
            return
        given, made = messages_in_event_list(self.attributes[_EVENTS])
        if made is None and given:
            at = len(given)
            while at and given[at - 1].role == "assistant":
                at -= 1
            given, made = given[:at], given[at:] or None
        self.input, self.output = given, made
        self.kind = Kind.LLM


DIALECT = Logfire
