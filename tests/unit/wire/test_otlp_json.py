"""OTLP/JSON: equal to protobuf, or a precise error."""

from __future__ import annotations

import base64
import json
import math
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.json_format import MessageToDict
from hypothesis import given, strategies as st
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from pandaeval_otel.wire.otlp_json import MAX_DEPTH, BadOtlp, decode_json, logs_from_json, traces_from_json

SHARED = Path(__file__).parents[3].parent / "shared"
TRACE_ID, SPAN_ID = "0123456789abcdef0123456789ABCDEF", "0123456789abcdef"

ATTRIBUTES = [
    {"key": "s", "value": {"string_value": "grüß 🐼"}},
    {"key": "empty", "value": {"string_value": ""}},
    {"key": "b", "value": {"bool_value": False}},
    {"key": "i", "value": {"int_value": -(2**63)}},
    {"key": "d", "value": {"double_value": 0.1}},
    {"key": "inf", "value": {"double_value": -math.inf}},
    {"key": "bytes", "value": {"bytes_value": b"\xff\xfe\x00"}},
    {"key": "list", "value": {"array_value": {"values": [{"int_value": 1}, {}, {"array_value": {}}]}}},
    {"key": "map", "value": {"kvlist_value": {"values": [{"key": "x", "value": {"bool_value": True}}]}}},
    {"key": "nothing"},
]
TRACES = ExportTraceServiceRequest(
    resource_spans=[
        {
            "resource": {"attributes": ATTRIBUTES, "dropped_attributes_count": 2},
            "schema_url": "https://example.com/r",
            "scope_spans": [
                {
                    "scope": {"name": "lib", "version": "1", "attributes": ATTRIBUTES[:1]},
                    "schema_url": "https://example.com/s",
                    "spans": [
                        {
                            "trace_id": bytes(range(1, 17)),
                            "span_id": b"\x00" * 7 + b"\x01",
                            "parent_span_id": b"\x02" * 8,
                            "trace_state": "a=b",
                            "flags": 0x301,
                            "name": "chat",
                            "kind": 3,
                            "start_time_unix_nano": 2**64 - 1,
                            "end_time_unix_nano": 1,
                            "attributes": ATTRIBUTES,
                            "dropped_attributes_count": 2**32 - 1,
                            "events": [{"name": "e", "time_unix_nano": 5, "attributes": ATTRIBUTES[:2]}],
                            "dropped_events_count": 1,
                            "links": [{"trace_id": b"\x03" * 16, "span_id": b"\x04" * 8, "flags": 1}],
                            "dropped_links_count": 3,
                            "status": {"code": 2, "message": "no"},
                        }
                    ],
                }
            ],
        }
    ]
)
LOGS = ExportLogsServiceRequest(
    resource_logs=[
        {
            "scope_logs": [
                {
                    "log_records": [
                        {
                            "time_unix_nano": 1,
                            "observed_time_unix_nano": 2,
                            "severity_number": 9,
                            "severity_text": "INFO",
                            "body": {"kvlist_value": {"values": ATTRIBUTES}},
                            "attributes": ATTRIBUTES,
                            "flags": 1,
                            "trace_id": bytes(range(1, 17)),
                            "span_id": b"\x02" * 8,
                        },
                        {"body": {"string_value": "outside any trace"}},
                    ]
                }
            ]
        }
    ]
)


def as_otlp_json(message: Any, **options: Any) -> Any:
    def hex_ids(value: Any) -> Any:
        if isinstance(value, list):
            return [hex_ids(item) for item in value]
        if not isinstance(value, dict):
            return value
        ids = ("traceId", "spanId", "parentSpanId", "trace_id", "span_id", "parent_span_id")
        return {key: base64.b64decode(item).hex() if key in ids else hex_ids(item) for key, item in value.items()}

    return hex_ids(MessageToDict(message, **options))


def span_document(**fields: Any) -> Any:
    span = {"traceId": TRACE_ID, "spanId": SPAN_ID, **fields}
    return {"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}


def attribute(value: Any) -> dict[str, Any]:
    return {"attributes": [{"key": "k", "value": value}]}


def first_span(document: Any) -> Any:
    return traces_from_json(document).resource_spans[0].scope_spans[0].spans[0]


@pytest.mark.parametrize("snake", [False, True])
@pytest.mark.parametrize("enums_as_numbers", [False, True])
@pytest.mark.parametrize(("message", "read"), [(TRACES, traces_from_json), (LOGS, logs_from_json)])
def test_json_written_by_protobuf_reads_as_the_same_message(
    message: Any, read: Any, snake: bool, enums_as_numbers: bool
) -> None:
    written = as_otlp_json(message, preserving_proto_field_name=snake, use_integers_for_enums=enums_as_numbers)
    assert read(decode_json(json.dumps(written))) == message


def test_unknown_fields_and_nulls_are_ignored() -> None:
    span = first_span(span_document(name=None, future={"deep": [1]}, attributes=[{"key": "a", "value": None, "x": 1}]))
    assert span.name == ""
    assert span.attributes[0].key == "a"
    assert not span.attributes[0].HasField("value")
    assert traces_from_json({"somethingElse": 1}) == ExportTraceServiceRequest()


@pytest.mark.parametrize("value", [7, "7", 7.0])
def test_whole_numbers_may_be_strings_or_floats(value: Any) -> None:
    assert first_span(span_document(startTimeUnixNano=value)).start_time_unix_nano == 7


@pytest.mark.parametrize("value", ["//79", "__79", "//79==", "__79="])
def test_bytes_are_read_in_both_base64_alphabets(value: str) -> None:
    document = span_document(attributes=[{"key": "k", "value": {"bytesValue": value}}])
    assert first_span(document).attributes[0].value.bytes_value == b"\xff\xfe\xfd"


def test_an_unknown_enum_value_is_kept() -> None:
    assert first_span(span_document(kind=42)).kind == 42


def test_an_empty_parent_span_id_is_accepted() -> None:
    assert first_span(span_document(parentSpanId="")).parent_span_id == b""


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"traceId": "xyz"}, "traceId: not 32 hex digits"),
        ({"traceId": ""}, "traceId: not 32 hex digits"),
        ({"traceId": None}, "traceId: missing"),
        ({"traceId": 5}, "traceId: not 32 hex digits"),
        ({"traceId": "ASNFZ4mrze8BI0VniavN7w=="}, "traceId: not 32 hex digits"),
        ({"traceId": "0" * 32}, "traceId: all zeros"),
        ({"traceId": TRACE_ID[:30] + "  "}, "traceId: not 32 hex digits"),
        ({"traceId": " ".join(TRACE_ID)}, "traceId: not 32 hex digits"),
        ({"spanId": TRACE_ID}, "spanId: not 16 hex digits"),
        ({"spanId": "0" * 16}, "spanId: all zeros"),
        ({"parentSpanId": "abc"}, "parentSpanId: not 16 hex digits"),
        ({"links": [{}, {"traceId": "1"}]}, "links[1].traceId: not 32 hex digits"),
        ({"name": 5}, "name: not a string"),
        ({"name": "\ud800"}, "name: not valid Unicode"),
        ({"kind": "CLIENT"}, "kind: not a whole number"),
        ({"kind": 2**31}, f"kind: not between {-(2**31)} and {2**31 - 1}"),
        ({"startTimeUnixNano": -1}, f"startTimeUnixNano: not between 0 and {2**64 - 1}"),
        ({"startTimeUnixNano": 2.0**64}, f"startTimeUnixNano: not between 0 and {2**64 - 1}"),
        ({"startTimeUnixNano": 1.5}, "startTimeUnixNano: not a whole number"),
        ({"startTimeUnixNano": "1e9"}, "startTimeUnixNano: not a whole number"),
        ({"startTimeUnixNano": "9" * 5000}, "startTimeUnixNano: not a whole number"),
        ({"startTimeUnixNano": True}, "startTimeUnixNano: not a whole number"),
        ({"flags": 2**32}, f"flags: not between 0 and {2**32 - 1}"),
        ({"attributes": {"a": 1}}, "attributes: not an array"),
        ({"attributes": ["a"]}, "attributes[0]: not an object"),
        ({"attributes": [{"key": "k", "value": "v"}]}, "attributes[0].value: not an object"),
        (attribute({"intValue": "x"}), "attributes[0].value.intValue: not a whole number"),
        (attribute({"doubleValue": True}), "attributes[0].value.doubleValue: not a number"),
        (attribute({"doubleValue": "x"}), "attributes[0].value.doubleValue: not a number"),
        (attribute({"boolValue": 1}), "attributes[0].value.boolValue: not true or false"),
        (attribute({"bytesValue": "?"}), "attributes[0].value.bytesValue: not base64"),
        (attribute({"bytesValue": "A"}), "attributes[0].value.bytesValue: not base64"),
        (
            attribute({"array_value": {"values": [{}, {"kvlistValue": {"values": [1]}}]}}),
            "attributes[0].value.array_value.values[1].kvlistValue.values[0]: not an object",
        ),
    ],
)  # fmt: skip
def test_errors_name_the_place(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(BadOtlp) as raised:
        traces_from_json(span_document(**fields))
    assert str(raised.value) == f"resourceSpans[0].scopeSpans[0].spans[0].{message}"


@pytest.mark.parametrize("document", [None, 5, "x", [], [{}]])
def test_a_request_that_is_no_json_object_is_an_error(document: Any) -> None:
    with pytest.raises(BadOtlp, match="not an object"):
        traces_from_json(document)


def nested(depth: int) -> bytes:
    return b"[" * depth + b"]" * depth


class TestDecode:
    @pytest.mark.parametrize("depth", [1, 10, MAX_DEPTH])
    def test_nesting_up_to_the_limit_is_decoded(self, depth: int) -> None:
        assert decode_json(nested(depth)) == json.loads(nested(depth))

    @pytest.mark.parametrize("depth", [MAX_DEPTH + 1, 100, 1_000, 2_000, 100_000])
    @pytest.mark.parametrize("wrap", [b"%s", b'{"resourceSpans": [%s]}'])
    def test_nesting_beyond_the_limit_is_an_error(self, depth: int, wrap: bytes) -> None:
        with pytest.raises(BadOtlp):
            decode_json(wrap % nested(depth))

    def test_deep_nesting_without_closing_brackets_is_an_error(self) -> None:
        with pytest.raises(BadOtlp):
            decode_json(b'{"a":' * 100_000)

    @pytest.mark.parametrize("body", [b"", b"{", b"nul", b"\xff", b'"\xff"', b"NaN", b"[Infinity]", b"{'a': 1}"])
    def test_invalid_json_is_an_error(self, body: bytes) -> None:
        with pytest.raises(BadOtlp, match="not JSON"):
            decode_json(body)

    def test_values_at_the_nesting_limit_survive_a_protobuf_round_trip(self) -> None:
        value: dict[str, Any] = {"stringValue": "bottom"}
        document = span_document(attributes=[{"key": "k", "value": value}])
        while True:
            try:
                decode_json(json.dumps(document))
            except BadOtlp:
                break
            request = traces_from_json(document)
            assert ExportTraceServiceRequest.FromString(request.SerializeToString()) == request
            value = {"kvlistValue": {"values": [{"key": "k", "value": value}]}}
            document = span_document(attributes=[{"key": "k", "value": value}])


_KEYS = st.sampled_from(
    ["resourceSpans", "scopeSpans", "spans", "attributes", "key", "value", "stringValue", "intValue", "arrayValue",
     "kvlistValue", "values", "traceId", "spanId", "status", "code", "kind", "events", "resourceLogs", "scopeLogs",
     "logRecords", "body", "severityNumber", "bytesValue", "doubleValue"]
)  # fmt: skip
_SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.just(TRACE_ID)
_DOCUMENTS = st.recursive(
    _SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_KEYS, inner | st.lists(inner, max_size=2), max_size=3),
    max_leaves=20,
)


@given(_DOCUMENTS)
def test_any_document_is_read_or_refused(inner: Any) -> None:
    for document in (inner, {"resourceSpans": inner}, span_document(attributes=inner), {"resourceLogs": [inner]}):
        for read in (traces_from_json, logs_from_json):
            try:
                request = read(document)
            except BadOtlp:
                continue
            assert type(request).FromString(request.SerializeToString()).ByteSize() == request.ByteSize()


@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_refused(body: bytes) -> None:
    try:
        document = decode_json(body)
    except BadOtlp:
        return
    same = json.loads(body)  # raises if the standard library rejects the bytes
    assert document == same or isinstance(document, float), "only integers beyond 64 bits may be read as doubles"


@pytest.mark.skipif(not (SHARED / "captures").is_dir(), reason="the recorded traces are not part of the repository")
def test_recorded_traces_of_real_libraries_are_read() -> None:
    spans = records = 0
    for path in sorted((SHARED / "captures").rglob("*.otlp.jsonl")):
        for line in path.read_bytes().splitlines():
            document = decode_json(line)
            spans += sum(len(s.spans) for r in traces_from_json(document).resource_spans for s in r.scope_spans)
            records += sum(len(s.log_records) for r in logs_from_json(document).resource_logs for s in r.scope_logs)
    assert spans > 1_000
    assert records > 100


def test_half_a_surrogate_pair_becomes_a_replacement_character() -> None:
    body = rb'{"cut": "a \ud83d", "whole": "\ud83d\ude00", "written": "\\ud83d"}'
    assert decode_json(body) == {"cut": "a \ufffd", "whole": "\U0001f600", "written": "\\ud83d"}
    with pytest.raises(BadOtlp, match="not JSON"):
        decode_json(body + b"}")
