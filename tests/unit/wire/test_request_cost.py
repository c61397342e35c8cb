"""Estimated object cost of a request."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given, strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from pandaeval_otel._proto.trace_service_pb2 import CompletedTrace, SubmitTracesRequest
from pandaeval_otel.wire.otlp_json import decode_json, traces_from_json
from pandaeval_otel.wire.weight import (
    LOGS,
    SUBMISSION,
    TRACES,
    BrokenBytesError,
    RequestKind,
    estimate,
    resources_and_items,
    upper_items,
)
from support.receivers import logs_request, trace_request
from support.wire_bytes import field, in_item, in_scope, in_value, nested_value, tiny_spans

MANY, LIMIT = 60_000, 4_000
CAPTURES = sorted((Path(__file__).parents[2] / "golden" / "captures").rglob("good.otlp.jsonl"))


@pytest.mark.parametrize(
    ("kind", "request_bytes"),
    [
        pytest.param(TRACES, b"\x0a\0" * MANY, id="resources"),
        pytest.param(TRACES, b"\x8a\0\0" * MANY, id="resources whose tags have more digits than they need"),
        pytest.param(TRACES, field(1, b"\x12\0" * MANY), id="scopes"),
        pytest.param(TRACES, in_scope(b"\x12\0" * MANY), id="spans"),
        pytest.param(LOGS, in_scope(b"\x12\0" * MANY), id="records"),
        pytest.param(TRACES, in_item(b"\x4a\0" * MANY), id="attributes"),
        pytest.param(TRACES, in_item(b"\xca\0\0" * MANY), id="attributes with long tags"),
        pytest.param(LOGS, in_item(b"\x32\0" * MANY), id="attributes of a record"),
        pytest.param(TRACES, in_item(b"\x5a\0" * MANY), id="events"),
        pytest.param(TRACES, in_item(b"\x6a\0" * MANY), id="links"),
        pytest.param(TRACES, in_item(field(11, b"\x1a\0" * MANY)), id="attributes of an event"),
        pytest.param(TRACES, in_item(field(13, b"\x22\0" * MANY)), id="attributes of a link"),
        pytest.param(TRACES, in_value(field(6, b"\x0a\0" * MANY)), id="pairs of a value"),
        pytest.param(TRACES, in_value(field(5, b"\x0a\0" * MANY)), id="values of an array"),
        pytest.param(LOGS, in_item(field(5, field(5, b"\x0a\0" * MANY))), id="values of a body"),
        pytest.param(TRACES, field(1, field(1, b"\x0a\0" * MANY)), id="attributes of a resource"),
        pytest.param(TRACES, field(1, field(2, field(1, b"\x1a\0" * MANY))), id="attributes of a scope"),
        pytest.param(TRACES, b"\x0b" + b"\x0a\0" * MANY + b"\x0c", id="resources in a group, which nobody sends"),
        pytest.param(SUBMISSION, b"\x0a\0" * MANY, id="submitted traces"),
        pytest.param(SUBMISSION, field(1, field(2, in_scope(b"\x12\0" * MANY))), id="spans of a submitted trace"),
        pytest.param(SUBMISSION, field(1, field(3, in_item(b"\x32\0" * MANY))), id="attributes of a submitted record"),
    ],
)
def test_too_many_items_are_detected_with_little_memory(kind: RequestKind, request_bytes: bytes) -> None:
    assert any(_peak(kind, request_bytes) < len(request_bytes) + 100_000 for _ in range(3))


def _peak(kind: RequestKind, request_bytes: bytes) -> int:
    tracemalloc.start()
    try:
        assert estimate(request_bytes, kind, LIMIT) > LIMIT
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_estimates_within_the_limit_are_close() -> None:
    assert estimate(b"", TRACES, LIMIT) == 0
    assert 10_000 < estimate(tiny_spans(10_000), TRACES, 5 * LIMIT) <= 14_000
    assert upper_items(tiny_spans(10_000), TRACES, 3 * LIMIT) == 10_002
    assert resources_and_items(tiny_spans(10_000)) == 10_002
    assert resources_and_items(b"\x0a\0" * 10_000) == 10_000


def test_text_is_not_counted_as_messages() -> None:
    text = in_item(field(5, b"J" * 11 * LIMIT))
    assert estimate(text, TRACES, LIMIT) == 4
    assert estimate(text, TRACES, 5 * LIMIT) > LIMIT  # an upper bound, which is cheaper to compute


@pytest.mark.parametrize("file", CAPTURES, ids=lambda path: path.parent.name)
def test_estimates_of_recorded_requests_are_within_bounds(file: Path) -> None:
    for line in file.read_bytes().splitlines():
        request = traces_from_json(decode_json(line))
        spans = [span for r in request.resource_spans for s in r.scope_spans for span in s.spans]
        messages = len(spans) + sum(len(span.attributes) * 2 for span in spans) / 10
        assert messages <= estimate(request.SerializeToString(), TRACES, LIMIT) <= 10 * messages + 100


def test_spans_and_logs_of_submitted_traces_are_counted() -> None:
    spans, logs = trace_request(30).SerializeToString(), logs_request().SerializeToString()
    trace = CompletedTrace(trace_id=bytes(16), spans=spans, logs=logs)
    request = SubmitTracesRequest(traces=[trace] * 10).SerializeToString()
    assert 10 * (20 + 30) < upper_items(request, SUBMISSION, LIMIT) < 10 * (20 + 40)
    assert estimate(request, SUBMISSION, LIMIT) >= upper_items(request, SUBMISSION, LIMIT)


@pytest.mark.parametrize(
    "damaged",
    [
        b"\x0a",
        b"\x0a\x05a",
        b"\x0a\x80",
        b"\x0f",
        b"\x08\x80",
        b"\x0a" + b"\xff" * 11,
        field(1, b"\x12\x09"),
        b"\x39\0",
    ],
)
def test_damaged_bytes_are_an_error(damaged: bytes) -> None:
    with pytest.raises(BrokenBytesError):
        upper_items(damaged, TRACES, LIMIT)


def test_too_deep_nesting_is_an_error() -> None:
    assert estimate(nested_value(10), TRACES, LIMIT) < 10
    with pytest.raises(BrokenBytesError):
        estimate(nested_value(60) + in_item(field(5, b"J" * 11 * LIMIT)), TRACES, LIMIT)


@given(st.binary(max_size=300))
def test_the_estimate_is_at_least_the_number_of_resources(data: bytes) -> None:
    try:
        resources = len(ExportTraceServiceRequest.FromString(data).resource_spans)
    except Exception:  # the error type depends on the protobuf implementation
        return
    assert estimate(data, TRACES, LIMIT) >= resources
