"""Reads LiteLLM's own OpenTelemetry callback: what it writes beside the conventions' keys.

The tool calls of an answer stand under ``gen_ai.completion.N.function_call``, not among the output messages. The span
``raw_gen_ai_request`` repeats the provider's request and response, one attribute for each member of the two bodies:
``llm.openai.messages``, ``llm.openai.choices``.
"""

from __future__ import annotations

from pandaeval_otel.base import semconv
from pandaeval_otel.dialects._kit import (
    Attributes,
    Dialect,
    Logs,
    Messages,
    RawSpan,
    Reading,
    fill,
    first,
    identifier,
    indexed,
    keys,
    messages_of,
    metadata_sessions,
    one_session,
    parsed,
    usage_in,
)
from pandaeval_otel.model import Kind, Message, ToolRequest
from pandaeval_otel.model.message import all_parts

_RAW = "raw_gen_ai_request"
_BODY_KEYS = keys(
    input=("messages", "contents", "input", "prompt"),
    system=("system", "systemInstruction", "system_instruction", "instructions"),
    tools="tools",
    request_model="model",
    response_id="id",
)
_MADE = frozenset({"choices", "candidates", "content", "output", "message"})
_USAGE = ("usage", "usageMetadata")
_SPENT = ("prompt_tokens", "input_tokens", "promptTokenCount")
_MADE_TOKENS = ("completion_tokens", "output_tokens", "candidatesTokenCount")
_CALLS = frozenset({"gen_ai.completion"})
_NAME = "function_call.name"
_METADATA = ("metadata.requester_metadata", "metadata.spend_logs_metadata")
_SESSIONS = ("metadata.litellm_session_id", "metadata.session_id", "litellm.session_id")


class LiteLLM(Dialect):
    """Reads ``litellm.*``, ``gen_ai.completion.N.function_call.*`` and the bodies on ``raw_gen_ai_request``."""

    name = "litellm"
    priority = 60
    roots = frozenset({"litellm"})
    names = (_RAW,)

    def read(self, span: RawSpan, logs: Logs) -> Reading | None:
        attributes = span.attributes
        if span.name == _RAW:
            return _raw(attributes)
        if "litellm.call_id" not in attributes:
            return None
        reading = Reading(kind=Kind.LLM)
        reading.output = _with_calls(messages_of(attributes.get(semconv.OUTPUT_MESSAGES), "assistant"), attributes)
        named = [one_session(attributes.get(key)) for key in _SESSIONS]
        named += [metadata_sessions(attributes.get(key)) for key in _METADATA]
        reading.session_ids = next((sessions for sessions in named if sessions), ())
        return reading


DIALECT = LiteLLM()


def _with_calls(output: Messages | None, attributes: Attributes) -> Messages | None:
    """Returns ``output`` with the tool calls beside it."""
    items = indexed(attributes, _CALLS).get("gen_ai.completion", ())
    calls = [
        ToolRequest(identifier(fields[_NAME]), parsed(fields.get("function_call.arguments")), "")
        for fields in items
        if fields.get(_NAME)
    ]
    if not calls or any(type(part) is ToolRequest for part in all_parts(output)):
        return output
    *before, last = output or (Message("assistant", ()),)
    return (*before, last.with_parts(*last.parts, *calls))


def _raw(attributes: Attributes) -> Reading:
    # The members of the request and response bodies: `llm.PROVIDER.MEMBER`.
    keys = ((key, key.split(".", 2)) for key in attributes if key.startswith("llm."))
    body = {path[2]: attributes[key] for key, path in keys if len(path) > 2}
    reading = Reading(kind=Kind.LLM)
    fill(reading, body, _BODY_KEYS)
    if not _MADE.isdisjoint(body):
        reading.output = messages_of({key: parsed(body[key]) for key in _MADE & body.keys()}, "assistant")
    reading.usage = usage_in(parsed(first(body, _USAGE)), _SPENT, _MADE_TOKENS)
    return reading
