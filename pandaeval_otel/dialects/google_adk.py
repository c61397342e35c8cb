"""Reads Google ADK: ``gcp.vertex.agent.*`` of schema 1, and thoughts that schema 2 does not mark.

With content capture off every content attribute is ``{}``; on a tool span the model call's attribute always is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pandaeval_otel.base import semconv
from pandaeval_otel.dialects._common import CUT, one_session, tool_definitions, usage_in
from pandaeval_otel.dialects._messages import Messages, messages_of, read_messages, system_text
from pandaeval_otel.dialects._parts import result_value
from pandaeval_otel.dialects._by_kind import ByKind
from pandaeval_otel.dialects._reading import Attributes, Reading
from pandaeval_otel.dialects._values import count, hidden, identifier, parsed, salvage
from pandaeval_otel.model import Captured, Kind, Message, Reasoning, Text
from pandaeval_otel.model.raw import RawSpan

_SCOPE = "gcp.vertex.agent"
_REQUEST = "gcp.vertex.agent.llm_request"
_OPENINFERENCE, _INPUT, _OUTPUT = "openinference.span.kind", "input.value", "output.value"
"""OpenInference writes each model call onto the agent's span, the next over the last one: lists that are spread over
keys are a mixture afterwards, only these two values are of one call."""
_EMPTY = "{}"
_GUESSED = ("thoughts were told from the answer by their place",)

# Kinds by the first word of a span's name; releases before 1.15 put the agent's or tool's name in brackets.
_KINDS = {
    "invocation": Kind.WORKFLOW,
    "agent_run": Kind.AGENT,
    "call_llm": Kind.LLM,
    **dict.fromkeys(("execute_tool", "tool_call"), Kind.TOOL),
}


class GoogleADK(ByKind):
    """Reads ``gcp.vertex.agent.*``."""

    name = "google_adk"
    priority = 80
    roots = frozenset({"gcp"})
    scopes = (_SCOPE,)
    content_switch: Mapping[str, str] = {
        _SCOPE: "set OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=SPAN_ONLY (with "
        "ADK_TELEMETRY_SCHEMA_VERSION_OPT_IN=1, and in older releases: ADK_CAPTURE_MESSAGE_CONTENT_IN_SPANS=true)"
    }

    def kind_of(self, span: RawSpan, attributes: Attributes) -> Kind | None:
        if span.name == "execute_tool (merged)":
            return Kind.STEP
        if not span.scope.name.startswith(_SCOPE):
            return Kind.LLM if attributes.get(_REQUEST, _EMPTY) != _EMPTY else None
        if semconv.OPERATION in attributes:
            return None
        return _KINDS.get(span.name.partition(" ")[0], Kind.STEP)

    reads_any_kind = True

    def read_any(self, reading: Reading, span: RawSpan, attributes: Attributes) -> None:
        reading.session_ids = one_session(attributes.get("gcp.vertex.agent.session_id"))

    def read_unstated(self, reading: Reading, span: RawSpan, attributes: Attributes) -> None:
        operation = attributes.get(semconv.OPERATION)
        if operation == "execute_tool":
            self.read_tool(reading, span, attributes)
        elif operation == "generate_content":
            self.read_llm(reading, span, attributes)

    def read_agent(self, reading: Reading, span: RawSpan, attributes: Attributes) -> None:
        reading.agent_name = _in_brackets(span.name)

    def read_tool(self, reading: Reading, span: RawSpan, attributes: Attributes) -> None:
        if semconv.TOOL_NAME not in attributes:
            reading.tool_name = _in_brackets(span.name) or identifier(span.name.partition(" ")[2])
        arguments = attributes.get("gcp.vertex.agent.tool_call_args")
        result = attributes.get("gcp.vertex.agent.tool_response")
        off = arguments == _EMPTY and result in (None, _EMPTY)
        if not off and not hidden(arguments) and arguments != "N/A":
            reading.arguments = Captured(parsed(arguments))
        if hidden(result) or off:
            result = attributes.get(semconv.TOOL_RESULT)
        if not hidden(result):
            made = result_value(result)
            # ADK puts a value into a map if it is none.
            alone = type(made) is dict and made.keys() == {"result"}
            reading.result = Captured(parsed(made["result"]) if alone else made)

    def read_llm(self, reading: Reading, span: RawSpan, attributes: Attributes) -> None:
        request, response = attributes.get(_REQUEST), attributes.get("gcp.vertex.agent.llm_response")
        if _OPENINFERENCE in attributes:
            request, response = request or attributes.get(_INPUT), response or attributes.get(_OUTPUT)
        if request is not None and request != _EMPTY:
            _read_request(reading, request)
        if response is not None and response != _EMPTY:
            _read_response(reading, response)
        elif count(attributes.get("gen_ai.usage.reasoning.output_tokens")) and semconv.OUTPUT_MESSAGES in attributes:
            reading.output = _with_thought(messages_of(attributes[semconv.OUTPUT_MESSAGES], "assistant"))
            reading.notes = _GUESSED if reading.output else ()


DIALECT = GoogleADK()


def _in_brackets(name: str) -> str:
    return identifier(name.partition("[")[2].rpartition("]")[0])


def _read_request(reading: Reading, value: Any) -> None:
    request = parsed(value)
    if type(request) is str:
        reading.notes = CUT
        reading.input = read_messages(request, "user")[0]
        request = salvage(request)
    if type(request) is not dict:
        return
    if not reading.notes:
        reading.input = messages_of(request.get("contents"), "user")
    reading.request_model = identifier(request.get("model"))
    config = request.get("config")
    if type(config) is dict:
        reading.system = system_text(config.get("system_instruction"))
        reading.tools = tool_definitions(config.get("tools"))


def _read_response(reading: Reading, value: Any) -> None:
    response = parsed(value)
    if type(response) is str:
        reading.notes = CUT
        reading.output = read_messages(response, "assistant")[0]
        return
    if type(response) is not dict:
        return
    if response.get("content") is not None:
        reading.output = messages_of(response, "assistant")
    reading.response_model = identifier(response.get("model_version"))
    usage = usage_in(
        response.get("usage_metadata"),
        "prompt_token_count",
        "candidates_token_count",
        "cached_content_token_count",
        thought="thoughts_token_count",
    )
    reading.usage = usage and replace(usage, output=usage.output + usage.reasoning)
    if response.get("error_code") is not None and not reading.output:
        reading.error = str(response.get("error_message") or response["error_code"])


def _with_thought(output: Messages | None) -> Messages | None:
    """Returns ``output`` with its first text as the model's thought, if a second text follows right behind: schema 2
    turns thoughts into plain text, and a model that did think writes its answer in one text. ``None`` without such a
    pair."""
    if not output or len(output) != 1 or len(output[0].parts) < 2:
        return None
    message = output[0]
    thought, answer, *rest = message.parts
    if not (isinstance(thought, Text) and isinstance(answer, Text)):
        return None
    return (Message(message.role, (Reasoning(thought.text), answer, *rest), message.finish_reason),)
