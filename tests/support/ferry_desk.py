"""A ferry booking desk: single-turn traces with a found or fabricated sailing."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from opentelemetry.proto.trace.v1.trace_pb2 import Span

from support.line import RunningPipeline
from support.made_traces import START_NS, MadeTrace

MS = 10**6
KNOWN, INVENTED = "KO-7731", "QX-4418"
BOOKED = {"sailing": KNOWN, "harbour": "Oslo"}


def trace(
    number: int,
    answer: str,
    *,
    result: Any = None,
    asks: str = "And now?",
    captured: bool = True,
    session: str | None = "s",
) -> MadeTrace:
    """Return one turn: model call, optional tool call, answer."""
    trace_id, start = number.to_bytes(16, "big"), START_NS + number * 1000 * MS
    root = span(trace_id, 0, b"", "invoke_agent desk", start, 90, {"gen_ai.operation.name": "invoke_agent"})
    for key, value in (("gen_ai.agent.name", "desk"), ("gen_ai.conversation.id", session)):
        if value is not None:
            root.attributes.add(key=key).value.string_value = value
    attributes = {"gen_ai.operation.name": "chat", "gen_ai.input.messages": message("user", asks)}
    attributes["gen_ai.output.messages"] = message("assistant", answer)
    spans = [span(trace_id, 1, root.span_id, "chat m", start + MS, 50, attributes)]
    if result is not None or not captured:
        called = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "find_ferry"}
        called |= {"gen_ai.tool.call.arguments": "{}"}
        called |= {"gen_ai.tool.call.result": json.dumps(result)} if captured else {}
        spans.append(span(trace_id, 2, root.span_id, "execute_tool find_ferry", start + 60 * MS, 10, called))
    return MadeTrace(trace_id, session, "shop", (*spans, root))


def span(
    trace_id: bytes, number: int, parent: bytes, name: str, start: int, lasts: int, attributes: dict[str, str]
) -> Span:
    made = Span(trace_id=trace_id, span_id=trace_id[-6:] + number.to_bytes(2, "big"), parent_span_id=parent, name=name)
    made.start_time_unix_nano, made.end_time_unix_nano = start, start + lasts * MS
    for key, value in attributes.items():
        made.attributes.add(key=key).value.string_value = value
    return made


def message(role: str, text: str) -> str:
    return json.dumps([{"role": role, "parts": [{"type": "text", "content": text}]}])


def with_last_word(of: MadeTrace, answer: str) -> MadeTrace:
    """Add a late final model call."""
    attributes = {"gen_ai.operation.name": "chat", "gen_ai.input.messages": message("user", "And now?")}
    attributes["gen_ai.output.messages"] = message("assistant", answer)
    start = of.spans[-1].start_time_unix_nano + 80 * MS
    return replace(of, spans=(span(of.trace_id, 9, of.spans[-1].span_id, "chat m", start, 5, attributes),))


def called_again(call: Span, number: int) -> Span:
    copy = Span.FromString(call.SerializeToString())
    copy.span_id = call.span_id[:-1] + bytes([number])
    copy.start_time_unix_nano -= (10 - number) * MS
    copy.end_time_unix_nano = copy.start_time_unix_nano + MS // 2
    return copy


def asked_again(call: Span, number: int) -> tuple[Span, Span]:
    """Add a textless model call that requests the same call."""
    again = called_again(call, number)
    model_call = {"gen_ai.operation.name": "chat"}
    start = again.start_time_unix_nano - MS // 4
    asks = span(call.trace_id, 20 + number, call.parent_span_id, "chat m", start, 0, model_call)
    return asks, again


FIRST = trace(1, f"There is the {KNOWN}.", result=BOOKED)
SECOND = trace(2, "With pleasure.")
REPEATS, INVENTS = trace(3, f"You are on the {KNOWN}."), trace(4, f"You are on the {INVENTED}.")


def grounding(line: RunningPipeline, of: MadeTrace) -> dict[str, Any]:
    return line.of(of, "grounding")[-1]
