"""Reads mcp-agent: spans of methods (``Agent.desk.call_tool``), with arguments and results flattened.

A tool call passes three methods. The outermost of them is the call.
"""

from __future__ import annotations

import re

from pandaeval_otel.base import semconv
from pandaeval_otel.dialects._kit import ByKind, give_outcome, keys, put_input, put_output, read_messages, tool_outcome
from pandaeval_otel.model import Kind

_PROVIDERS = ("OpenAI", "Anthropic", "Azure", "Bedrock", "Google")
_METHOD = re.compile(r"(?:\w+AugmentedLLM|Agent)\.(?P<agent>.+)\.(?P<method>\w+)")
_ANSWER = re.compile(r"response\.(\d+)\.content")
_RESULT = re.compile(r"result\.content\.(\d+)\.text")


class MCPAgent(ByKind):
    name = "mcp_agent"
    priority = 65
    names = ("Agent.", *(f"{name}AugmentedLLM." for name in _PROVIDERS))
    tool_keys = keys(tool_name=semconv.TOOL_NAME, tool_call_id=semconv.TOOL_CALL_ID, arguments="tool_args")

    def kind_of(self) -> Kind | None:
        named = _METHOD.fullmatch(self.span.name)
        if named is None:
            return None
        kinds = {"execute_tool_call": Kind.TOOL, "generate": Kind.AGENT}
        return kinds.get(named["method"], Kind.STEP)

    def read_agent(self) -> None:
        self.agent_name = self.span.name.split(".")[1]
        put_input(self, read_messages(self.get("message.content"), "user"))
        put_output(self, read_messages(self._last(_ANSWER), "assistant"))

    def read_tool(self) -> None:
        text = self._last(_RESULT)
        if text is not None:
            give_outcome(self, tool_outcome({"content": text, "isError": self.get("result.isError") is True}))

    def _last(self, pattern: re.Pattern[str]) -> object:
        found = {int(match[1]): value for key, value in self.attributes.items() if (match := pattern.fullmatch(key))}
        return found[max(found)] if found else None


DIALECT = MCPAgent
