"""Sessionless turns whose responses continue earlier responses."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from opentelemetry.proto.trace.v1.trace_pb2 import Span

from support.made_traces import START_NS, MadeTrace

_MS = 10**6
_SAID = ("Your parcel is on its way.", "The refund was sent.", "Your parcel is on its way.", "Seat four is free.")


def turn(
    number: int,
    gives: Sequence[str] = (),
    continues: str = "",
    session: str | None = None,
    start: int | None = None,
    said: str | None = None,
    told: Sequence[int] = (),
) -> MadeTrace:
    """Return a trace with a model call per response, root last.

    ``continues``: predecessor of the first. ``start``: seconds. ``told``: exchange numbers, with history.
    """
    trace_id = number.to_bytes(16, "big")
    now = START_NS + (number if start is None else start) * 1000 * _MS
    root = Span(trace_id=trace_id, span_id=_id(number, 0), name="invoke_agent desk", start_time_unix_nano=now)
    asked = f"Is my parcel {number} on its way, and was the refund sent?"
    answer = _SAID[number % len(_SAID)] if said is None else said
    given = [("user", asked)]
    if told:
        given = [message for each in told for message in exchange(each)]
        answer = given.pop()[1]
    content = {"gen_ai.input.messages": _messages(*given), "gen_ai.output.messages": _messages(("assistant", answer))}
    spans = []
    for index, response in enumerate(gives or [""]):
        call = Span(trace_id=trace_id, span_id=_id(number, index + 1), parent_span_id=root.span_id, name="chat m")
        call.start_time_unix_nano = now + (10 * index + 1) * _MS
        call.end_time_unix_nano = call.start_time_unix_nano + 9 * _MS
        attributes: dict[str, Any] = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m", **content}
        attributes |= {"gen_ai.response.id": response} if response else {}
        attributes |= {"gen_ai.request.previous_response.id": continues} if continues and not index else {}
        _tell(call, attributes)
        spans.append(call)
    root.end_time_unix_nano = spans[-1].end_time_unix_nano + _MS
    named = {"gen_ai.conversation.id": session} if session is not None else {}
    _tell(root, {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "desk", **named})
    return MadeTrace(trace_id, session, "shop", (*spans, root))


def _id(number: int, index: int) -> bytes:
    return (number * 1000 + index + 1).to_bytes(8, "big")


def exchange(number: int) -> list[tuple[str, str]]:
    """Return a unique user message and answer."""
    return [
        ("user", f"Where is parcel {number}, please?"),
        ("assistant", f"Parcel {number} is on its way and comes on Tuesday, the {number}th."),
    ]


def _messages(*messages: tuple[str, str]) -> str:
    return json.dumps([{"role": role, "parts": [{"type": "text", "content": text}]} for role, text in messages])


def _tell(span: Span, attributes: dict[str, Any]) -> None:
    for key, value in attributes.items():
        span.attributes.add(key=key).value.string_value = value
