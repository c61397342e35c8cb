"""The two kinds of OTLP request, and where they differ: names, storing, reading JSON, answering."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from google.protobuf.message import Message
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsPartialSuccess, ExportLogsServiceResponse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTracePartialSuccess,
    ExportTraceServiceResponse,
)

from pandaeval_collector.receivers._protocol import Accepted, Ingest
from pandaeval_otel.wire import weight
from pandaeval_otel.wire.otlp_json import logs_from_json, traces_from_json
from pandaeval_otel.wire.weight import RequestKind


@dataclass(frozen=True, slots=True)
class Signal:
    """``kind``: what a request consists of. ``store`` hands a protobuf request, and whether it is large, to an ingest,
    ``from_json`` makes that request from an OTLP/JSON document, ``respond`` makes the protobuf response."""

    grpc_service: str
    http_path: str
    kind: RequestKind
    store: Callable[[Ingest, bytes, bool], Awaitable[Accepted]]
    from_json: Callable[[Mapping[str, Any]], Message]
    respond: Callable[[Accepted], Message]


def _trace_response(accepted: Accepted) -> Message:
    if not _is_partial(accepted):
        return ExportTraceServiceResponse()
    partial = ExportTracePartialSuccess(rejected_spans=accepted.rejected, error_message=accepted.message)
    return ExportTraceServiceResponse(partial_success=partial)


def _logs_response(accepted: Accepted) -> Message:
    if not _is_partial(accepted):
        return ExportLogsServiceResponse()
    partial = ExportLogsPartialSuccess(rejected_log_records=accepted.rejected, error_message=accepted.message)
    return ExportLogsServiceResponse(partial_success=partial)


def _is_partial(accepted: Accepted) -> bool:
    return bool(accepted.rejected or accepted.message)


TRACES = Signal(
    grpc_service="opentelemetry.proto.collector.trace.v1.TraceService",
    http_path="/v1/traces",
    kind=weight.TRACES,
    store=lambda ingest, request, large: ingest.traces(request, large),
    from_json=traces_from_json,
    respond=_trace_response,
)
LOGS = Signal(
    grpc_service="opentelemetry.proto.collector.logs.v1.LogsService",
    http_path="/v1/logs",
    kind=weight.LOGS,
    store=lambda ingest, request, large: ingest.logs(request, large),
    from_json=logs_from_json,
    respond=_logs_response,
)
SIGNALS = (TRACES, LOGS)
