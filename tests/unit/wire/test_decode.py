"""Decoding of stored bytes, and content hash."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, KeyValue, KeyValueList
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from pandaeval_otel.model.raw import RawEvent, RawLink, RawSpan
from pandaeval_otel.wire.decode import MAX_SPAN_NAME_CHARS, MAX_VALUE_CHARS, decode_spans

Value = str | int | float | bool | bytes | list[Any] | dict[str, Any] | None


def encoded(value: Value) -> AnyValue:
    match value:
        case bool():
            return AnyValue(bool_value=value)
        case int():
            return AnyValue(int_value=value)
        case float():
            return AnyValue(double_value=value)
        case str():
            return AnyValue(string_value=value)
        case bytes():
            return AnyValue(bytes_value=value)
        case list():
            return AnyValue(array_value=ArrayValue(values=[encoded(item) for item in value]))
        case dict():
            return AnyValue(kvlist_value=KeyValueList(values=pairs(value)))
        case _:
            return AnyValue()


def pairs(values: dict[str, Any]) -> list[KeyValue]:
    return [KeyValue(key=key, value=encoded(value)) for key, value in values.items()]


def request(span: Span) -> bytes:
    export = ExportTraceServiceRequest()
    export.resource_spans.add().scope_spans.add().spans.append(span)
    return bytes(export.SerializeToString())


def decoded(span: Span) -> tuple[RawSpan, bytes]:
    [pair] = decode_spans(request(span))
    return pair


scalars = st.one_of(
    st.text(max_size=300),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False),
    st.booleans(),
    st.binary(max_size=20),
    st.none(),
)
values = st.recursive(scalars, lambda v: st.lists(v, max_size=3) | st.dictionaries(st.text(), v, max_size=3))


class TestValues:
    @given(st.dictionaries(st.text(), values, max_size=8))
    def test_are_decoded_unchanged(self, attributes: dict[str, Value]) -> None:
        span, _ = decoded(Span(attributes=pairs(attributes)))
        assert span.attributes == attributes

    @pytest.mark.parametrize("length", [0, 1, 127, 128, 129, 16_383, 16_384, 16_385, 2_097_151 // 4, MAX_VALUE_CHARS])
    @pytest.mark.parametrize("letter", ["a", "é", "中"])
    def test_strings_of_any_length_are_decoded_unchanged(self, length: int, letter: str) -> None:
        text = letter * (length // len(letter.encode()))
        span, _ = decoded(Span(attributes=pairs({"a": text})))
        assert span.attributes == {"a": text}

    def test_too_long_strings_are_cut_and_end_with_their_full_length(self) -> None:
        span, _ = decoded(Span(attributes=pairs({"a": "x" * (MAX_VALUE_CHARS + 5)})))
        assert span.attributes["a"] == f"{'x' * MAX_VALUE_CHARS}… [{MAX_VALUE_CHARS + 5} characters]"

    def test_the_last_of_several_values_of_a_key_wins(self) -> None:
        span, _ = decoded(Span(attributes=[*pairs({"a": "first"}), *pairs({"a": "last"})]))
        assert span.attributes == {"a": "last"}

    def test_the_last_of_two_types_in_a_value_wins(self) -> None:
        both = AnyValue(string_value="text").SerializeToString() + AnyValue(int_value=7).SerializeToString()
        raw = b"\x0a\x01a\x12" + bytes((len(both),)) + both
        span = b"\x4a" + bytes((len(raw),)) + raw
        scope = b"\x12" + bytes((len(span),)) + span
        resource = b"\x12" + bytes((len(scope),)) + scope
        [(found, _)] = decode_spans(b"\x0a" + bytes((len(resource),)) + resource)
        assert found.attributes == {"a": 7}

    def test_all_other_fields_of_a_span_are_decoded(self) -> None:
        span, _ = decoded(
            Span(
                trace_id=bytes(range(16)),
                span_id=bytes(range(8)),
                parent_span_id=b"\x01" * 8,
                name="n",
                kind=Span.SpanKind.SPAN_KIND_CLIENT,
                start_time_unix_nano=1,
                end_time_unix_nano=2,
                status=Status(code=Status.StatusCode.STATUS_CODE_ERROR, message="no"),
                events=[Span.Event(name="e", time_unix_nano=3, attributes=pairs({"k": "v"}))],
                links=[Span.Link(trace_id=b"\x02" * 16, span_id=b"\x03" * 8)],
                flags=0x301,
                dropped_attributes_count=4,
            )
        )
        assert span.trace_id == "000102030405060708090a0b0c0d0e0f"
        assert (span.span_id, span.parent_id) == ("0001020304050607", "01" * 8)
        assert (span.name, span.kind, span.start_ns, span.end_ns) == ("n", 3, 1, 2)
        assert (span.status_code, span.status_message) == (2, "no")
        assert span.events == (RawEvent("e", 3, {"k": "v"}),)
        assert span.links == (RawLink("02" * 16, "03" * 8),)
        assert (span.flags, span.dropped_attributes) == (0x301, 4)

    def test_a_parent_id_of_zeros_means_no_parent(self) -> None:
        assert decoded(Span(parent_span_id=bytes(8)))[0].parent_id == ""


class TestHash:
    base = Span(span_id=b"12345678", name="n", attributes=pairs({"a": 1, "b": ["x", 2.5]}), dropped_links_count=1)

    def changed(self, **fields: Any) -> bytes:
        span = Span()
        span.CopyFrom(self.base)
        span.MergeFrom(Span(**fields))
        return decoded(span)[1]

    @pytest.mark.parametrize("fields", [{"flags": 1}, {"flags": 0x300}, {"trace_state": "a=b"}])
    def test_ignores_flags_and_trace_state(self, fields: dict[str, Any]) -> None:
        assert self.changed(**fields) == decoded(self.base)[1]

    def test_does_not_change_with_the_order_of_attributes(self) -> None:
        turned = Span()
        turned.CopyFrom(self.base)
        del turned.attributes[:]
        turned.attributes.extend(reversed(self.base.attributes))
        assert decoded(turned)[1] == decoded(self.base)[1]

    @pytest.mark.parametrize(
        "fields",
        [
            {"name": "other"},
            {"kind": 2},
            {"span_id": b"87654321"},
            {"parent_span_id": b"12345678"},
            {"start_time_unix_nano": 1},
            {"end_time_unix_nano": 1},
            {"attributes": pairs({"c": ""})},
            {"attributes": pairs({"a": 2})},
            {"events": [Span.Event(name="e")]},
            {"links": [Span.Link(span_id=b"12345678")]},
            {"status": Status(code=Status.StatusCode.STATUS_CODE_OK)},
            {"dropped_attributes_count": 1},
            {"dropped_events_count": 1},
            {"dropped_links_count": 2},
        ],
    )
    def test_changes_if_the_content_of_the_span_changes(self, fields: dict[str, Any]) -> None:
        assert self.changed(**fields) != decoded(self.base)[1]


def test_too_long_names_and_status_messages_are_cut() -> None:
    request = ExportTraceServiceRequest()
    block = request.resource_spans.add().scope_spans.add()
    block.scope.name = "s" * 5_000_000
    span = block.spans.add(trace_id=b"t" * 16, span_id=b"s" * 8, name="n" * 5_000_000)
    span.events.add(name="e" * 5_000_000)
    span.status.message = "m" * 5_000_000
    [(raw, _)] = decode_spans(request.SerializeToString())
    assert len(raw.name) == len(raw.events[0].name) == len(raw.scope.name) == MAX_SPAN_NAME_CHARS
    assert len(raw.status_message) == MAX_VALUE_CHARS
