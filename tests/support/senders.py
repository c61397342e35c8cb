"""OTLP senders that retry the same bytes, as an SDK does."""

from __future__ import annotations

import base64
import gzip
import http.client
import json
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import grpc
from google.protobuf.json_format import MessageToDict
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest, ExportLogsServiceResponse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

from pandaeval_otel._proto.trace_service_pb2 import (
    CloseReason,
    CompletedTrace,
    SubmitTracesRequest,
    SubmitTracesResponse,
)

TIMEOUT_S = 15.0
Request = ExportTraceServiceRequest | ExportLogsServiceRequest
_RETRIED_HTTP = {408, 429, 502, 503, 504}
_RETRIED_GRPC = {
    grpc.StatusCode.CANCELLED,
    grpc.StatusCode.DEADLINE_EXCEEDED,
    grpc.StatusCode.RESOURCE_EXHAUSTED,
    grpc.StatusCode.ABORTED,
    grpc.StatusCode.OUT_OF_RANGE,
    grpc.StatusCode.UNAVAILABLE,
    grpc.StatusCode.DATA_LOSS,
}


@dataclass(frozen=True, slots=True)
class Answer:
    """The outcome of an attempt. ``refused``: reason against a retry."""

    acknowledged: bool = False
    rejected: int = 0
    message: str = ""
    refused: str = ""


class SpanSender(Protocol):
    """A receiver's client. Not thread-safe."""

    def send(self, request: Request) -> Answer: ...

    def close(self) -> None: ...


class GrpcSender:
    """OTLP/gRPC; TLS with the CA certificate ``authority``."""

    def __init__(self, target: str, authority: Path | None = None) -> None:
        brisk = [(f"grpc.{name}_reconnect_backoff_ms", ms) for name, ms in (("initial", 50), ("min", 50), ("max", 200))]
        options = [*brisk, ("grpc.use_local_subchannel_pool", 1)]
        if authority is None:
            self._channel = grpc.insecure_channel(target, options=options)
        else:
            credentials = grpc.ssl_channel_credentials(authority.read_bytes())
            self._channel = grpc.secure_channel(target, credentials, options=options)

    def send(self, request: Request) -> Answer:
        service, response = _service(request)
        answer = self._call(f"/opentelemetry.proto.collector.{service}/Export", request, response)
        return answer if isinstance(answer, Answer) else _answered(answer)

    def close(self) -> None:
        self._channel.close()

    def _call(self, method: str, request: Any, response: Any) -> Any:
        call = self._channel.unary_unary(
            method,
            request_serializer=lambda message: message.SerializeToString(),
            response_deserializer=response.FromString,
        )
        try:
            return call(request, timeout=TIMEOUT_S)
        except grpc.RpcError as error:
            if error.code() in _RETRIED_GRPC:
                return Answer(message=error.details() or "")
            return Answer(refused=f"{error.code()}: {error.details()}")


class SubmitSender(GrpcSender):
    """The span processor's receiver; complete with the root."""

    def send(self, request: Request) -> Answer:
        assert isinstance(request, ExportTraceServiceRequest), "log records have to come with their spans"
        spans = [span for block in request.resource_spans for scope in block.scope_spans for span in scope.spans]
        rooted = any(not span.parent_span_id for span in spans)
        trace = CompletedTrace(
            trace_id=spans[0].trace_id,
            spans=request.SerializeToString(),
            reason=CloseReason.CLOSE_REASON_ROOT_ENDED if rooted else CloseReason.CLOSE_REASON_IDLE,
            fragment=not rooted,
        )
        submission = SubmitTracesRequest(traces=[trace])
        answer = self._call("/pandaeval.v1.TraceService/SubmitTraces", submission, SubmitTracesResponse)
        if isinstance(answer, Answer):
            return answer
        return Answer(True, len(spans) * len(answer.rejected), "; ".join(each.reason for each in answer.rejected))


class HttpSender:
    """OTLP/HTTP as protobuf, or gzipped JSON with ``as_json``; TLS with ``authority``."""

    def __init__(self, address: str, as_json: bool = False, authority: Path | None = None) -> None:
        host = address.removeprefix("http://")
        if authority is None:
            self._connection = http.client.HTTPConnection(host, timeout=TIMEOUT_S)
        else:
            context = ssl.create_default_context(cafile=str(authority))
            self._connection = http.client.HTTPSConnection(host, timeout=TIMEOUT_S, context=context)
        self._json = as_json

    def send(self, request: Request) -> Answer:
        path = "/v1/traces" if isinstance(request, ExportTraceServiceRequest) else "/v1/logs"
        headers = {"content-type": "application/x-protobuf"}
        body = request.SerializeToString()
        if self._json:
            headers = {"content-type": "application/json", "content-encoding": "gzip"}
            body = gzip.compress(json.dumps(to_json(request)).encode(), 1)
        try:
            self._connection.request("POST", path, body, headers)
            response = self._connection.getresponse()
            content = response.read()
        except (OSError, http.client.HTTPException) as error:
            self._connection.close()
            return Answer(message=repr(error))
        if response.status in _RETRIED_HTTP:
            return Answer(message=content.decode(errors="replace"))
        if response.status != 200:
            return Answer(refused=f"HTTP {response.status}: {content!r}")
        if self._json:
            partial = json.loads(content or b"{}").get("partialSuccess", {})
            rejected = partial.get("rejectedSpans") or partial.get("rejectedLogRecords") or 0
            return Answer(True, int(rejected), partial.get("errorMessage", ""))
        return _answered(_service(request)[1].FromString(content))

    def close(self) -> None:
        self._connection.close()


def to_json(request: Request) -> dict[str, Any]:
    document: dict[str, Any] = MessageToDict(request, use_integers_for_enums=True)
    return {key: _with_hex_ids(value) for key, value in document.items()}


def _with_hex_ids(value: Any) -> Any:
    if isinstance(value, list):
        return [_with_hex_ids(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        key: base64.b64decode(held).hex() if key in ("traceId", "spanId", "parentSpanId") else _with_hex_ids(held)
        for key, held in value.items()
    }


def _service(request: Request) -> tuple[str, Any]:
    if isinstance(request, ExportTraceServiceRequest):
        return "trace.v1.TraceService", ExportTraceServiceResponse
    return "logs.v1.LogsService", ExportLogsServiceResponse


def _answered(response: Any) -> Answer:
    partial = response.partial_success
    rejected = getattr(partial, "rejected_spans", 0) or getattr(partial, "rejected_log_records", 0)
    return Answer(True, rejected, partial.error_message)
