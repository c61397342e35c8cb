"""Reads LiteLLM's callback: ``litellm.*``, ``gen_ai.completion.N.function_call.*``, and the bodies on
``raw_gen_ai_request`` (``llm.openai.messages``).
"""

from __future__ import annotations

from pandaeval_otel.base import semconv
from pandaeval_otel.dialects._kit import (
    ByKind,
    Messages,
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


class LiteLLM(ByKind):
    name = "litellm"
    priority = 60
    roots = frozenset({"litellm"})
    names = (_RAW,)

    def read_span(self) -> Reading | None:
        if self.span.name != _RAW and "litellm.call_id" not in self.attributes:
            return None
        self.kind = Kind.LLM
        if self.span.name == _RAW:
            self._read_bodies()
            return self
        self.output = self._with_calls(messages_of(self.get(semconv.OUTPUT_MESSAGES), "assistant"))
        named = [one_session(self.get(key)) for key in _SESSIONS]
        named += [metadata_sessions(self.get(key)) for key in _METADATA]
        self.session_ids = next((sessions for sessions in named if sessions), ())
        return self

    def _with_calls(self, output: Messages | None) -> Messages | None:
        items = indexed(self.attributes, _CALLS).get("gen_ai.completion", ())
        calls = [
            ToolRequest(identifier(fields[_NAME]), parsed(fields.get("function_call.arguments")), "")
            for fields in items
            if fields.get(_NAME)
        ]
        if not calls or any(type(part) is ToolRequest for part in all_parts(output)):
            return output
        *before, last = output or (Message("assistant", ()),)
        return (*before, last.with_parts(*last.parts, *calls))

    def _read_bodies(self) -> None:
        # The members of the request and response bodies: `llm.PROVIDER.MEMBER`.
        paths = ((key, key.split(".", 2)) for key in self.attributes if key.startswith("llm."))
        body = {path[2]: self.attributes[key] for key, path in paths if len(path) > 2}
        fill(self, body, _BODY_KEYS)
        if not _MADE.isdisjoint(body):
            self.output = messages_of({key: parsed(body[key]) for key in _MADE & body.keys()}, "assistant")
        self.usage = usage_in(parsed(first(body, _USAGE)), _SPENT, _MADE_TOKENS)


DIALECT = LiteLLM
