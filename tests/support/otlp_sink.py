"""A scripted OTLP sink over gRPC and HTTP."""

from __future__ import annotations

import asyncio
import gzip
from collections import defaultdict, deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import grpc
from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.duration_pb2 import Duration
from google.rpc.error_details_pb2 import RetryInfo
from google.rpc.status_pb2 import Status
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTracePartialSuccess,
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.common.v1.common_pb2 import InstrumentationScope, KeyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import Span
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from pandaeval_collector.receivers.bind import Address, Tls
from pandaeval_collector.receivers.otlp_grpc import _credentials
from pandaeval_collector.receivers.server import HttpServer
from pandaeval_otel.wire.skeleton import Request as Skeleton

SIGNALS = {
    "logs": ExportLogsServiceRequest,
    "traces": ExportTraceServiceRequest,
    "metrics": ExportMetricsServiceRequest,
}
_SERVICES = {
    "/opentelemetry.proto.collector.logs.v1.LogsService/Export": "logs",
    "/opentelemetry.proto.collector.trace.v1.TraceService/Export": "traces",
    "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export": "metrics",
}


@dataclass(frozen=True, slots=True)
class Answer:
    """A gRPC ``code`` and HTTP ``status``; default: accept. ``max_items``: applies above it; ``hang``: no answer."""

    code: grpc.StatusCode | None = None
    status: int = 200
    message: str = ""
    retry_after: float | None = None
    rejected: int = 0
    max_items: int = -1
    hang: bool = False


TAKEN = Answer()
UNAVAILABLE = Answer(grpc.StatusCode.UNAVAILABLE, 503)
UNIMPLEMENTED = Answer(grpc.StatusCode.UNIMPLEMENTED, 404)
INVALID = Answer(grpc.StatusCode.INVALID_ARGUMENT, 400, "no such thing")
HANG = Answer(hang=True)


def slow_down(seconds: float) -> Answer:
    """Request a retry after ``seconds``."""
    return Answer(grpc.StatusCode.RESOURCE_EXHAUSTED, 429, "slow down", seconds)


def too_large(max_items: int) -> Answer:
    """Reject requests with more items."""
    text = "Received message larger than max (9 vs. 8)"
    return Answer(grpc.StatusCode.RESOURCE_EXHAUSTED, 413, text, max_items=max_items)


class OtlpSink:
    """``requests``: accepted, by signal. ``seen``: all. ``answers``: next answers; ``always``: fixed answer."""

    def __init__(self) -> None:
        self.requests: dict[str, list[bytes]] = defaultdict(list)
        self.seen: dict[str, list[bytes]] = defaultdict(list)
        self.headers: list[dict[str, str]] = []
        self.answers: dict[str, deque[Answer]] = defaultdict(deque)
        self.always: dict[str, Answer] = {}
        self._grpc: grpc.aio.Server | None = None
        self._http: HttpServer | None = None

    async def listen(self, grpc_port: int = 0, http_port: int = 0, tls: Tls | None = None) -> tuple[int, int]:
        """Open both receivers; return their ports."""
        self._grpc = grpc.aio.server(options=[("grpc.so_reuseport", 0)])
        self._grpc.add_generic_rpc_handlers((_Handlers(self),))
        if tls is None:
            grpc_port = self._grpc.add_insecure_port(f"127.0.0.1:{grpc_port}")
        else:
            grpc_port = self._grpc.add_secure_port(f"127.0.0.1:{grpc_port}", _credentials(tls))
        assert grpc_port, "the port is taken"
        await self._grpc.start()
        app = Starlette(routes=[Route("/v1/{signal}", self._post, methods=["POST"])])
        self._http = HttpServer(app, Address("127.0.0.1", http_port), setting="sink", tls=tls)
        return grpc_port, (await self._http.start()).port

    async def hang_up(self) -> None:
        """Close both receivers."""
        if self._grpc is not None and self._http is not None:
            await self._grpc.stop(None)
            await self._http.stop(0.1)
            self._grpc = self._http = None

    # -- received requests ---------------------------------------------------------------------------------------

    def items(self, signal: str) -> list[bytes]:
        return [item for request in self.requests[signal] for item in items(request)]

    def logs(self) -> list[LogRecord]:
        return [LogRecord.FromString(item) for item in self.items("logs")]

    def spans(self) -> list[Span]:
        return [Span.FromString(item) for item in self.items("traces")]

    def metrics(self, name: str) -> list[Metric]:
        return [metric for item in self.items("metrics") if (metric := Metric.FromString(item)).name == name]

    def evaluations(self, signal: str) -> list[dict[str, Any]]:
        """Return the attributes of every result."""
        if signal == "logs":
            return [attributes(log.attributes) for log in self.logs()]
        return [attributes(event.attributes) for span in self.spans() for event in span.events]

    def speakers(self, signal: str) -> list[tuple[dict[str, Any], str]]:
        """Return resource and scope of every request."""
        found = []
        for request in self.requests[signal]:
            for resourced in Skeleton.FromString(request).resourced:
                resource = Resource.FromString(resourced.resource)
                scopes = {InstrumentationScope.FromString(scoped.scope).name for scoped in resourced.scoped}
                found.append((attributes(resource.attributes), ",".join(scopes)))
        return found

    def histories(self, name: str) -> dict[str, list[float]]:
        """Return a counter's values by attributes."""
        found: dict[str, list[float]] = defaultdict(list)
        for metric in self.metrics(name):
            for point in metric.sum.data_points:
                found[str(attributes(point.attributes))].append(point.as_double)
        return found

    def counted(self, name: str) -> float:
        """Return the sum of a counter's last values."""
        return sum(history[-1] for history in self.histories(name).values())

    # -- answers -------------------------------------------------------------------------------------------------

    async def take(self, signal: str, request: bytes) -> Answer:
        self.seen[signal].append(request)
        queue = self.answers[signal]
        answer = queue.popleft() if queue else self.always.get(signal, TAKEN)
        if answer.hang:
            await asyncio.sleep(3600)
        if len(items(request)) <= answer.max_items:
            answer = TAKEN
        if answer.code is None and answer.status == 200:
            self.requests[signal].append(request)
        return answer

    async def _post(self, request: Request) -> Response:
        assert request.headers["content-type"] == "application/x-protobuf"
        assert request.headers["content-encoding"] == "gzip"
        self.headers.append(dict(request.headers))
        answer = await self.take(request.path_params["signal"], gzip.decompress(await request.body()))
        headers = {} if answer.retry_after is None else {"retry-after": str(round(answer.retry_after))}
        return Response(_response(answer) if answer.status == 200 else b"", answer.status, headers)


class _Handlers(grpc.GenericRpcHandler):  # type: ignore[type-arg]  # generic in the stubs only
    def __init__(self, sink: OtlpSink) -> None:
        self._sink = sink

    def service(self, details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler[bytes, bytes] | None:
        signal = _SERVICES.get(details.method)
        if signal is None:
            return None

        async def export(request: bytes, context: grpc.aio.ServicerContext[bytes, bytes]) -> bytes:
            self._sink.headers.append({key: str(value) for key, value in context.invocation_metadata()})
            answer = await self._sink.take(signal, request)
            if answer.code is not None:
                await context.abort(answer.code, answer.message, _trailers(answer))
            return _response(answer)

        return grpc.unary_unary_rpc_method_handler(export)


def attributes(pairs: Iterable[KeyValue]) -> dict[str, Any]:
    found = {}
    for pair in pairs:
        kind = pair.value.WhichOneof("value")
        value = getattr(pair.value, kind)
        found[pair.key] = [item.string_value for item in value.values] if kind == "array_value" else value
    return found


def items(request: bytes) -> list[bytes]:
    return [
        item
        for resourced in Skeleton.FromString(request).resourced
        for scoped in resourced.scoped
        for item in scoped.items
    ]


def _response(answer: Answer) -> bytes:
    if not answer.rejected and not answer.message:
        return b""
    partial = ExportTracePartialSuccess(rejected_spans=answer.rejected, error_message=answer.message)
    return ExportTraceServiceResponse(partial_success=partial).SerializeToString()


def _trailers(answer: Answer) -> tuple[tuple[str, bytes], ...]:
    if answer.retry_after is None or answer.code is None:
        return ()
    delay = Duration()
    delay.FromNanoseconds(int(answer.retry_after * 1e9))
    detail = AnyMessage()
    detail.Pack(RetryInfo(retry_delay=delay))
    status = Status(code=answer.code.value[0], message=answer.message, details=[detail])
    return (("grpc-status-details-bin", status.SerializeToString()),)
