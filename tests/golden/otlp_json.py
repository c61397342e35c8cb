"""Strict readers of captures."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any

from google.protobuf.json_format import ParseDict
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import KeyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.proto.trace.v1.trace_pb2 import Span

ID_FIELDS = {"traceId", "spanId", "parentSpanId"}
Request = ExportTraceServiceRequest | ExportLogsServiceRequest


def requests(text: str) -> list[Request]:
    """Yield requests; reject unknown fields, types and IDs."""
    return [_request(json.loads(line)) for line in text.splitlines()]


def _request(line: dict[str, Any]) -> Request:
    traces = "resourceSpans" in line
    return ParseDict(_with_base64_ids(line), ExportTraceServiceRequest() if traces else ExportLogsServiceRequest())


def _with_base64_ids(value: Any) -> Any:
    if isinstance(value, list):
        return [_with_base64_ids(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        k: base64.b64encode(bytes.fromhex(v)).decode() if k in ID_FIELDS else _with_base64_ids(v)
        for k, v in value.items()
    }


def spans(given: list[Request]) -> list[Span]:
    traces = [r for r in given if isinstance(r, ExportTraceServiceRequest)]
    return [span for r in traces for block in r.resource_spans for scope in block.scope_spans for span in scope.spans]


def log_records(given: list[Request]) -> list[LogRecord]:
    logs = [r for r in given if isinstance(r, ExportLogsServiceRequest)]
    return [x for r in logs for block in r.resource_logs for scope in block.scope_logs for x in scope.log_records]


def resource_attributes(given: list[Request]) -> Iterator[KeyValue]:
    for request in given:
        blocks = request.resource_spans if isinstance(request, ExportTraceServiceRequest) else request.resource_logs
        for block in blocks:
            yield from block.resource.attributes


def attribute(span: Span, key: str) -> str | None:
    return next((a.value.string_value for a in span.attributes if a.key == key), None)
