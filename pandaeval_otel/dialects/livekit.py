"""Reads LiveKit Agents: ``lk.*``, and in newer releases ``lk.pii.*`` for everything that a person said.

A call is one long ``agent_session``; each ``agent_turn`` in it is a run. Newer releases write the conventions besides.
"""

from __future__ import annotations

from typing import Any

from pandaeval_otel.base import semconv
from pandaeval_otel.dialects._kit import (
    Attributes,
    ByKind,
    Logs,
    Messages,
    RawSpan,
    Reading,
    as_dict,
    as_list,
    captured,
    give_error,
    hidden,
    identifier,
    keys,
    kinds,
    messages_of,
    one_session,
    parsed,
    request_of,
    said_by_user,
    spoken,
    text_part,
    tool_arguments,
)
from pandaeval_otel.model import Kind, Part

_KINDS = kinds(
    step="agent_session", agent="agent_turn", llm="llm_node", tool="function_tool", evaluation="judge_evaluation"
)
_AGENT_NAMES = ("lk.agent_name", "lk.agent_label")


class LiveKit(ByKind):
    """Reads ``lk.*``."""

    name = "livekit"
    priority = 70
    roots = frozenset({"lk"})
    scopes = ("livekit-agents",)
    llm_keys = keys(tools="lk.function_tools")
    tool_keys = keys(tool_name="lk.function_tool.name", tool_call_id="lk.function_tool.id")

    def read(self, span: RawSpan, logs: Logs) -> Reading | None:
        kind = _KINDS.get(span.name)
        if kind is None and semconv.OPERATION not in span.attributes:
            kind = Kind.STEP
        return self.read_as(kind, span)

    def read_any(self, reading: Reading, span: RawSpan, attributes: Attributes) -> None:
        reading.session_ids = one_session(_private(attributes, "room_name"))

    def read_agent(self, reading: Reading, span: RawSpan, attributes: Attributes) -> None:
        reading.agent_name = next((name for key in _AGENT_NAMES if (name := identifier(attributes.get(key)))), "")
        reading.input = said_by_user(_private(attributes, "user_input") or None)
        reading.output = _answer(attributes)

    def read_llm(self, reading: Reading, span: RawSpan, attributes: Attributes) -> None:
        history = as_dict(parsed(_private(attributes, "chat_ctx")))
        reading.input = messages_of(history.get("items"), "user")  # messages, function calls and their outputs
        reading.output = _answer(attributes)

    def read_tool(self, reading: Reading, span: RawSpan, attributes: Attributes) -> None:
        arguments = attributes.get("lk.function_tool.args")
        if arguments is None:
            arguments = _private(attributes, "function_tool.arguments")
        reading.arguments = tool_arguments(arguments)
        result = _private(attributes, "function_tool.output")
        reading.result = captured(result)
        if attributes.get("lk.function_tool.is_error") is True:
            give_error(reading, None if hidden(result) else result)


DIALECT = LiveKit()


def _private(attributes: Attributes, name: str) -> Any:
    key = f"lk.pii.{name}"
    if key in attributes:
        return attributes[key]
    return attributes.get(f"lk.{name}")


def _answer(attributes: Attributes) -> Messages | None:
    text = _private(attributes, "response.text")
    calls = [parsed(call) for call in as_list(_private(attributes, "response.function_calls"))]
    parts: list[Part] = [request_of(call) for call in calls if type(call) is dict]
    if type(text) is str and not hidden(text) and (text or not parts):
        parts.insert(0, text_part(text))
    return spoken("assistant", *parts)
