"""OTLP conversations with an agent, for planting faults."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from typing import Any

from pandaeval_collector.pipeline.line.stored_traces import Part, rebuilt
from pandaeval_lab.drill.fault import Subject
from pandaeval_lab.replay.files import Request
from pandaeval_otel.model import Trace
from pandaeval_otel.wire.otlp_json import traces_from_json

SYSTEM = "You are the booking desk of Example Air. Cancel only what the customer asks for."
TOOLS = [
    {
        "type": "function",
        "name": name,
        "parameters": {"type": "object", "properties": {key: {"type": "string"} for key in keys}, "required": keys},
    }
    for name, keys in (
        ("get_booking", ["booking_id"]),
        ("search_flights", ["route", "query"]),
        ("cancel_booking", ["booking_id", "reason"]),
    )
]
FIRST = "Your bookings are QX81LM and ZT52PA. QX81LM leaves on 2025-03-14 at 09:35 and cost $412.50."
LAST = (
    "Booking ZT52PA has been cancelled. It would have left on 2025-04-02 at 16:20. Of the $388.10 that you paid, and "
    "the $20.00 fee, we refund $368.10 within 7 days to Maria Weston. Details: https://air.example/refunds/ZT52PA."
)
_CALLS: Sequence[tuple[str, dict[str, Any], Any]] = (
    (
        "get_booking",
        {"booking_id": "ZT52PA"},
        {"booking": "ZT52PA", "date": "2025-04-02", "time": "16:20", "paid": "$388.10", "fee": "$20.00",
         "passenger": "Maria Weston", "page": "https://air.example/refunds/ZT52PA"},
    ),
    ("search_flights", {"route": "BER-OSL", "query": "flights on 2025-04-02"}, ["OS 114 full", "OS 118 full"]),
    ("cancel_booking", {"booking_id": "ZT52PA", "reason": "change of plan"}, "ok, cancelled"),
)  # fmt: skip


def conversation(number: int = 0) -> list[bytes]:
    """Return two turns: a booking, then a cancellation."""
    noted = "I noted QX81LM, 2025-03-14 at 09:35 for $412.50, and ZT52PA"
    asked = f"What have I booked? {noted}. I am customer MW-{7000 + number}."
    cancel = f"Cancel ZT52PA please, I changed my plans. {'Thanks. ' * number}"
    first = _turn(number, 0, [], asked, [], FIRST)
    second = _turn(number, 1, [_text("user", asked), _text("assistant", FIRST)], cancel, _CALLS, LAST)
    return [first, second]


def subject(number: int = 0) -> Subject:
    """Return the second turn."""
    first, second = ([(False, data)] for data in conversation(number))
    return Subject(_read(second), second, [_read(first)], first, ("The weather in Oslo is fine today.",))


def requests(count: int) -> list[Request]:
    return [Request(False, data) for number in range(count) for data in conversation(number)]


def _read(parts: Sequence[Part]) -> Trace:
    trace = rebuilt(parts).trace
    assert trace is not None
    return trace


def _turn(
    number: int,
    turn: int,
    history: list[Any],
    question: str,
    calls: Sequence[tuple[str, dict[str, Any], Any]],
    answer: str,
) -> bytes:
    trace_id = f"{number + 1:016x}{turn + 1:016x}"
    span = partial(_span, trace_id, f"session-{number}", (number * 1000 + turn * 100) * 10**9)
    messages = [*history, _text("user", question)]
    spans = []
    for at, (name, arguments, result) in enumerate(calls):
        call_id = f"call_{number}_{at}"
        asks = _message("assistant", {"type": "tool_call", "id": call_id, "name": name, "arguments": arguments})
        spans += [
            span(10 + 2 * at, 2 * at + 1, "chat", _model(messages, asks, "tool_call")),
            span(11 + 2 * at, 2 * at + 2, f"execute_tool {name}", _tool(name, call_id, arguments, result)),
        ]
        given = _message("tool", {"type": "tool_call_response", "id": call_id, "response": result})
        messages = [*messages, asks, given]
    end = 2 * len(calls) + 1
    spans.append(span(9, end, "chat", _model(messages, _text("assistant", answer), "stop")))
    root = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "desk",
        "gen_ai.input.messages": json.dumps([_text("user", question)]),
        "gen_ai.output.messages": json.dumps([{**_text("assistant", answer), "finish_reason": "stop"}]),
    }
    spans.append(span(1, 0, "invoke_agent desk", root, length=end + 2))
    return _request(spans)


def _request(spans: list[dict[str, Any]]) -> bytes:
    scope = {"scope": {"name": "desk"}, "spans": spans}
    return traces_from_json({"resourceSpans": [{"resource": {}, "scopeSpans": [scope]}]}).SerializeToString()


def _span(
    trace_id: str, session: str, start: int, no: int, second: int, name: str, held: dict[str, str], length: int = 1
) -> dict[str, Any]:
    begin = start + second * 10**9
    attributes = {**held, "gen_ai.conversation.id": session}
    made = {
        "traceId": trace_id,
        "spanId": f"{no:016x}",
        "name": name,
        "startTimeUnixNano": begin,
        "endTimeUnixNano": begin + length * 10**9,
        "attributes": [{"key": key, "value": {"stringValue": each}} for key, each in attributes.items()],
    }
    return made if no == 1 else {**made, "parentSpanId": f"{1:016x}"}


def _model(messages: list[Any], answer: dict[str, Any], finish: str) -> dict[str, str]:
    return {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": "m",
        "gen_ai.system_instructions": json.dumps([{"type": "text", "content": SYSTEM}]),
        "gen_ai.tool.definitions": json.dumps(TOOLS),
        "gen_ai.input.messages": json.dumps(messages),
        "gen_ai.output.messages": json.dumps([{**answer, "finish_reason": finish}]),
    }


def _tool(name: str, call_id: str, arguments: dict[str, Any], result: Any) -> dict[str, str]:
    return {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": name,
        "gen_ai.tool.call.id": call_id,
        "gen_ai.tool.call.arguments": json.dumps(arguments),
        "gen_ai.tool.call.result": result if isinstance(result, str) else json.dumps(result),
    }


def _text(role: str, text: str) -> dict[str, Any]:
    return _message(role, {"type": "text", "content": text})


def _message(role: str, part: dict[str, Any]) -> dict[str, Any]:
    return {"role": role, "parts": [part]}
