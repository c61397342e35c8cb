"""OTLP failures: many crashes of one cause, few lies, a loop."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Status

from support.ungrounded import _call, _messages, _put


def mix(crashes: int = 60) -> ExportTraceServiceRequest:
    """Return crashes of one agent, three lies of another, and a loop."""
    request = ExportTraceServiceRequest()
    for number in range(crashes):
        _run(
            request,
            "library_help",
            f"crash-{number}",
            f"Renew loan L-{number}.",
            None,
            error="400 too long for this model",
        )
    for tool, asked, answer in (
        ("send_reminder", "Remind my customer.", "The reminder has been sent to your customer."),
        ("cancel_order", "Cancel my order.", "Your order has been cancelled."),
        ("update_address", "Change my address.", "Your address has been updated."),
    ):
        failed = (tool, {"id": "4711"}, None, f"{tool} is not allowed")
        _run(request, "support_desk", tool, asked, answer, [failed])
    again = ("search_help", {"q": "opening hours"}, {"found": []}, "")
    _run(request, "order_desk", "loop", "When are you open?", "I could not find that.", [again] * 5)
    return request


def _run(
    request: ExportTraceServiceRequest,
    agent: str,
    session: str,
    asked: str,
    answer: str | None,
    calls: Sequence[tuple[str, dict[str, Any], dict[str, Any] | None, str]] = (),
    error: str = "",
) -> None:
    held = request.resource_spans.add()
    _put(held.resource, {"service.name": f"{agent}-service"})
    spans = held.scope_spans.add().spans
    trace_id, root, start = os.urandom(16), os.urandom(8), time.time_ns() - 4_000_000_000
    attributes = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": agent,
        "gen_ai.conversation.id": session,
    }
    attributes["gen_ai.input.messages"] = _messages(("user", asked))
    if answer is not None:
        attributes["gen_ai.output.messages"] = _messages(("assistant", answer))
    made = spans.add(trace_id=trace_id, span_id=root, name=f"invoke_agent {agent}")
    made.start_time_unix_nano, made.end_time_unix_nano = start, start + 3_000_000_000
    _put(made, attributes)
    if error:
        made.status.code, made.status.message = Status.STATUS_CODE_ERROR, error
    for number, (tool, given, came, broke) in enumerate(calls):
        call = spans.add(trace_id=trace_id, span_id=os.urandom(8), parent_span_id=root, name=f"execute_tool {tool}")
        call.start_time_unix_nano = start + (number + 1) * 100_000_000
        call.end_time_unix_nano = call.start_time_unix_nano + 50_000_000
        facts = _call(tool, given, came or {})
        if broke:
            del facts["gen_ai.tool.call.result"]
            call.status.code, call.status.message = Status.STATUS_CODE_ERROR, broke
        _put(call, facts)
