"""Reads LiveKit Agents: ``lk.*``, and in newer releases ``lk.pii.*`` for everything that a person said.

A call is one long ``agent_session``; each ``agent_turn`` in it is a run. Newer releases write the conventions besides.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pandaeval_otel.base import semconv
from pandaeval_otel.dialects._common import captured, one_session, said_by_user, tool_definitions
from pandaeval_otel.dialects._messages import Messages, messages_of
from pandaeval_otel.dialects._parts import request_of, text_part
from pandaeval_otel.dialects._reading import Attributes, ByKind, Reading
from pandaeval_otel.dialects._tool_values import tool_arguments
from pandaeval_otel.dialects._values import as_list, hidden, identifier, parsed
from pandaeval_otel.model import Kind, Message, Part
from pandaeval_otel.model.raw import RawLog, RawSpan

_KINDS = {
    "agent_session": Kind.STEP,
    "agent_turn": Kind.AGENT,
    "llm_node": Kind.LLM,
    "function_tool": Kind.TOOL,
    "judge_evaluation": Kind.EVALUATION,
}
_AGENT_NAMES = ("lk.agent_name", "lk.agent_label")


class LiveKit(ByKind):
    """Reads ``lk.*``."""

    name = "livekit"
    priority = 70
    roots = frozenset({"lk"})
    scopes = ("livekit-agents",)

    def read(self, span: RawSpan, logs: Sequence[RawLog]) -> Reading | None:
        kind = _KINDS.get(span.name) or (None if semconv.OPERATION in span.attributes else Kind.STEP)
        return self.read_as(kind, span)

    def read_any(self, reading: Reading, span: RawSpan, attributes: Attributes) -> None:
        reading.session_ids = one_session(_private(attributes, "room_name"))

    def read_agent(self, reading: Reading, span: RawSpan, attributes: Attributes) -> None:
        reading.agent_name = next((name for key in _AGENT_NAMES if (name := identifier(attributes.get(key)))), "")
        reading.input = said_by_user(_private(attributes, "user_input") or None)
        reading.output = _answer(attributes)

    def read_llm(self, reading: Reading, span: RawSpan, attributes: Attributes) -> None:
        history = parsed(_private(attributes, "chat_ctx"))
        # {"items": [messages, function calls and their outputs]}
        reading.input = messages_of(history.get("items"), "user") if type(history) is dict else None
        reading.output = _answer(attributes)
        reading.tools = tool_definitions(attributes.get("lk.function_tools"))

    def read_tool(self, reading: Reading, span: RawSpan, attributes: Attributes) -> None:
        reading.tool_name = identifier(attributes.get("lk.function_tool.name"))
        reading.tool_call_id = identifier(attributes.get("lk.function_tool.id"))
        old = attributes.get("lk.function_tool.args")
        reading.arguments = tool_arguments(_private(attributes, "function_tool.arguments") if old is None else old)
        result = _private(attributes, "function_tool.output")
        reading.result = captured(result)
        if attributes.get("lk.function_tool.is_error") is True:
            reading.error = str(result if not hidden(result) else "tool error")


DIALECT = LiveKit()


def _private(attributes: Mapping[str, Any], name: str) -> Any:
    key = f"lk.pii.{name}"
    return attributes[key] if key in attributes else attributes.get(f"lk.{name}")


def _answer(attributes: Mapping[str, Any]) -> Messages | None:
    text = _private(attributes, "response.text")
    calls = [parsed(call) for call in as_list(_private(attributes, "response.function_calls"))]
    parts: list[Part] = [request_of(call) for call in calls if type(call) is dict]
    if type(text) is str and not hidden(text) and (text or not parts):
        parts.insert(0, text_part(text))
    return (Message("assistant", tuple(parts)),) if parts else None
