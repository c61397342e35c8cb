"""Reads LiveKit Agents: ``lk.*``, in newer releases also ``lk.pii.*``. Each ``agent_turn`` is a run."""

from __future__ import annotations

from typing import Any

from pandaeval_otel.base import semconv
from pandaeval_otel.dialects._kit import (
    ByKind,
    Messages,
    Reading,
    as_dict,
    as_list,
    captured,
    give_error,
    hidden,
    keys,
    kinds,
    messages_of,
    one_message,
    one_session,
    parsed,
    request_of,
    said_by_user,
    text_part,
    tool_arguments,
)
from pandaeval_otel.model import Kind, Part

_KINDS = kinds(
    step="agent_session", agent="agent_turn", llm="llm_node", tool="function_tool", evaluation="judge_evaluation"
)
_AGENT_NAMES = ("lk.agent_name", "lk.agent_label")


class LiveKit(ByKind):
    name = "livekit"
    priority = 70
    roots = frozenset({"lk"})
    scopes = ("livekit-agents",)
    llm_keys = keys(tools="lk.function_tools")
    tool_keys = keys(tool_name="lk.function_tool.name", tool_call_id="lk.function_tool.id")

    def read_span(self) -> Reading:
        kind = _KINDS.get(self.span.name)
        if kind is None and semconv.OPERATION not in self.attributes:
            kind = Kind.STEP
        return self.read_as(kind)

    def read_any(self) -> None:
        self.session_ids = one_session(self._private("room_name"))

    def read_agent(self) -> None:
        self.agent_name = next((name for key in _AGENT_NAMES if (name := self.name_in(key))), "")
        self.input = said_by_user(self._private("user_input") or None)
        self.output = self._answer()

    def read_llm(self) -> None:
        history = as_dict(parsed(self._private("chat_ctx")))
        self.input = messages_of(history.get("items"), "user")  # messages, function calls and their outputs
        self.output = self._answer()

    def read_tool(self) -> None:
        arguments = self.get("lk.function_tool.args")
        if arguments is None:
            arguments = self._private("function_tool.arguments")
        self.arguments = tool_arguments(arguments)
        result = self._private("function_tool.output")
        self.result = captured(result)
        if self.get("lk.function_tool.is_error") is True:
            give_error(self, None if hidden(result) else result)

    def _private(self, name: str) -> Any:
        key = f"lk.pii.{name}"
        if key in self.attributes:
            return self.attributes[key]
        return self.get(f"lk.{name}")

    def _answer(self) -> Messages | None:
        text = self._private("response.text")
        calls = [parsed(call) for call in as_list(self._private("response.function_calls"))]
        parts: list[Part] = [request_of(call) for call in calls if type(call) is dict]
        if type(text) is str and not hidden(text) and (text or not parts):
            parts.insert(0, text_part(text))
        return one_message("assistant", *parts)


DIALECT = LiveKit
