"""Stored chunks to raw spans and log records, attributes included: done once, when a trace is due."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from pandaeval_otel.raw import RawEvent, RawLink, RawLog, RawSpan, Resource, Scope
from pandaeval_otel.wire import content_hash

MAX_VALUE_CHARS = 1 << 20
"""Longer strings are cut here, with the length that they had: nothing that we compute needs more."""


def decode_spans(chunk: bytes) -> Iterator[tuple[RawSpan, bytes]]:
    """Each span of an OTLP trace request, with the hash of its content."""
    for resource_spans in ExportTraceServiceRequest.FromString(chunk).resource_spans:
        resource = Resource(attributes(resource_spans.resource.attributes))
        for scope_spans in resource_spans.scope_spans:
            scope = Scope(scope_spans.scope.name, scope_spans.scope.version)
            for span in scope_spans.spans:
                yield _span(span, resource, scope), content_hash(span)


def decode_logs(chunk: bytes) -> Iterator[tuple[RawLog, bytes]]:
    """Each log record of an OTLP logs request, with the hash of its content."""
    for resource_logs in ExportLogsServiceRequest.FromString(chunk).resource_logs:
        resource = Resource(attributes(resource_logs.resource.attributes))
        for scope_logs in resource_logs.scope_logs:
            scope = Scope(scope_logs.scope.name, scope_logs.scope.version)
            for record in scope_logs.log_records:
                yield _log(record, resource, scope), content_hash(record)


def _span(span: Any, resource: Resource, scope: Scope) -> RawSpan:
    parent = span.parent_span_id
    return RawSpan(
        trace_id=span.trace_id.hex(),
        span_id=span.span_id.hex(),
        parent_id=parent.hex() if any(parent) else "",
        name=span.name,
        kind=span.kind,
        start_ns=span.start_time_unix_nano,
        end_ns=span.end_time_unix_nano,
        status_code=span.status.code,
        status_message=span.status.message,
        attributes=attributes(span.attributes),
        events=tuple(RawEvent(event.name, event.time_unix_nano, attributes(event.attributes)) for event in span.events),
        links=tuple(RawLink(link.trace_id.hex(), link.span_id.hex()) for link in span.links),
        resource=resource,
        scope=scope,
        flags=span.flags,
        dropped_attributes=span.dropped_attributes_count,
    )


def _log(record: Any, resource: Resource, scope: Scope) -> RawLog:
    decoded = attributes(record.attributes)
    return RawLog(
        trace_id=record.trace_id.hex(),
        span_id=record.span_id.hex() if any(record.span_id) else "",
        event_name=record.event_name or str(decoded.get("event.name") or ""),
        time_ns=record.time_unix_nano or record.observed_time_unix_nano,
        body=value(record.body),
        attributes=decoded,
        severity=record.severity_number,
        resource=resource,
        scope=scope,
    )


def attributes(pairs: Iterable[Any]) -> dict[str, Any]:
    """OTLP key-value pairs as a dict; of a key that stands twice the last value wins."""
    return {pair.key: value(pair.value) for pair in pairs}


def value(any_value: Any) -> Any:
    """An OTLP ``AnyValue`` as a Python value; ``None`` when it is unset."""
    kind = any_value.WhichOneof("value")
    if kind == "string_value":
        text = any_value.string_value
        return text if len(text) <= MAX_VALUE_CHARS else f"{text[:MAX_VALUE_CHARS]}… [{len(text)} characters]"
    if kind == "array_value":
        return [value(item) for item in any_value.array_value.values]
    if kind == "kvlist_value":
        return attributes(any_value.kvlist_value.values)
    return None if kind is None else getattr(any_value, kind)
