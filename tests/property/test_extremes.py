"""Extreme OTLP numbers are accepted or rejected without side effects."""

from __future__ import annotations

import asyncio
import math
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given, settings, strategies as st
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, KeyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from pandaeval_collector.exporters.delivery.emitter import Emitter
from pandaeval_collector.pipeline.accounting import residual
from pandaeval_collector.receivers import Malformed
from pandaeval_otel.wire.otlp_json import BadOtlp, decode_json, logs_from_json, traces_from_json
from support.line import RunningPipeline
from support.made_traces import START_NS, Composer, MadeTrace
from support.wire_bytes import varint

U64 = st.sampled_from([0, 1, START_NS, 2**53, 2**63 - 1, 2**63, 2**64 - 1]) | st.integers(0, 2**64 - 1)
U32 = st.sampled_from([0, 1, 2**31, 2**32 - 1])
I32 = st.sampled_from([0, 1, 2, 3, 24, -1, 99, 2**31 - 1, -(2**31)])
I64 = st.sampled_from([0, -1, 2**31, 2**53 + 1, 2**63 - 1, -(2**63)])
DOUBLES = st.sampled_from([0.0, -0.0, 5e-324, 1e308, -1e308, math.nan, math.inf, -math.inf, 0.5])
KEYS = st.sampled_from(
    [
        "gen_ai.usage.input_tokens",
        "gen_ai.usage.output_tokens",
        "gen_ai.usage.cost",
        "gen_ai.tool.call.arguments",
        "gen_ai.tool.call.result",
        "gen_ai.request.temperature",
        "gen_ai.conversation.id",
        "gen_ai.response.id",
        "gen_ai.tool.name",
        "gen_ai.agent.name",
        "gen_ai.input.messages",
        "gen_ai.evaluation.score.value",
        "llm.token_count.prompt",
        "session.id",
        "input.value",
        "service.name",
        "pandaeval.session.id",
        "pandaeval.sampled",
        "event.name",
        "x",
    ]
)
NUMBERS = st.builds(lambda n: AnyValue(int_value=n), I64) | st.builds(lambda n: AnyValue(double_value=n), DOUBLES)
TEXTS = st.sampled_from(
    ["NaN", "1e400", "9" * 400, "-Infinity", '{"a": 1e400, "b": NaN}', "[" * 500, "\ud7ff\uffff", ""]
)
VALUES = NUMBERS | st.builds(lambda t: AnyValue(string_value=t), TEXTS)
VALUES |= st.builds(lambda values: AnyValue(array_value=ArrayValue(values=values)), st.lists(NUMBERS, max_size=3))
ATTRIBUTES = st.lists(st.builds(lambda k, v: KeyValue(key=k, value=v), KEYS, VALUES), max_size=6)
EVENTS = st.builds(
    lambda time, attributes, dropped: Span.Event(
        name="gen_ai.choice", time_unix_nano=time, attributes=attributes, dropped_attributes_count=dropped
    ),
    U64,
    ATTRIBUTES,
    U32,
)
LINKS = st.builds(
    lambda flags, dropped, size: Span.Link(
        trace_id=b"l" * size, span_id=b"s" * (size // 2), flags=flags, dropped_attributes_count=dropped
    ),
    U32,
    U32,
    st.sampled_from([0, 5, 16]),
)
NAMES = st.sampled_from(["invoke_agent a", "chat m", "execute_tool t", "", "GET /"])


@st.composite
def spans(draw: st.DrawFn) -> Span:
    operation = draw(st.sampled_from(["invoke_agent", "chat", "execute_tool", ""]))
    span = Span(
        trace_id=bytes((draw(st.integers(1, 2)),)) * 16,
        span_id=draw(st.integers(1, 2**64 - 1)).to_bytes(8, "big"),
        parent_span_id=draw(st.sampled_from([b"", bytes(8), b"parent__"])),
        name=draw(NAMES),
        start_time_unix_nano=draw(U64),
        end_time_unix_nano=draw(U64),
        flags=draw(U32),
        attributes=draw(ATTRIBUTES),
        events=draw(st.lists(EVENTS, max_size=2)),
        links=draw(st.lists(LINKS, max_size=2)),
        dropped_attributes_count=draw(U32),
        dropped_events_count=draw(U32),
        dropped_links_count=draw(U32),
        status=Status(message="m"),
    )
    span.attributes.add(key="gen_ai.operation.name").value.string_value = operation
    # Written as bytes, because some releases of the generated classes reject unknown enum numbers.
    span.MergeFromString(b"\x30" + varint(draw(I32)) + b"\x7a" + bound(b"\x18" + varint(draw(I32))))
    return span


@st.composite
def records(draw: st.DrawFn) -> LogRecord:
    record = LogRecord(
        trace_id=bytes((draw(st.integers(1, 2)),)) * 16,
        span_id=draw(st.sampled_from([b"", bytes(8), b"parent__"])),
        event_name="gen_ai.choice",
        time_unix_nano=draw(U64),
        observed_time_unix_nano=draw(U64),
        body=draw(VALUES),
        attributes=draw(ATTRIBUTES),
        dropped_attributes_count=draw(U32),
        flags=draw(U32),
    )
    record.MergeFromString(b"\x10" + varint(draw(I32)))
    return record


def bound(content: bytes) -> bytes:
    return varint(len(content)) + content


def neighbour() -> MadeTrace:
    return Composer(5).trace(4)


@settings(max_examples=25, deadline=None)
@given(st.lists(spans(), min_size=1, max_size=6), st.lists(records(), max_size=3))
def test_extreme_items_are_decided_or_rejected_and_other_traces_are_scored(
    odd: list[Span], logs: list[LogRecord]
) -> None:
    request = neighbour().request()
    request.resource_spans[0].scope_spans[0].spans.extend(odd)
    events = ExportLogsServiceRequest()
    events.resource_logs.add().scope_logs.add().log_records.extend(logs)
    asyncio.run(through(request, events))


async def through(request: ExportTraceServiceRequest, events: ExportLogsServiceRequest) -> None:
    with tempfile.TemporaryDirectory() as folder:
        async with RunningPipeline(Path(folder)) as line:
            line.line._revisions._emitter = Emitter(("logs", "traces"))
            await line.pipeline.traces(request.SerializeToString())
            await line.pipeline.logs(events.SerializeToString())
            await line.settle()
            assert line.results_of(neighbour())
            assert any(each["outcome"] == "scored" for each in line.results_of(neighbour()))
            assert not line.telemetry.total("pandaeval.traces", "failed")
            assert not line.telemetry.total("pandaeval.store.errors")
            assert residual(line.telemetry, line.pipeline.open_items) == 0
            decoded = line.telemetry.total("pandaeval.spans", "decoded")
            assert decoded == len(request.resource_spans[0].scope_spans[0].spans)
            decided = line.telemetry.total("pandaeval.items", "decided")
            assert decided == line.telemetry.total("pandaeval.spans", "stored") + line.telemetry.total(
                "pandaeval.logs", "stored"
            )


@pytest.mark.parametrize(
    "bad",
    [
        b"\x2a\x02\xff\xfe",  # a name that is not UTF-8
        b"\x4a\x04\x0a\x02\xff\xfe",  # a key that is not UTF-8
        b"\x4a\x08\x0a\x01k\x12\x03\x0a\x01\xff",  # a value that is not UTF-8
        b"\x0a",  # a truncated field
    ],
)
async def test_only_the_malformed_span_of_a_request_is_rejected(tmp_path: Path, bad: bytes) -> None:
    trace = neighbour()
    whole = trace.request()
    encoded = Span(trace_id=b"b" * 16, span_id=b"badspan_").SerializeToString() + bad
    broken = b"\x0a" + bound(b"\x12" + bound(b"\x12" + bound(encoded)))
    async with RunningPipeline(tmp_path) as line:
        answer = await line.pipeline.traces(whole.SerializeToString() + broken)
        assert answer.rejected == 1
        assert "Span" in answer.message
        await line.settle()
        assert line.results_of(trace)
        assert line.telemetry.total("pandaeval.spans", "rejected") == 1
        assert residual(line.telemetry, line.pipeline.open_items) == 0
        with pytest.raises(Malformed):
            await line.pipeline.traces(whole.SerializeToString() + b"\x0a\x05abc")


JSON_NUMBERS = [*("1e400", "-1e400", "1" + "0" * 400, "9" * 5000, str(2**64), "-1", "1.5", "NaN", "null", "true", '""')]
JSON_NUMBERS += ['"NaN"', '"Infinity"', f'"{"9" * 5000}"', '"1e400"', '"\\ud800"', "[]", "{}", str(2**63), f'"{2**63}"']
JSON_FIELDS = [
    *("startTimeUnixNano", "endTimeUnixNano", "kind", "flags", "droppedAttributesCount", "droppedEventsCount", "name"),
    *("status.code", "attributes.intValue", "attributes.doubleValue", "attributes.stringValue", "events.timeUnixNano"),
]


_PLACES = {"attributes": "attributes[0].value", "events": "events[0]"}


def _refused_at(body: bytes, read: Callable[[Any], ExportTraceServiceRequest | ExportLogsServiceRequest]) -> str | None:
    """Return the place of a rejected value; ``None`` if it was read or is no JSON. Other errors fail the test."""
    try:
        document = decode_json(body)
    except BadOtlp:
        return None
    try:
        found = read(document)
    except BadOtlp as error:
        return error.path
    assert type(found).FromString(found.SerializeToString()) is not None
    return None


@pytest.mark.parametrize("field", JSON_FIELDS)
@pytest.mark.parametrize("number", JSON_NUMBERS, ids=[each[:12] for each in JSON_NUMBERS])
def test_any_number_in_json_is_read_or_rejected_with_its_place(field: str, number: str) -> None:
    span: dict[str, Any] = {"traceId": "a" * 32, "spanId": "b" * 16}
    outer, _, inner = field.partition(".")
    if outer == "attributes":
        span["attributes"] = [{"key": "k", "value": {inner: "@"}}]
    elif outer == "events":
        span["events"] = [{inner: "@"}]
    else:
        span[outer] = {inner: "@"} if inner else "@"
    body = orjson.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}).replace(b'"@"', number.encode())
    place = _refused_at(body, traces_from_json)
    assert place in (
        None,
        f"resourceSpans[0].scopeSpans[0].spans[0].{_PLACES.get(outer, outer)}{'.' * bool(inner)}{inner}",
    )


@pytest.mark.parametrize("number", JSON_NUMBERS, ids=[each[:12] for each in JSON_NUMBERS])
def test_any_severity_and_time_in_json_is_read_or_rejected_with_its_place(number: str) -> None:
    for field in ("severityNumber", "timeUnixNano"):
        record = {"severityNumber": 1, "timeUnixNano": 1, field: "@"}
        body = orjson.dumps({"resourceLogs": [{"scopeLogs": [{"logRecords": [record]}]}]})
        place = _refused_at(body.replace(b'"@"', number.encode()), logs_from_json)
        assert place in (None, f"resourceLogs[0].scopeLogs[0].logRecords[0].{field}")
