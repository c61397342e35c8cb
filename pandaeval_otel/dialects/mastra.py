"""Reads Mastra: ``mastra.span.type`` on every span; its first exporters wrote all else in bare names, the later ones
half in the conventions' words.

A run's loop is one ``model_generation``, below it a ``model_step`` for each model call and the tools that it asked for.
Tokens stand on the loop, and the answer; in newer releases on the calls, which are spans of their own below the steps.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from pandaeval_otel.base import semconv
from pandaeval_otel.dialects._common import captured, one_session, prefixed_sessions, prefixed_user, tool_definitions
from pandaeval_otel.dialects._messages import Messages
from pandaeval_otel.dialects._parts import request_of, text_part
from pandaeval_otel.dialects._by_kind import ByKind
from pandaeval_otel.dialects._reading import Attributes, Reading
from pandaeval_otel.dialects._runs import answered, asked, model_input, model_output
from pandaeval_otel.dialects._tool_values import tool_arguments
from pandaeval_otel.dialects._values import as_list, first, hidden, identifier, parsed
from pandaeval_otel.model import NOT_CAPTURED, Kind, Message, Part, Reasoning, Text
from pandaeval_otel.model.raw import STATUS_ERROR, RawSpan

_TYPE = "mastra.span.type"
_KINDS = {
    "agent_run": Kind.AGENT,
    "workflow_run": Kind.WORKFLOW,
    **dict.fromkeys(("model_generation", "llm_generation", "model_step", "model_inference"), Kind.LLM),
    **dict.fromkeys(("tool_call", "mcp_tool_call", "provider_tool_call", "client_tool_call"), Kind.TOOL),
    "rag_embedding": Kind.EMBEDDING,
    **dict.fromkeys(("scorer_run", "scorer_step", "classifier_evaluation"), Kind.EVALUATION),
}
_STEP = "model_step"
_AGENT_STEP = "agent_step"
"""Operation of a step in newer releases."""
_METADATA = "mastra.metadata."
_BODY = "mastra.metadata.body"
"""Key of a provider's whole answer, the only place of a step's thoughts."""
_FAILED = "error"
_CALLED = re.compile(r"(?:\[tool: [^\]]*+(?:\]|\Z))++\n?")
_RETURNED = re.compile(r"(?:\[tool-result: [^\]]*\])+")
"""Marks for calls and results in the history of a step: they are no text, and the tools have spans."""


class Mastra(ByKind):
    """Reads ``mastra.*`` and the bare names beside it."""

    name = "mastra"
    priority = 75
    roots = frozenset({"mastra"})

    def kind_of(self, span: RawSpan, attributes: Attributes) -> Kind | None:
        word, operation = attributes.get(_TYPE), attributes.get(semconv.OPERATION)
        if type(word) is not str:
            return None
        is_step = operation == "model_generation" or (word.lower() == _STEP and operation != _AGENT_STEP)
        return Kind.STEP if is_step else _KINDS.get(word.lower(), Kind.STEP)

    def read_any(self, reading: Reading, span: RawSpan, attributes: Attributes) -> None:
        reading.session_ids = prefixed_sessions(attributes, _METADATA) or one_session(attributes.get("threadId"))
        user = first(attributes, ("mastra.metadata.resourceId", "resourceId"))
        reading.user_id = prefixed_user(attributes, _METADATA) or identifier(user)

    def read_agent(self, reading: Reading, span: RawSpan, attributes: Attributes) -> None:
        reading.agent_name = identifier(first(attributes, (semconv.AGENT_NAME, "gen_ai.agent.id", "agent.id")))
        reading.input = asked(_side(attributes, "input"))[0]
        # Later releases join the texts of all steps here; only the model's spans tell the last of them.
        made = parsed(attributes.get("output"))
        text = made.get("text") if type(made) is dict else made
        if type(text) is str and not hidden(text) and (text or span.status_code != STATUS_ERROR):
            reading.output = (Message("assistant", (text_part(text),)),)
        reading.tools = tool_definitions(attributes.get("agent.available_tools"))

    def read_workflow(self, reading: Reading, span: RawSpan, attributes: Attributes) -> None:
        reading.input, reading.output = asked(_side(attributes, "input"))[0], answered(_side(attributes, "output"))[0]

    def read_tool(self, reading: Reading, span: RawSpan, attributes: Attributes) -> None:
        reading.tool_name = identifier(attributes.get(semconv.TOOL_NAME))
        reading.tool_call_id = identifier(attributes.get(semconv.TOOL_CALL_ID))
        made = _side(attributes, "output")
        if semconv.TOOL_ARGUMENTS not in attributes:
            reading.arguments = tool_arguments(_side(attributes, "input"))
        if semconv.TOOL_RESULT not in attributes:
            reading.result = captured(made)
        if attributes.get("gen_ai.tool.success") is False:
            reading.error = str(made or "tool error")

    def read_llm(self, reading: Reading, span: RawSpan, attributes: Attributes) -> None:
        if attributes[_TYPE].lower() == "model_inference":
            return
        if semconv.INPUT_MESSAGES not in attributes:
            given = model_input(_side(attributes, "input"))[0]
            reading.input = given and tuple(_without_marks(given))
        if semconv.OUTPUT_MESSAGES not in attributes:
            reading.output = _output(parsed(_side(attributes, "output")), attributes.get(_BODY))
        failed = _FAILED in str(attributes.get("gen_ai.response.finish_reasons"))
        if failed and not any(message.text for message in reading.output or ()):
            reading.output, reading.error = (Message("assistant", (NOT_CAPTURED,)),), _FAILED

    def read_step(self, reading: Reading, span: RawSpan, attributes: Attributes) -> None:
        if attributes[_TYPE].lower() == _STEP:
            request = parsed(_side(attributes, "input"))  # of the provider: {"body": …}
            body = parsed(request.get("body")) if type(request) is dict else None
            reading.tools = tool_definitions(body.get("tools")) if type(body) is dict else None


DIALECT = Mastra()


def _side(attributes: Attributes, side: str) -> Any:
    return first(attributes, (f"mastra.{attributes[_TYPE].lower()}.{side}", side))


def _without_marks(messages: Messages) -> Iterator[Message]:
    for message in messages:
        if message.role == "tool":
            if not all(_RETURNED.fullmatch(str(part.result)) for part in message.tool_responses):
                yield message
            continue
        text = message.text if message.role == "assistant" else ""
        marks = list(_CALLED.finditer(text)) if text.endswith(("]", "]\n")) else []
        if not marks or marks[-1].end() < len(text):
            yield message
        elif marks[-1].start():
            yield Message("assistant", (Text(text[: marks[-1].start()]),), message.finish_reason)


def _output(made: Any, body: Any) -> Messages | None:
    """Reads ``{"text": …, "toolCalls": […], "reasoning": […]}``."""
    if type(made) is not dict:
        return model_output(made)[0]
    parts: list[Part] = [Reasoning(thought) for thought in _thoughts(made.get("reasoning"), body)]
    text, structured = made.get("text"), made.get("object")
    if structured is not None and hidden(text):
        text = structured
    calls = [request_of(call) for call in as_list(made.get("toolCalls")) if type(call) is dict]
    if text or not (calls or text is None):
        parts.append(text_part(text))
    parts += calls
    return (Message("assistant", tuple(parts)),) if parts else None


def _thoughts(told: Any, body: Any) -> Iterable[str]:
    if told is not None:
        # Joins the pieces of streamed thoughts, which carry the thought's id.
        found: dict[Any, str] = {}
        for index, thought in enumerate(as_list(told)):
            inner = thought.get("payload", thought) if type(thought) is dict else thought
            text, key = (inner.get("text"), inner.get("id")) if type(inner) is dict else (inner, None)
            if type(text) is str:
                key = key if type(key) is str else index
                found[key] = found.get(key, "") + text
        return [text for text in found.values() if text]
    answer = model_output(body)[0] if body is not None else None
    return [part.text for message in answer or () for part in message.parts if isinstance(part, Reasoning)]
