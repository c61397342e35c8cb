"""Reads ``crewai.*`` on spans of CrewAI's own scope ``crewai``.

Other emitters of ``crewai.*`` have their own dialects.
"""

from __future__ import annotations

import re
from typing import Any

from pandaeval_otel.base import semconv
from pandaeval_otel.dialects._kit import (
    CUT,
    ByKind,
    as_list,
    asked,
    captured,
    error_of,
    hidden,
    keys,
    kinds,
    messages_of,
    one_message,
    parsed,
    said_by_user,
    usage_in,
)
from pandaeval_otel.model import NOT_CAPTURED, Kind, Message, Part, Reasoning, Text, ToolRequest, ToolResponse

_SCOPE = "crewai"
_TOKENS = ("prompt_tokens", "completion_tokens", "cached_prompt_tokens", "cache_creation_tokens", "reasoning_tokens")
_FAILURE = "crewai.tool.failure.message"
_FROM_MCP, _TO_MCP = "crewai.mcp.tool_result", "crewai.mcp.tool_args"
_QUERIES = ("crewai.memory.query", "crewai.knowledge.query", "crewai.knowledge.task_prompt")
_FOUND = ("crewai.memory.results", "crewai.memory.content", "crewai.knowledge.retrieved_knowledge")
_TASK, _RULES = "Current Task:", "This is the expected criteria for your final answer"
"""Texts before and behind a task's description in prompts."""
_ESCAPE, _ESCAPES = re.compile(r"\\(.)", re.DOTALL), {"n": "\n", "t": "\t", "r": "\r"}

_KINDS = kinds(
    workflow=("execute crew", "execute flow"),
    agent=("execute agent", "execute lite agent"),
    llm="call llm",
    tool=("call tool", "execute mcp tool"),
    guardrail="evaluate guardrail",
    retrieval=("query memory", "retrieve memory", "query knowledge", "search knowledge"),
)


class CrewAI(ByKind):
    name = "crewai"
    priority = 75
    scopes = (_SCOPE,)
    any_keys = keys(agent_name="crewai.agent.role")
    retrieval_keys = keys(question=_QUERIES)

    def kind_of(self) -> Kind | None:
        if self.span.scope.name != _SCOPE and not self.span.scope.name.startswith(f"{_SCOPE}."):
            return None
        return _KINDS.get(self.span.name, Kind.STEP)

    def read_any(self) -> None:
        self.agent_name = self.agent_name.strip()
        if any(key.endswith(".truncated") and key.startswith("gen_ai.") for key in self.attributes):
            self.notes = CUT

    def read_agent(self) -> None:
        value = self.get(semconv.INPUT_MESSAGES)
        if type(value) is str and (_RULES in value or '"name": "\'' in value):
            self.input = tuple(map(_mended, messages_of(value, "user") or ())) or None

    read_llm = read_agent

    def read_step(self) -> None:
        plan = self.get("crewai.reasoning.plan")
        if not hidden(plan):
            self.output = one_message("assistant", Reasoning(str(plan)))

    read_guardrail = read_step

    def read_workflow(self) -> None:
        inputs = self.first("crewai.crew.inputs", "crewai.flow.inputs")
        if parsed(inputs) in (None, "", "null", {}, []):
            # Without inputs the tasks are the question; the messages of the crew's span say "null".
            self.input = one_message("user", NOT_CAPTURED)
        else:
            self.input = asked(inputs)[0] or said_by_user(str(inputs))
        result = self.first("crewai.crew.output", "crewai.flow.result")
        if not hidden(result):
            self.output = one_message("assistant", Text(str(result)))
        metrics = parsed(self.first("crewai.crew.usage_metrics", "crewai.flow.aggregated_crew_usage_metrics"))
        self.usage = usage_in(metrics, *_TOKENS)

    def read_tool(self) -> None:
        if semconv.TOOL_ARGUMENTS not in self.attributes:
            self.arguments = captured(self.get(_TO_MCP))
        if semconv.TOOL_RESULT not in self.attributes:
            self.result = captured(self.get(_FROM_MCP))
        if _FAILURE in self.attributes:
            self.error = error_of(self.span) or str(self.attributes[_FAILURE])

    def read_retrieval(self) -> None:
        documents = self.first(*_FOUND)
        self.documents = () if hidden(documents) else tuple(as_list(documents))


DIALECT = CrewAI


def _mended(message: Message) -> Message:
    if message.role == "user" and _RULES in message.text:
        task = message.text.partition(_RULES)[0].strip().removeprefix(_TASK).strip()
        return Message("user", (Text(task),))
    parts: list[Part] = []
    for part in message.parts:
        if type(part) is ToolRequest:
            part = ToolRequest(_unquoted(part.name), parsed(_unquoted(part.arguments)), _unquoted(part.id))
        elif type(part) is Text and message.role == "tool":
            part = ToolResponse(parsed(_unquoted(part.text)))
        parts.append(part)
    return Message(message.role, tuple(parts), message.finish_reason)


def _unquoted(value: Any) -> Any:
    if type(value) is not str or len(value) < 2 or value[0] != "'" or value[-1] != "'":
        return value
    return _ESCAPE.sub(lambda match: _ESCAPES.get(match[1], match[1]), value[1:-1])
