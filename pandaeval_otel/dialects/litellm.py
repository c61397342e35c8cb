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
    identifier,
    indexed,
    messages_of,
    metadata_sessions,
    one_session,
    parsed,
    system_text,
    tool_definitions,
    usage_in,
)
from pandaeval_otel.model import Kind, Message, Part, ToolRequest

_RAW = "raw_gen_ai_request"
_GIVEN = ("messages", "contents", "input", "prompt")
_MADE = frozenset({"choices", "candidates", "content", "output", "message"})
_SYSTEM = ("system", "systemInstruction", "system_instruction", "instructions")
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
    """Returns ``output`` with the tool calls that stand beside it."""
    calls = tuple(
        ToolRequest(identifier(fields[_NAME]), parsed(fields.get("function_call.arguments")), "")
        for fields in indexed(attributes, _CALLS).get("gen_ai.completion", ())
        if fields.get(_NAME)
    )
    if not calls or any(type(part) is ToolRequest for message in output or () for part in message.parts):
        return output
    *before, last = output or (Message("assistant", ()),)
    parts: tuple[Part, ...] = (*last.parts, *calls)
    return (*before, Message(last.role, parts, last.finish_reason))


def _raw(attributes: Attributes) -> Reading:
    # The members of the request and response bodies: `llm.PROVIDER.MEMBER`.
    keys = ((key, key.split(".", 2)) for key in attributes if key.startswith("llm."))
    body = {path[2]: attributes[key] for key, path in keys if len(path) > 2}
    reading = Reading(kind=Kind.LLM)
    given = next((body[key] for key in _GIVEN if key in body), None)
    reading.input = messages_of(parsed(given), "user")
    if not _MADE.isdisjoint(body):
        reading.output = messages_of({key: parsed(body[key]) for key in _MADE & body.keys()}, "assistant")
    system = next((body[key] for key in _SYSTEM if key in body), None)
    reading.system = system_text(parsed(system)) if system else None
    reading.tools = tool_definitions(body.get("tools"))
    used = next((parsed(body[key]) for key in _USAGE if key in body), None)
    reading.usage = usage_in(used, _SPENT, _MADE_TOKENS)
    reading.request_model = identifier(body.get("model"))
    reading.response_id = identifier(body.get("id"))
    return reading
