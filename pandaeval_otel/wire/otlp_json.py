"""Reads OTLP/JSON documents as OTLP protobuf messages.

The format is protobuf's JSON mapping with these exceptions (OTLP specification, "JSON Protobuf Encoding"): ids are hex,
not base64; unknown fields are ignored; enums are numbers. This reader also accepts names in snake_case and enums by
name. ``google.protobuf.json_format`` cannot be used: it expects base64 ids, and it is slower.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from typing import Any

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import (
    AnyValue,
    ArrayValue,
    InstrumentationScope,
    KeyValue,
    KeyValueList,
)
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord, ResourceLogs, ScopeLogs, SeverityNumber
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span, Status

from pandaeval_otel.wire._json_fields import (
    BadOtlp,
    base64_bytes,
    enum,
    flag,
    hex_id,
    integer,
    many,
    number,
    record,
    text,
)

__all__ = ["MAX_DEPTH", "BadOtlp", "decode_json", "logs_from_json", "traces_from_json"]

MAX_DEPTH = 64
"""Most nested objects and arrays in one document. Protobuf reads at most 100 nested messages, and a value in an
attribute takes three messages for four JSON levels."""


def decode_json(body: bytes | str) -> Any:
    """Returns the JSON document in ``body``. Raises :class:`BadOtlp` if it is none or nests deeper than
    ``MAX_DEPTH``."""
    try:
        document = _loads(body)
    except RecursionError:
        raise BadOtlp(f"nested deeper than {MAX_DEPTH} levels") from None
    except ValueError as error:
        raise BadOtlp(f"not JSON: {error}") from None
    level = [document] if isinstance(document, dict | list) else []
    for _ in range(MAX_DEPTH):
        level = [
            child
            for parent in level
            for child in (parent.values() if type(parent) is dict else parent)
            if type(child) is dict or type(child) is list
        ]
        if not level:
            return document
    raise BadOtlp(f"nested deeper than {MAX_DEPTH} levels")


def traces_from_json(document: Any) -> ExportTraceServiceRequest:
    """Reads an OTLP/JSON trace request (``{"resourceSpans": [...]}``) from the result of :func:`decode_json`. Raises
    :class:`BadOtlp`; one bad span makes the whole request bad."""
    return ExportTraceServiceRequest(**_TRACES(document))


def logs_from_json(document: Any) -> ExportLogsServiceRequest:
    """Reads an OTLP/JSON logs request (``{"resourceLogs": [...]}``) likewise."""
    return ExportLogsServiceRequest(**_LOGS(document))


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON value")


def _loader() -> Callable[[bytes | str], Any]:
    try:
        from orjson import loads
    except ImportError:  # an application need not have it
        return functools.partial(json.loads, parse_constant=_no_constant)
    return loads


_loads = _loader()


def _value(value: Any) -> Any:
    return _ANY_VALUE(value)  # values nest: the reader of one is part of itself


_U32, _U64, _I64 = integer(0, 2**32 - 1), integer(0, 2**64 - 1), integer(-(2**63), 2**63 - 1)

_ATTRIBUTES = many(record(KeyValue, {"key": text, "value": _value}))
_ANY_VALUE = record(
    AnyValue,
    {
        "string_value": text,
        "bool_value": flag,
        "int_value": _I64,
        "double_value": number,
        "array_value": record(ArrayValue, {"values": many(_value)}),
        "kvlist_value": record(KeyValueList, {"values": _ATTRIBUTES}),
        "bytes_value": base64_bytes,
    },
)
_WITH_ATTRIBUTES = {"attributes": _ATTRIBUTES, "dropped_attributes_count": _U32}
_RESOURCE = record(Resource, _WITH_ATTRIBUTES)
_SCOPE = record(InstrumentationScope, {"name": text, "version": text, **_WITH_ATTRIBUTES})

_EVENT = record(Span.Event, {"time_unix_nano": _U64, "name": text, **_WITH_ATTRIBUTES})
_LINK = record(
    Span.Link,
    {
        "trace_id": hex_id(32, required=False),
        "span_id": hex_id(16, required=False),
        "trace_state": text,
        "flags": _U32,
        **_WITH_ATTRIBUTES,
    },
)
_SPAN = record(
    Span,
    {
        "trace_id": hex_id(32, required=True),
        "span_id": hex_id(16, required=True),
        "trace_state": text,
        "parent_span_id": hex_id(16, required=False),
        "flags": _U32,
        "name": text,
        "kind": enum(Span.SpanKind),
        "start_time_unix_nano": _U64,
        "end_time_unix_nano": _U64,
        "events": many(_EVENT),
        "dropped_events_count": _U32,
        "links": many(_LINK),
        "dropped_links_count": _U32,
        "status": record(Status, {"message": text, "code": enum(Status.StatusCode)}),
        **_WITH_ATTRIBUTES,
    },
    required=("trace_id", "span_id"),
)
_SCOPE_SPANS = record(ScopeSpans, {"scope": _SCOPE, "spans": many(_SPAN), "schema_url": text})
_RESOURCE_SPANS = record(ResourceSpans, {"resource": _RESOURCE, "scope_spans": many(_SCOPE_SPANS), "schema_url": text})
_TRACES = record(ExportTraceServiceRequest, {"resource_spans": many(_RESOURCE_SPANS)})

_LOG = record(
    LogRecord,
    {
        "time_unix_nano": _U64,
        "observed_time_unix_nano": _U64,
        "severity_number": enum(SeverityNumber),
        "severity_text": text,
        "body": _value,
        "flags": _U32,
        "trace_id": hex_id(32, required=False),
        "span_id": hex_id(16, required=False),
        "event_name": text,
        **_WITH_ATTRIBUTES,
    },
)
_SCOPE_LOGS = record(ScopeLogs, {"scope": _SCOPE, "log_records": many(_LOG), "schema_url": text})
_RESOURCE_LOGS = record(ResourceLogs, {"resource": _RESOURCE, "scope_logs": many(_SCOPE_LOGS), "schema_url": text})
_LOGS = record(ExportLogsServiceRequest, {"resource_logs": many(_RESOURCE_LOGS)})
