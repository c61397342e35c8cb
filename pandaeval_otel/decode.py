"""Stored chunks to raw spans and log records, attributes included: done once, when a trace is due."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, InstrumentationScope
from opentelemetry.proto.resource.v1.resource_pb2 import Resource as ResourceMessage

from pandaeval_otel.raw import RawEvent, RawLink, RawLog, RawSpan, Resource, Scope
from pandaeval_otel.skeleton import Spans
from pandaeval_otel.wire import hash_and_strip

MAX_VALUE_CHARS = 1 << 20
"""Longer strings are cut here, with the length that they had: nothing that we compute needs more."""

_STRING = 0x0A
"""First byte of an ``AnyValue`` that is a string: field number and wire type."""
_SHORT = 40
"""Encoded values of at most so many bytes are remembered once decoded: most are names that every span repeats."""
_KNOWN: dict[bytes, str | int | float] = {}
_KNOWN_LIMIT = 4096


def decode_spans(chunk: bytes) -> list[tuple[RawSpan, bytes]]:
    """Each span of an OTLP trace request, with the hash of its content."""
    found: list[tuple[RawSpan, bytes]] = []
    ids: dict[bytes, str] = {}
    for resourced in Spans.FromString(chunk).resourced:
        resource = _resource(resourced.resource)
        for scoped in resourced.scoped:
            scope = _scope(scoped.scope)
            for span in scoped.spans:
                raw = _span(span, resource, scope, ids)
                found.append((raw, hash_and_strip(span)))
    return found


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


def _span(span: Any, resource: Resource, scope: Scope, ids: dict[bytes, str]) -> RawSpan:
    """``ids``: hex of the ids that neighbours share, the trace's and their parent's."""
    trace, parent = span.trace_id, span.parent_span_id
    trace_id, parent_id = ids.get(trace), ids.get(parent)
    if trace_id is None:
        trace_id = ids[trace] = trace.hex()
    if parent_id is None:
        parent_id = ids[parent] = parent.hex() if parent.strip(b"\0") else ""
    code, message = 0, ""
    if span.HasField("status"):
        status = span.status
        code, message = status.code, status.message
    events, links = span.events, span.links
    # By position, in the order of the fields: as keywords they would take several times as long.
    return RawSpan(
        trace_id,
        span.span_id.hex(),
        parent_id,
        span.name,
        span.kind,
        span.start_time_unix_nano,
        span.end_time_unix_nano,
        code,
        message,
        _values(span.attributes),
        tuple([RawEvent(e.name, e.time_unix_nano, _values(e.attributes)) for e in events]) if events else (),
        tuple([RawLink(link.trace_id.hex(), link.span_id.hex()) for link in links]) if links else (),
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
        if len(data) <= _SHORT:
            found = known(data)
            decoded[key] = _short(data) if found is None else found
        elif data[0] == _STRING and data[1] >= 0x80 > data[2] and len(data) == (data[1] & 0x7F | data[2] << 7) + 3:
            # One string and nothing else, as nearly all are: its length in two bytes (a varint), then itself.
            decoded[key] = data[3:].decode()
        else:
            decoded[key] = _long(data)
    return decoded


def _short(data: bytes) -> Any:
    """One encoded value, remembered where it is a scalar."""
    if len(data) > 3 and data[0] == _STRING and len(data) == data[1] + 2:
        found: Any = data[2:].decode()
    else:
        found = value(AnyValue.FromString(data))
        if type(found) not in _SCALARS:
            return found
    if len(_KNOWN) >= _KNOWN_LIMIT:
        _KNOWN.clear()
    _KNOWN[data] = found
    return found


def _long(data: bytes) -> Any:
    """One encoded value; a string without a message where its length takes one byte, too."""
    if data[0] == _STRING and data[1] < 0x80 and len(data) == data[1] + 2:
        return data[2:].decode()
    return value(AnyValue.FromString(data))


_SCALARS = frozenset({str, int, float, bool})


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
