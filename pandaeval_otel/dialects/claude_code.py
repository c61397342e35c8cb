"""Reads Claude Code and the Claude Agent SDK: spans ``claude_code.*`` with bare attribute names.

Each user prompt is an ``interaction``. Its log records add model texts (``assistant_response``) and call arguments
(``tool_result``).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from pandaeval_otel.base import semconv
from pandaeval_otel.dialects._kit import (
    ByKind,
    Logs,
    Switch,
    as_dict,
    captured,
    count,
    error_of,
    first,
    hidden,
    identifier,
    keys,
    kinds,
    log_name,
    parsed,
    said_by_user,
    tool_arguments,
    tool_of_server,
    usage_in,
)
from pandaeval_otel.model import Captured, Kind, Message, Text, ToolRequest

_PREFIX = "claude_code."
_KINDS = kinds(agent="interaction", llm="llm_request", tool="tool")
_EXECUTION = "claude_code.tool.execution"
"""A span inside the tool's span, with the same call id and the tool's exception. It repeats the call."""
_TOOL, _TOOL_INPUT, _TOOL_CALL_ID = "tool_name", "tool_input", "tool_use_id"
_CALL_IDS = (semconv.TOOL_CALL_ID, _TOOL_CALL_ID)
_PROMPTS = ("claude_code.user_prompt", "user_prompt")
_PLACES = {"full_command": "command", "file_path": "file_path"}
"""Arguments of the commonest tools, for spans without the whole input."""


class ClaudeCode(ByKind):
    name = "claude_code"
    priority = 80
    scopes = ("com.anthropic.claude_code",)
    names = (_PREFIX,)
    content_switch = Switch(
        {
            "com.anthropic.claude_code": "set OTEL_LOG_USER_PROMPTS=1, OTEL_LOG_TOOL_DETAILS=1 and "
            "OTEL_LOG_TOOL_CONTENT=1"
        }
    )
    llm_keys = keys(request_model="model", input="new_context", output=("response.model_output", "model_response"))
    tool_keys = keys(arguments=_TOOL_INPUT)

    def kind_of(self) -> Kind | None:
        if not self.span.name.startswith(_PREFIX):
            return None
        if self.span.name == _EXECUTION and identifier(self.first(*_CALL_IDS)):
            return Kind.TOOL
        return _KINDS.get(self.span.name.removeprefix(_PREFIX), Kind.STEP)

    def read_any(self) -> None:
        if self.get("success") in (False, "false"):
            self.error = error_of(self.span) or str(self.get("error") or "error")

    def read_agent(self) -> None:
        prompts = [self.get("user_prompt")]
        prompts += [log.attributes.get("prompt") for log in self.logs if log_name(log) in _PROMPTS]
        self.input = said_by_user(next((prompt for prompt in prompts if not hidden(prompt)), None))
        self.output = tuple(_answers(self.logs)) or None

    def read_llm(self) -> None:
        usage = usage_in(self.attributes, "input_tokens", "output_tokens", "cache_read_tokens", "cache_creation_tokens")
        # The API counts without what came from or went into the cache.
        self.usage = usage and replace(usage, input=usage.input + usage.cache_read + usage.cache_write)

    def read_tool(self) -> None:
        self.tool_name = tool_of_server(identifier(self.first(semconv.TOOL_NAME, _TOOL)))
        self.tool_call_id = identifier(self.first(*_CALL_IDS))
        places = {name: self.attributes[key] for key, name in _PLACES.items() if not hidden(self.get(key))}
        if self.arguments is None and places:
            self.arguments = Captured(places)
        self.agent_name = identifier(self.get("subagent_type"))
        for event in self.span.events:
            if event.name == "tool.output":
                self.result = captured(first(event.attributes, ("output", "content", "diff", "result")))


DIALECT = ClaudeCode


def _answers(logs: Logs) -> Iterator[Message]:
    """Yield answers and tool calls in log records, without those of subagents."""
    for log in sorted(logs, key=lambda log: (count(log.attributes.get("event.sequence")) or 0, log.time_ns)):
        attributes = log.attributes
        if "agent" in str(attributes.get("query_source", "")):
            continue
        name, text = log_name(log).removeprefix(_PREFIX), attributes.get("response")
        if name == "assistant_response" and not hidden(text):
            yield Message("assistant", (Text(str(text)),))
        elif name == "tool_result":
            parameters = as_dict(parsed(attributes.get("tool_parameters")))
            tool = identifier(parameters.get("mcp_tool_name")) or identifier(attributes.get(_TOOL))
            arguments = tool_arguments(attributes.get(_TOOL_INPUT))
            call_id = identifier(attributes.get(_TOOL_CALL_ID))
            yield Message("assistant", (ToolRequest(tool, arguments and arguments.value, call_id),))
