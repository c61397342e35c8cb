"""Truncated spans and skipped traces."""

from __future__ import annotations

from typing import Any

import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, KeyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from pandaeval_otel.normal.evidence import gather
from pandaeval_otel.normal.trace import build_trace
from pandaeval_otel.wire.bounds import (
    MAX_ATTRIBUTES,
    MAX_EVENT_ATTRIBUTES,
    MAX_EVENTS,
    MAX_FIELDS,
    MAX_ITEMS,
    MAX_LINKS,
    MAX_NESTED,
    MAX_OBJECTS,
    NOTE,
    SMALL,
    SPAN,
    Room,
    TooMuchError,
    cut,
)
from pandaeval_otel.wire.decode import decode_spans
from pandaeval_otel.wire.fields import fields
from pandaeval_otel.wire.fragments import MalformedOtlpError
from pandaeval_otel.wire.splitting import read_chunk

TRACE, ID = bytes(range(16)), b"spanspan"
EMPTY_EVENT, EMPTY_LINK = b"\x5a\x00", b"\x6a\x00"


def pairs(number: int, prefix: str = "k") -> list[KeyValue]:
    return [KeyValue(key=f"{prefix}{n}", value=AnyValue(int_value=n)) for n in range(number)]


def encoded(**fields: Any) -> bytes:
    span = Span(trace_id=TRACE, span_id=ID, name="invoke_agent x", start_time_unix_nano=1, **fields)
    return bytes(span.SerializeToString())


def request(*spans: bytes) -> bytes:
    export = ExportTraceServiceRequest()
    for span in spans:
        export.resource_spans.add().scope_spans.add().spans.add().MergeFromString(span)
    return bytes(export.SerializeToString())


def around(span: bytes) -> bytes:
    """Return a request with raw span bytes."""
    for tag in (0x12, 0x12, 0x0A):
        size, number = bytearray(), len(span)
        while number > 0x7F:
            size.append(number & 0x7F | 0x80)
            number >>= 7
        span = bytes((tag, *size, number)) + span
    return span


class TestASpan:
    @pytest.mark.parametrize("padding", [0, SMALL])
    @pytest.mark.parametrize(
        ("field", "given", "cap", "dropped"),
        [
            ("attributes", pairs(MAX_ATTRIBUTES + 3), MAX_ATTRIBUTES, "dropped_attributes_count"),
            ("events", [Span.Event(name=f"e{n}") for n in range(MAX_EVENTS + 3)], MAX_EVENTS, "dropped_events_count"),
            ("links", [Span.Link(span_id=ID)] * (MAX_LINKS + 3), MAX_LINKS, "dropped_links_count"),
        ],
    )
    def test_keeps_the_first_items_and_counts_the_dropped_items(
        self, field: str, given: list[Any], cap: int, dropped: str, padding: int
    ) -> None:
        name = {"trace_state": "x" * padding} if padding else {}
        whole = encoded(**{field: given, dropped: 4}, **name)
        kept = encoded(**{field: given[:cap], dropped: 7})
        [(span, digest)], [(expected, as_expected)] = decode_spans(request(whole)), decode_spans(request(kept))
        assert len(getattr(span, field)) == cap
        assert span == expected
        assert digest == as_expected
        assert span.dropped_attributes == (7 if field == "attributes" else 0)

    @pytest.mark.parametrize("padding", [0, SMALL])
    def test_at_the_limits_is_not_truncated(self, padding: int) -> None:
        whole = encoded(
            attributes=pairs(MAX_ATTRIBUTES), events=[Span.Event(name="e")] * MAX_EVENTS, trace_state="x" * padding
        )
        evidence = gather([(False, request(whole))])
        assert (len(evidence.spans[0].attributes), len(evidence.spans[0].events)) == (MAX_ATTRIBUTES, MAX_EVENTS)
        assert evidence.notes == ()

    def test_with_a_repeated_key_keeps_only_the_last_value(self) -> None:
        again = [KeyValue(key="k", value=AnyValue(string_value=f"{n % 10}" * 60)) for n in range(2_000)]
        evidence = gather([(False, request(encoded(attributes=again)))])
        assert evidence.spans[0].attributes == {"k": "9" * 60}
        assert (evidence.spans[0].dropped_attributes, evidence.notes) == (0, ())

    @pytest.mark.parametrize("repeated", [EMPTY_EVENT, EMPTY_LINK, EMPTY_EVENT + EMPTY_LINK, b"\xda\x00\x00"])
    def test_with_400000_empty_events_or_links_is_truncated_with_a_note(self, repeated: bytes) -> None:
        evidence = gather([(False, around(encoded() + repeated * 400_000))])
        [span] = evidence.spans
        assert len(span.events) <= MAX_EVENTS
        assert len(span.links) <= MAX_LINKS
        assert evidence.notes == (NOTE,)
        trace = build_trace(evidence)
        assert trace is not None
        assert NOTE in trace.notes

    def test_attributes_of_its_events_are_limited(self) -> None:
        event = Span.Event(name="e", attributes=pairs(MAX_ATTRIBUTES + 1))
        [span] = gather([(False, request(encoded(events=[event] * 200)))]).spans
        assert {len(each.attributes) for each in span.events} == {MAX_ATTRIBUTES}
        assert len(span.events) <= MAX_EVENT_ATTRIBUTES // MAX_ATTRIBUTES + 1

    def test_an_attribute_value_with_too_many_nested_items_is_left_out(self) -> None:
        inside = AnyValue(array_value=ArrayValue(values=[AnyValue(int_value=1)] * (MAX_NESTED + 1)))
        evidence = gather(
            [(False, request(encoded(attributes=[KeyValue(key="k", value=inside), *pairs(1)], trace_state="x")))]
        )
        [span] = evidence.spans
        assert "left out" in span.attributes["k"]
        assert span.attributes["k0"] == 0
        assert evidence.notes == (NOTE,)

    def test_a_long_text_value_is_kept_whole(self) -> None:
        text = "line\n" * 100_000
        value = KeyValue(key="k", value=AnyValue(string_value=text))
        [span] = gather([(False, request(encoded(attributes=[value])))]).spans
        assert span.attributes == {"k": text}


class TestALogRecord:
    def record(self, **fields: Any) -> bytes:
        export = ExportLogsServiceRequest()
        export.resource_logs.add().scope_logs.add().log_records.add().CopyFrom(
            LogRecord(trace_id=TRACE, event_name="e", **fields)
        )
        return bytes(export.SerializeToString())

    def test_keeps_the_first_attributes(self) -> None:
        [log] = gather([(True, self.record(attributes=pairs(MAX_ATTRIBUTES + 3)))]).logs
        assert list(log.attributes.items()) == [(f"k{n}", n) for n in range(MAX_ATTRIBUTES)]

    def test_a_body_with_too_many_nested_items_is_left_out(self) -> None:
        body = AnyValue(array_value=ArrayValue(values=[AnyValue(int_value=1)] * (MAX_NESTED + 1)))
        evidence = gather([(True, self.record(body=body, attributes=pairs(2)))])
        assert "left out" in evidence.logs[0].body
        assert evidence.notes == (NOTE,)


class TestATrace:
    def test_with_too_many_objects_is_not_decoded(self) -> None:
        number = MAX_OBJECTS // MAX_ATTRIBUTES + 2
        attributes = pairs(MAX_ATTRIBUTES)
        span = encoded(attributes=attributes)
        chunk = around(span)
        with pytest.raises(TooMuchError, match="750000"):
            gather([(False, chunk)] * number)

    def test_with_too_many_fields_is_not_decoded(self) -> None:
        with pytest.raises(TooMuchError, match="fields"):
            gather([(False, around(encoded() + (EMPTY_EVENT + EMPTY_LINK) * (MAX_FIELDS // 2 + 1)))])

    @pytest.mark.parametrize("logs", [False, True])
    def test_with_too_many_resources_is_not_decoded(self, logs: bool) -> None:
        chunk = around(encoded()) + b"\x0a\x00" * MAX_ITEMS
        with pytest.raises(TooMuchError, match="resources"):
            gather([(logs, chunk)])
        with pytest.raises(MalformedOtlpError):
            list(read_chunk(chunk, logs))

    def test_unknown_protobuf_groups_are_skipped(self) -> None:
        group = b"\xdb\x3e" + b"\x0a\x01x" + b"\x10\x05" + b"\x1b\x1c" + b"\x25abcd" + b"\x29abcdefgh" + b"\xdc\x3e"
        whole = encoded()
        assert cut(whole + group * SMALL, SPAN, Room()) == whole + group * SMALL
        assert [*fields(group + b"\x10\x01")][1][0] == 0x10
        [found] = gather([(False, around(whole + group * SMALL))]).spans
        assert found.span_id == ID.hex()

    @pytest.mark.parametrize("broken", [b"\x1b", b"\x1b\x0a\x7fx", b"\x1b\x0f", b"\x1c", b"\x1b\x25a"])
    def test_malformed_protobuf_groups_are_an_error(self, broken: bytes) -> None:
        with pytest.raises(ValueError, match=r"ends within|wire type"):
            [*fields(broken)]

    def test_read_chunk_reads_the_ids_of_a_span_with_400000_empty_events(self) -> None:
        [item] = read_chunk(around(encoded(parent_span_id=b"parent__", flags=0x300) + EMPTY_EVENT * 400_000), False)
        assert (item.id, item.parent, item.remote) == (ID, b"parent__", True)
