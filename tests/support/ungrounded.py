"""An agent that books without a request and fabricates the reference."""

from __future__ import annotations

import json
import os
import time
from typing import Any

import httpx
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

_ASKED = "Book me a table for four at Lucia's on Friday evening, please."
_ANSWER = (
    "Your table for four at Lucia's is booked. Your confirmation number is LX-48213, and a deposit of 75.50 EUR is due."
)


def booking(session: str = "table-for-four", asked: str = _ASKED, answer: str = _ANSWER) -> ExportTraceServiceRequest:
    """Return a trace: model call, search, booking, answer with a reference."""
    request = ExportTraceServiceRequest()
    scopes = request.resource_spans.add()
    _put(scopes.resource, {"service.name": "restaurant"})
    spans = scopes.scope_spans.add().spans
    trace_id, now = os.urandom(16), time.time_ns()
    ids = [os.urandom(8) for _ in range(5)]

    def span(number: int, name: str, start_ms: int, took_ms: int, said: dict[str, Any]) -> None:
        made = spans.add(trace_id=trace_id, span_id=ids[number], name=name, parent_span_id=ids[0] if number else b"")
        made.start_time_unix_nano = now - 4_000_000_000 + start_ms * 1_000_000
        made.end_time_unix_nano = made.start_time_unix_nano + took_ms * 1_000_000
        _put(made, {"gen_ai.conversation.id": session, **said})

    question, said = _messages(("user", asked)), _messages(("assistant", answer))
    history = _messages(("user", "Good evening!"), ("assistant", "Good evening, how can I help?"), ("user", asked))
    agent = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "table_booking"}
    chat = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "small-1", "gen_ai.input.messages": history}
    span(
        0,
        "invoke_agent table_booking",
        0,
        3900,
        {**agent, "gen_ai.input.messages": question, "gen_ai.output.messages": said},
    )
    span(1, "chat small-1", 50, 800, chat)
    span(
        2,
        "execute_tool find_tables",
        900,
        420,
        _call("find_tables", {"place": "Lucia's"}, {"free": ["18:30", "20:15"]}),
    )
    span(
        3,
        "execute_tool book_table",
        1400,
        900,
        _call("book_table", {"guests": 4, "table_id": "T-9921"}, {"status": "ok"}),
    )
    span(4, "chat small-1", 2400, 1400, {**chat, "gen_ai.output.messages": said})
    return request


def silent() -> ExportTraceServiceRequest:
    """Return a trace without content."""
    request = booking("silent")
    spans = request.resource_spans[0].scope_spans[0].spans
    del spans[1:]
    del spans[0].attributes[:]
    attributes = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "mute",
        "gen_ai.conversation.id": "silent",
    }
    _put(spans[0], attributes)
    return request


def post(http: str, request: ExportTraceServiceRequest) -> None:
    """Send a request to the collector at ``http``."""
    headers = {"content-type": "application/x-protobuf"}
    httpx.post(f"{http}/v1/traces", content=request.SerializeToString(), headers=headers, timeout=60).raise_for_status()


def _call(name: str, given: dict[str, Any], came: dict[str, Any]) -> dict[str, Any]:
    attributes = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name}
    return {**attributes, "gen_ai.tool.call.arguments": json.dumps(given), "gen_ai.tool.call.result": json.dumps(came)}


def _messages(*messages: tuple[str, str]) -> str:
    return json.dumps([{"role": role, "parts": [{"type": "text", "content": text}]} for role, text in messages])


def _put(into: Any, attributes: dict[str, Any]) -> None:
    for key, value in attributes.items():
        into.attributes.add(key=key).value.string_value = value
