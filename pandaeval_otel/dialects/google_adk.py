"""Reads Google ADK: ``gcp.vertex.agent.*`` of schema 1, and unmarked thoughts of schema 2.

Without content capture, content attributes are ``{}``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pandaeval_otel.base import semconv
from pandaeval_otel.dialects._kit import (
    CUT,
    ByKind,
    Messages,
    Switch,
    as_dict,
    count,
    fill,
    hidden,
    identifier,
    keys,
    kinds,
    messages_of,
    one_message,
    parsed,
    read_messages,
    result_value,
    salvage,
    usage_in,
)
from pandaeval_otel.model import Captured, Kind, Reasoning, Text

_SCOPE = "gcp.vertex.agent"
_REQUEST = "gcp.vertex.agent.llm_request"
_OPENINFERENCE, _INPUT, _OUTPUT = "openinference.span.kind", "input.value", "output.value"
"""OpenInference writes each model call onto the agent's span, over the previous call. Flattened lists become a
mixture; only these two values belong to a single call.
"""
_EMPTY = "{}"
_CALL_OF_JAVA = "call_llm"
"""The operation of model calls in ADK for Java, which the conventions lack."""
_GUESSED = ("the first text part was read as thoughts, because the span counts reasoning tokens",)
_TOKENS = ("prompt_token_count", "candidates_token_count", "cached_content_token_count", (), "thoughts_token_count")
_REQUEST_KEYS = keys(request_model="model")
_CONFIG_KEYS = keys(system="system_instruction", tools="tools")
_RESPONSE_KEYS = keys(response_model="model_version")

# Kinds by the first word of a span's name; releases before 1.15 put the agent's or tool's name in brackets.
_KINDS = kinds(workflow="invocation", agent="agent_run", llm="call_llm", tool=("execute_tool", "tool_call"))


class GoogleADK(ByKind):
    name = "google_adk"
    priority = 80
    roots = frozenset({"gcp"})
    scopes = (_SCOPE,)
    reads_any_kind = True
    any_keys = keys(session_ids="gcp.vertex.agent.session_id")
    content_switch = Switch(
        {
            _SCOPE: "set OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=SPAN_ONLY (with "
            "ADK_TELEMETRY_SCHEMA_VERSION_OPT_IN=1, and in older releases: ADK_CAPTURE_MESSAGE_CONTENT_IN_SPANS=true)"
        }
    )

    def kind_of(self) -> Kind | None:
        if self.span.name == "execute_tool (merged)":
            return Kind.STEP
        if not self.span.scope.name.startswith(_SCOPE):
            if self.get(_REQUEST, _EMPTY) != _EMPTY:
                return Kind.LLM
            return None
        if semconv.OPERATION in self.attributes and self.get(semconv.OPERATION) != _CALL_OF_JAVA:
            return None
        return _KINDS.get(self.span.name.partition(" ")[0], Kind.STEP)

    def read_unstated(self) -> None:
        operation = self.get(semconv.OPERATION)
        if operation == "execute_tool":
            self.read_tool()
        elif operation == "generate_content":
            self.read_llm()

    def read_agent(self) -> None:
        self.agent_name = _in_brackets(self.span.name)

    def read_tool(self) -> None:
        if semconv.TOOL_NAME not in self.attributes:
            self.tool_name = _in_brackets(self.span.name) or identifier(self.span.name.partition(" ")[2])
        arguments = self.get("gcp.vertex.agent.tool_call_args")
        result = self.get("gcp.vertex.agent.tool_response")
        off = arguments == _EMPTY and result in (None, _EMPTY)
        if not off and not hidden(arguments) and arguments != "N/A":
            self.arguments = Captured(parsed(arguments))
        if hidden(result) or off:
            result = self.get(semconv.TOOL_RESULT)
        if not hidden(result):
            made = result_value(result)
            # ADK puts a value into a map if it is none.
            alone = type(made) is dict and made.keys() == {"result"}
            self.result = Captured(parsed(made["result"]) if alone else made)

    def read_llm(self) -> None:
        request, response = self.get(_REQUEST), self.get("gcp.vertex.agent.llm_response")
        if _OPENINFERENCE in self.attributes:
            request, response = request or self.get(_INPUT), response or self.get(_OUTPUT)
        if request is not None and request != _EMPTY:
            self._read_request(request)
        if response is not None and response != _EMPTY:
            self._read_response(response)
        elif count(self.get("gen_ai.usage.reasoning.output_tokens")) and semconv.OUTPUT_MESSAGES in self.attributes:
            self.output = _with_thought(messages_of(self.attributes[semconv.OUTPUT_MESSAGES], "assistant"))
            self.notes = _GUESSED if self.output else ()

    def _read_request(self, value: Any) -> None:
        request = parsed(value)
        if type(request) is str:
            self.notes = CUT
            self.input = read_messages(request, "user")[0]
            request = salvage(request)
        if type(request) is not dict:
            return
        if not self.notes:
            self.input = messages_of(request.get("contents"), "user")
        fill(self, request, _REQUEST_KEYS)
        fill(self, as_dict(request.get("config")), _CONFIG_KEYS)

    def _read_response(self, value: Any) -> None:
        response = parsed(value)
        if type(response) is str:
            self.notes = CUT
            self.output = read_messages(response, "assistant")[0]
            return
        if type(response) is not dict:
            return
        if response.get("content") is not None:
            self.output = messages_of(response, "assistant")
        fill(self, response, _RESPONSE_KEYS)
        usage = usage_in(response.get("usage_metadata"), *_TOKENS)
        self.usage = usage and replace(usage, output=usage.output + usage.reasoning)
        if response.get("error_code") is not None and not self.output:
            self.error = str(response.get("error_message") or response["error_code"])


DIALECT = GoogleADK


def _in_brackets(name: str) -> str:
    return identifier(name.partition("[")[2].rpartition("]")[0])


def _with_thought(output: Messages | None) -> Messages | None:
    if not output or len(output) != 1:
        return None
    message = output[0]
    match message.parts:
        case (Text(thought), Text() as answer, *rest):
            return one_message(message.role, Reasoning(thought), answer, *rest, reason=message.finish_reason)
    return None
