"""Handwritten spans for dialect tests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pandaeval_otel.model import Message, Span, Text, ToolRequest, ToolResponse
from pandaeval_otel.model.raw import RawEvent, RawLink, RawLog, RawSpan, Scope
from pandaeval_otel.normal.spans import normalize

TRACE, SPAN = "a" * 32, "b" * 16

ASK = Message("user", (Text("Weather in Oslo?"),))
BRIEF = Message("system", (Text("Be brief."),))
CALL = ToolRequest("get_weather", {"city": "Oslo"}, "c9")
FOUND = ToolResponse({"temp_c": 4}, "c9", "get_weather")
SAID = "4 degrees, rain."
ANSWER = Message("assistant", (Text(SAID),))
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}


def seen(
    attributes: dict[str, Any] | None = None,
    scope: str = "",
    events: Sequence[RawEvent] = (),
    logs: Sequence[RawLog] = (),
    **fields: Any,
) -> Span:
    """Return the normal form of a span with these attributes."""
    span = RawSpan(TRACE, SPAN, attributes=attributes or {}, scope=Scope(scope), events=events, **fields)
    return normalize(span, logs)


def event(name: str, **attributes: Any) -> RawEvent:
    return RawEvent(name, 1, attributes)


def log(name: str = "", body: Any = None, **attributes: Any) -> RawLog:
    return RawLog(TRACE, SPAN, name, 1, body, attributes)


def link(trace_id: str = TRACE) -> RawLink:
    return RawLink(trace_id, "c" * 16)


def texts(messages: Sequence[Message] | None) -> list[tuple[str, str]]:
    return [(message.role, message.text) for message in messages or ()]
