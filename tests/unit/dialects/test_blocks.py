"""LlamaIndex's lists of blocks."""

from __future__ import annotations

import json
from typing import Any

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from pandaeval_otel.model import Trace
from pandaeval_otel.normal.evidence import gather
from pandaeval_otel.normal.trace import build_trace
from pandaeval_otel.wire.splitting import split_traces
from support.made_traces import MadeTrace

ASKED, SAID = "Book seat 14C.", "Seat 14C is booked."


def message(role: str, text: str) -> dict[str, Any]:
    return {"role": role, "additional_kwargs": {}, "blocks": [{"block_type": "text", "text": text}]}


def trace(attributes: dict[str, str]) -> Trace:
    made = MadeTrace(b"t" * 16, None, "shop", (_span(attributes),))
    [fragment] = split_traces(made.request().SerializeToString()).fragments
    found = build_trace(gather([(False, fragment.chunk)]))
    assert found is not None
    return found


def _span(attributes: dict[str, str]) -> Span:
    from opentelemetry.proto.trace.v1.trace_pb2 import Span

    span = Span(
        trace_id=b"t" * 16, span_id=b"s" * 8, name="desk.workflow", start_time_unix_nano=1, end_time_unix_nano=9
    )
    for key, value in attributes.items():
        span.attributes.add(key=key).value.string_value = value
    return span


def workflow(given: Any, made: Any) -> dict[str, str]:
    named = {"traceloop.span.kind": "workflow", "traceloop.entity.name": "desk"}
    return {**named, "traceloop.entity.input": json.dumps(given), "traceloop.entity.output": json.dumps(made)}


def agent(given: Any, made: Any) -> dict[str, str]:
    return {"openinference.span.kind": "AGENT", "input.value": json.dumps(given), "output.value": json.dumps(made)}


@pytest.mark.parametrize("attributes", [workflow, agent])
@pytest.mark.parametrize(
    "given",
    [
        {"user_msg": message("user", ASKED)},
        {"input": [message("system", "You book."), message("user", ASKED)]},
        {"ev": {"input": [message("user", ASKED)], "current_agent_name": "desk"}},
        [message("user", ASKED)],
        {"user_msg": ASKED, "chat_history": None},
    ],
    ids=str,
)
def test_trace_input_is_read_from_message_blocks(attributes: Any, given: Any) -> None:
    assert trace(attributes(given, SAID)).input == ASKED


@pytest.mark.parametrize("attributes", [workflow, agent])
@pytest.mark.parametrize(
    "made",
    [
        message("assistant", SAID),
        {"message": message("assistant", SAID), "raw": {}},
        {"response": message("assistant", SAID), "tool_calls": [], "raw": None, "current_agent_name": "desk"},
        {"result": {"response": message("assistant", SAID), "tool_calls": [{"tool_name": "book"}]}},
        "AgentOutput(response=ChatMessage(role=<MessageRole.ASSISTANT: 'assistant'>, additional_kwargs={}, "
        f"blocks=[TextBlock(block_type='text', text='{SAID}')]), tool_calls=[], current_agent_name='desk')",
    ],
    ids=str,
)
def test_trace_output_is_read_from_message_blocks(attributes: Any, made: Any) -> None:
    assert trace(attributes(ASKED, made)).output == SAID
