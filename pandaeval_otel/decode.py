"""Stored chunks to raw spans and log records, attributes included: done once, when a trace is due."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, InstrumentationScope
from opentelemetry.proto.resource.v1.resource_pb2 import Resource as ResourceMessage
from opentelemetry.proto.trace.v1.trace_pb2 import Status

from pandaeval_otel.raw import RawEvent, RawLink, RawLog, RawSpan, Resource, Scope
from pandaeval_otel.skeleton import Spans
from pandaeval_otel.wire import hash_and_strip

MAX_VALUE_CHARS = 1 << 20
"""Longer strings are cut here, with the length that they had: nothing that we compute needs more."""

_UNSET = Status()
_STRING = 0x0A
"""First byte of an ``AnyValue`` that is a string: field number and wire type."""
_SHORT = 40
"""Encoded values of at most so many bytes are remembered once decoded: most are names that every span repeats."""
_KNOWN: dict[bytes, str | int | float] = {}
_KNOWN_LIMIT = 4096


def decode_spans(chunk: bytes) -> Iterator[tuple[RawSpan, bytes]]:
    """Each span of an OTLP trace request, with the hash of its content."""
    for resourced in Spans.FromString(chunk).resourced:
        resource = _resource(resourced.resource)
        for scoped in resourced.scoped:
            scope = _scope(scoped.scope)
            for span in scoped.spans:
                yield _span(span, resource, scope), hash_and_strip(span)


@lru_cache(maxsize=64)  # spans of one process come with the same one, again and again
def _resource(encoded: bytes) -> Resource:
    return Resource(attributes(ResourceMessage.FromString(encoded).attributes))


@lru_cache(maxsize=256)
def _scope(encoded: bytes) -> Scope:
    message = InstrumentationScope.FromString(encoded)
    return Scope(message.name, message.version)


def decode_logs(chunk: bytes) -> Iterator[tuple[RawLog, bytes]]:
    """Each log record of an OTLP logs request, with the hash of its content."""
    for resource_logs in ExportLogsServiceRequest.FromString(chunk).resource_logs:
        resource = Resource(attributes(resource_logs.resource.attributes))
        for scope_logs in resource_logs.scope_logs:
            scope = Scope(scope_logs.scope.name, scope_logs.scope.version)
            for record in scope_logs.log_records:
                yield _log(record, resource, scope), hash_and_strip(record)


def _span(span: Any, resource: Resource, scope: Scope) -> RawSpan:
    parent = span.parent_span_id
    events, links = span.events, span.links
    status = span.status if span.HasField("status") else _UNSET
    # By position, in the order of the fields: as keywords they would take several times as long.
    return RawSpan(
        span.trace_id.hex(),
        span.span_id.hex(),
        parent.hex() if parent.strip(b"\0") else "",
        span.name,
        span.kind,
        span.start_time_unix_nano,
        span.end_time_unix_nano,
        status.code,
        status.message,
        _values(span.attributes),
        tuple(RawEvent(e.name, e.time_unix_nano, _values(e.attributes)) for e in events) if events else (),
        tuple(RawLink(link.trace_id.hex(), link.span_id.hex()) for link in links) if links else (),
        resource,
        scope,
        span.flags,
        span.dropped_attributes_count,
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


def _values(encoded: Mapping[str, bytes]) -> dict[str, Any]:
    """Attributes from a map of encoded values."""
    decoded: dict[str, Any] = {}
    known = _KNOWN.get
    for key in encoded:
        data = encoded[key]
        found = known(data) if len(data) <= _SHORT else None
        decoded[key] = _value(data) if found is None else found
    return decoded


def _value(data: bytes) -> Any:
    """One encoded value; a string, as nearly all are that were not seen before, without a message."""
    size = len(data)
    if size > 3 and data[0] == _STRING:
        # One string and nothing else: its length in one or two bytes (a varint), then itself.
        length = data[1]
        if length < 0x80:
            if size == length + 2:
                text = data[2:].decode()
                return _remembered(data, text) if size <= _SHORT else text
        elif data[2] < 0x80 and size == (length & 0x7F | data[2] << 7) + 3:
            return data[3:].decode()
    found = value(AnyValue.FromString(data))
    return _remembered(data, found) if size <= _SHORT and type(found) in _SCALARS else found


_SCALARS = frozenset({str, int, float, bool})


def _remembered(data: bytes, found: Any) -> Any:
    if len(_KNOWN) >= _KNOWN_LIMIT:
        _KNOWN.clear()
    _KNOWN[data] = found
    return found


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
