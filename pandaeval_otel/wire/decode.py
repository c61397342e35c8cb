"""Decodes stored chunks into raw spans and log records."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any

from opentelemetry.proto.common.v1.common_pb2 import AnyValue, InstrumentationScope
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.proto.resource.v1.resource_pb2 import Resource as ResourceMessage

from pandaeval_otel.model.raw import MAX_TIME, RawEvent, RawLink, RawLog, RawSpan, Resource, Scope
from pandaeval_otel.wire.bounds import (
    LOG,
    MAX_ATTRIBUTES,
    MAX_EVENTS,
    MAX_LINKS,
    RESOURCE,
    SCOPE,
    SMALL,
    SPAN,
    AboveCapError,
    Room,
    cut,
    inside,
    outline,
    within,
)
from pandaeval_otel.wire.skeleton import Fields, Spans
from pandaeval_otel.wire.splitting import hash_and_strip

MAX_VALUE_CHARS = 1 << 20
"""Longer strings are cut and end with their original length."""
MAX_SPAN_NAME_CHARS = 4096
"""Longer names of spans, events and scopes are cut, because many readers search them."""

_ROOMY = 2 * MAX_ATTRIBUTES
"""Messages up to this size in bytes cannot exceed a cap."""
_STRING = 0x0A
"""First byte of an ``AnyValue`` that is a string: field number and wire type."""
_SHORT = 40
"""Maximum bytes of a cached encoded value. Most are names that each span repeats."""
_KNOWN: dict[bytes, str | int | float] = {}
_KNOWN_LIMIT = 4096
_SCALARS = frozenset({str, int, float, bool})


def decode_spans(chunk: bytes, room: Room | None = None) -> list[tuple[RawSpan, bytes]]:
    """Decode spans of an OTLP trace request, with content hashes. ``room``: objects allowed.

    Raises :class:`pandaeval_otel.wire.bounds.TooMuchError`.
    """
    room = room or Room()
    if len(chunk) <= SMALL:
        left = room.left
        try:
            return _decode_small(chunk, room)
        except AboveCapError:
            room.left = left
    found: list[tuple[RawSpan, bytes]] = []
    ids: dict[bytes, str] = {}
    parse = Fields.FromString
    for resourced in outline(chunk).resourced:
        resource = _resource(resourced.resource, room)
        for scoped in resourced.scoped:
            scope = _scope(scoped.scope, room)
            for encoded in scoped.items:
                span = parse(within(encoded, SPAN, room))
                left = room.left
                try:
                    raw = _span(span, resource, scope, ids, room)
                except AboveCapError:
                    room.left = left
                    span = parse(cut(encoded, SPAN, room))
                    raw = _span(span, resource, scope, ids, room)
                found.append((raw, hash_and_strip(span)))
    return found


def _decode_small(chunk: bytes, room: Room) -> list[tuple[RawSpan, bytes]]:
    found: list[tuple[RawSpan, bytes]] = []
    ids: dict[bytes, str] = {}
    for resourced in Spans.FromString(chunk).resourced:
        resource = _resource(resourced.resource, room)
        for scoped in resourced.scoped:
            scope = _scope(scoped.scope, room)
            for span in scoped.spans:
                raw = _span(span, resource, scope, ids, room)
                found.append((raw, hash_and_strip(span)))
    return found


def _resource(encoded: bytes, room: Room) -> Resource:
    if len(encoded) <= _ROOMY:
        return _small_resource(encoded)
    return _any_resource(encoded, room)


def _scope(encoded: bytes, room: Room) -> Scope:
    if len(encoded) <= _ROOMY:
        return _small_scope(encoded)
    return _any_scope(encoded, room)


def _any_resource(encoded: bytes, room: Room) -> Resource:
    decoded = attributes(ResourceMessage.FromString(cut(encoded, RESOURCE, room)).attributes)
    room.take(len(decoded) + inside(decoded.values()))
    return Resource(decoded)


def _any_scope(encoded: bytes, room: Room) -> Scope:
    message = InstrumentationScope.FromString(cut(encoded, SCOPE, room))
    return Scope(message.name[:MAX_SPAN_NAME_CHARS], message.version[:MAX_SPAN_NAME_CHARS])


@lru_cache(maxsize=64)  # spans of a process repeat the same resources
def _small_resource(encoded: bytes) -> Resource:
    return _any_resource(encoded, Room())


@lru_cache(maxsize=256)
def _small_scope(encoded: bytes) -> Scope:
    return _any_scope(encoded, Room())


def decode_logs(chunk: bytes, room: Room) -> Iterator[tuple[RawLog, bytes]]:
    """Yield each log record with its content hash; ``room`` as in :func:`decode_spans`."""
    for resourced in outline(chunk).resourced:
        resource = _resource(resourced.resource, room)
        for scoped in resourced.scoped:
            scope = _scope(scoped.scope, room)
            for encoded in scoped.items:
                record = LogRecord.FromString(within(encoded, LOG, room))
                if len(record.attributes) > MAX_ATTRIBUTES:
                    record = LogRecord.FromString(cut(encoded, LOG, room))
                yield _log(record, resource, scope, room), hash_and_strip(record)


def _span(span: Any, resource: Resource, scope: Scope, ids: dict[bytes, str], room: Room) -> RawSpan:
    trace, parent = span.trace_id, span.parent_span_id
    trace_id, parent_id = ids.get(trace), ids.get(parent)
    if trace_id is None:
        trace_id = ids[trace] = trace.hex()
    if parent_id is None:
        parent_id = ids[parent] = parent.hex() if parent.strip(b"\0") else ""
    code, message = 0, ""
    if span.HasField("status"):
        status = span.status
        code, message = status.code, status.message[:MAX_VALUE_CHARS]
    events, links = span.events, span.links
    began, ended = span.start_time_unix_nano, span.end_time_unix_nano
    decoded = _values(span.attributes, room)
    objects = 1 + len(decoded)
    raw_events: tuple[RawEvent, ...] = ()
    pointed: tuple[RawLink, ...] = ()
    if events:
        objects += len(events)
        if len(events) > MAX_EVENTS:
            raise AboveCapError
        raw_events = tuple([_event(event, room) for event in events])
    if links:
        objects += len(links)
        if len(links) > MAX_LINKS:
            raise AboveCapError
        pointed = tuple([RawLink(link.trace_id.hex(), link.span_id.hex()) for link in links])
    if objects > MAX_ATTRIBUTES and len(decoded) > MAX_ATTRIBUTES:
        raise AboveCapError
    room.take(objects)
    # By position, in the order of the fields: as keywords they would take several times as long.
    return RawSpan(
        trace_id,
        span.span_id.hex(),
        parent_id,
        span.name[:MAX_SPAN_NAME_CHARS],
        span.kind,
        began if began < MAX_TIME else MAX_TIME,
        ended if ended < MAX_TIME else MAX_TIME,
        code,
        message,
        decoded,
        raw_events,
        pointed,
        resource,
        scope,
        span.flags,
        span.dropped_attributes_count,
    )


def _event(event: Any, room: Room) -> RawEvent:
    decoded = _values(event.attributes, room)
    if len(decoded) > MAX_ATTRIBUTES:
        raise AboveCapError
    room.take(len(decoded))
    return RawEvent(event.name[:MAX_SPAN_NAME_CHARS], min(event.time_unix_nano, MAX_TIME), decoded)


def _log(record: Any, resource: Resource, scope: Scope, room: Room) -> RawLog:
    decoded, body = attributes(record.attributes), value(record.body)
    room.take(1 + len(decoded) + inside((*decoded.values(), body)))
    return RawLog(
        trace_id=record.trace_id.hex(),
        span_id=record.span_id.hex() if any(record.span_id) else "",
        event_name=(record.event_name or str(decoded.get("event.name") or ""))[:MAX_SPAN_NAME_CHARS],
        time_ns=min(record.time_unix_nano or record.observed_time_unix_nano, MAX_TIME),
        body=body,
        attributes=decoded,
        severity=record.severity_number,
        resource=resource,
        scope=scope,
    )


def _values(encoded: Mapping[str, bytes], room: Room) -> dict[str, Any]:
    decoded: dict[str, Any] = {}
    known = _KNOWN.get
    for key in encoded:
        data = encoded[key]
        if len(data) <= _SHORT:
            found = known(data)
            decoded[key] = _short(data, room) if found is None else found
        elif data[0] == _STRING and data[1] >= 0x80 > data[2] and len(data) == (data[1] & 0x7F | data[2] << 7) + 3:
            # One string, as nearly all values are: its length in two bytes (a varint), then itself.
            decoded[key] = data[3:].decode()
        else:
            decoded[key] = _long(data, room)
    return decoded


def _short(data: bytes, room: Room) -> Any:
    if len(data) > 3 and data[0] == _STRING and len(data) == data[1] + 2:
        found: Any = data[2:].decode()
    else:
        found = value(AnyValue.FromString(data))
        if type(found) not in _SCALARS:
            room.take(inside((found,)))
            return found
    if len(_KNOWN) >= _KNOWN_LIMIT:
        _KNOWN.clear()
    _KNOWN[data] = found
    return found


def _long(data: bytes, room: Room) -> Any:
    if data[0] == _STRING and data[1] < 0x80 and len(data) == data[1] + 2:
        return data[2:].decode()
    found = value(AnyValue.FromString(data))
    if type(found) is not str:
        room.take(inside((found,)))
    return found


def attributes(pairs: Iterable[Any]) -> dict[str, Any]:
    """Return OTLP key-value pairs as a dict. The last value of a repeated key wins."""
    return {pair.key: value(pair.value) for pair in pairs}


def value(any_value: Any) -> Any:
    """Return an OTLP ``AnyValue`` as a Python value; ``None`` if unset."""
    kind = any_value.WhichOneof("value")
    if kind == "string_value":
        text = any_value.string_value
        if len(text) <= MAX_VALUE_CHARS:
            return text
        return f"{text[:MAX_VALUE_CHARS]}… [{len(text)} characters]"
    if kind == "array_value":
        return [value(item) for item in any_value.array_value.values]
    if kind == "kvlist_value":
        return attributes(any_value.kvlist_value.values)
    if kind is None:
        return None
    return getattr(any_value, kind)
