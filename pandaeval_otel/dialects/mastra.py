"""Reads Mastra: ``mastra.span.type`` on every span, and the bare names beside it.

A ``model_generation`` contains a ``model_step`` per model call. The loop has tokens and answer, in newer releases the
calls below.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from pandaeval_otel.base import semconv
from pandaeval_otel.dialects._kit import (
    ByKind,
    Messages,
    answered,
    as_dict,
    as_list,
    asked,
    captured,
    dicts_in,
    give_error,
    hidden,
    identifier,
    keys,
    kinds,
    model_input,
    model_output,
    one_message,
    one_session,
    parsed,
    read_metadata,
    request_of,
    text_part,
    tool_arguments,
    tool_definitions,
)
from pandaeval_otel.model import NOT_CAPTURED, Kind, Message, Part, Reasoning, Text
from pandaeval_otel.model.raw import STATUS_ERROR

_TYPE = "mastra.span.type"
_KINDS = kinds(
    agent="agent_run",
    workflow="workflow_run",
    llm=("model_generation", "llm_generation", "model_step", "model_inference"),
    tool=("tool_call", "mcp_tool_call", "provider_tool_call", "client_tool_call"),
    embedding="rag_embedding",
    evaluation=("scorer_run", "scorer_step", "classifier_evaluation"),
)
_STEP = "model_step"
_AGENT_STEP = "agent_step"
"""Operation of a step in newer releases."""
_METADATA = "mastra.metadata."
_BODY = "mastra.metadata.body"
"""Key of a provider's whole answer, the only place of a step's thoughts."""
_FAILED = "error"
_CALLED = re.compile(r"(?:\[tool: [^\]]*+(?:\]|\Z))++\n?")
_RETURNED = re.compile(r"(?:\[tool-result: [^\]]*\])+")
"""Marks of calls and results in a step's history. They are not text, and the tools have spans."""


class Mastra(ByKind):
    name = "mastra"
    priority = 75
    roots = frozenset({"mastra"})
    agent_keys = keys(agent_name=(semconv.AGENT_NAME, "gen_ai.agent.id", "agent.id"), tools="agent.available_tools")
    tool_keys = keys(tool_name=semconv.TOOL_NAME, tool_call_id=semconv.TOOL_CALL_ID)

    def kind_of(self) -> Kind | None:
        word, operation = self.get(_TYPE), self.get(semconv.OPERATION)
        if type(word) is not str:
            return None
        is_step = operation == "model_generation" or (word.lower() == _STEP and operation != _AGENT_STEP)
        if is_step:
            return Kind.STEP
        return _KINDS.get(word.lower(), Kind.STEP)

    def read_any(self) -> None:
        read_metadata(self, self.attributes, _METADATA)
        self.session_ids = self.session_ids or one_session(self.get("threadId"))
        self.user_id = self.user_id or identifier(self.first("mastra.metadata.resourceId", "resourceId"))

    def read_agent(self) -> None:
        self.input = asked(self._side("input"))[0]
        # Later releases join the texts of all steps here; only the model's spans tell the last of them.
        made = self.parsed("output")
        text = made.get("text") if type(made) is dict else made
        if type(text) is str and not hidden(text) and (text or self.span.status_code != STATUS_ERROR):
            self.output = one_message("assistant", text_part(text))

    def read_workflow(self) -> None:
        self.input = asked(self._side("input"))[0]
        self.output = answered(self._side("output"))[0]

    def read_tool(self) -> None:
        made = self._side("output")
        if semconv.TOOL_ARGUMENTS not in self.attributes:
            self.arguments = tool_arguments(self._side("input"))
        if semconv.TOOL_RESULT not in self.attributes:
            self.result = captured(made)
        if self.get("gen_ai.tool.success") is False:
            give_error(self, made)

    def read_llm(self) -> None:
        if self.attributes[_TYPE].lower() == "model_inference":
            return
        if semconv.INPUT_MESSAGES not in self.attributes:
            given = model_input(self._side("input"))[0]
            self.input = given and tuple(_without_marks(given))
        if semconv.OUTPUT_MESSAGES not in self.attributes:
            self.output = _output(parsed(self._side("output")), self.get(_BODY))
        failed = _FAILED in str(self.get("gen_ai.response.finish_reasons"))
        if failed and not any(message.text for message in self.output or ()):
            self.output, self.error = one_message("assistant", NOT_CAPTURED), _FAILED

    def read_step(self) -> None:
        if self.attributes[_TYPE].lower() == _STEP:
            request = as_dict(parsed(self._side("input")))  # of the provider: {"body": …}
            self.tools = tool_definitions(as_dict(parsed(request.get("body"))).get("tools"))

    def _side(self, side: str) -> Any:
        return self.first(f"mastra.{self.attributes[_TYPE].lower()}.{side}", side)


DIALECT = Mastra


def _without_marks(messages: Messages) -> Iterator[Message]:
    for message in messages:
        if message.role == "tool" and all(_RETURNED.fullmatch(str(part.result)) for part in message.tool_responses):
            continue
        text = message.text if message.role == "assistant" else ""
        marks = list(_CALLED.finditer(text)) if text.endswith(("]", "]\n")) else []
        if not marks or marks[-1].end() < len(text):
            yield message
        elif start := marks[-1].start():
            yield Message("assistant", (Text(text[:start]),), message.finish_reason)


def _output(made: Any, body: Any) -> Messages | None:
    if type(made) is not dict:
        return model_output(made)[0]
    stated = made.get("reasoning")
    thoughts = _thoughts_in(body) if stated is None else _joined(as_list(stated))
    parts: list[Part] = [Reasoning(thought) for thought in thoughts if thought]
    text, structured = made.get("text"), made.get("object")
    if structured is not None and hidden(text):
        text = structured
    calls = [request_of(call) for call in dicts_in(made.get("toolCalls"))]
    if text or not (calls or text is None):
        parts.append(text_part(text))
    return one_message("assistant", *parts, *calls)


def _joined(thoughts: list[Any]) -> Iterable[str]:
    texts: dict[Any, str] = {}
    for index, thought in enumerate(thoughts):
        inner = thought.get("payload", thought) if type(thought) is dict else thought
        piece = inner if type(inner) is dict else {"text": inner}
        text, key = piece.get("text"), piece.get("id")
        if type(text) is str:
            key = key if type(key) is str else index
            texts[key] = texts.get(key, "") + text
    return texts.values()


def _thoughts_in(body: Any) -> list[str]:
    answer = None if body is None else model_output(body)[0]
    return [part.text for message in answer or () for part in message.parts if isinstance(part, Reasoning)]
