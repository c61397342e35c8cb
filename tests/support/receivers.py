"""Both receivers on free loopback ports, with a recording ingest."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable
from typing import Any

import grpc
import httpx
from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2_grpc import LogsServiceStub
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2_grpc import TraceServiceStub

from pandaeval_collector.base.telemetry import Telemetry
from pandaeval_collector.receivers import Accepted, Malformed
from pandaeval_collector.receivers._signals import DoorSettings
from pandaeval_collector.receivers.admission import Admission
from pandaeval_collector.receivers.bind import Address, Tls
from pandaeval_collector.receivers.otlp_grpc import OtlpGrpcServer
from pandaeval_collector.receivers.otlp_http import otlp_http_app
from pandaeval_collector.receivers.server import HttpServer

LOOPBACK = Address("127.0.0.1", 0)


class RecordingIngest:
    """Keeps every stored request. ``answers``: next answers or errors; ``gate``: delays storage."""

    def __init__(self, *answers: Accepted | Exception) -> None:
        self.answers = deque(answers)
        self.stored: list[ExportTraceServiceRequest | ExportLogsServiceRequest] = []
        self.calls = 0
        self.gate: asyncio.Event | None = None

    async def traces(self, request: bytes, large: bool = False) -> Accepted:
        return await self._take(ExportTraceServiceRequest, request)

    async def logs(self, request: bytes, large: bool = False) -> Accepted:
        return await self._take(ExportLogsServiceRequest, request)

    async def _take(self, message: Any, request: bytes) -> Accepted:
        self.calls += 1
        if self.gate is not None:
            await self.gate.wait()
        answer = self.answers.popleft() if self.answers else Accepted()
        if isinstance(answer, Exception):
            raise answer
        try:
            self.stored.append(message.FromString(request))
        except DecodeError:
            raise Malformed(f"not an {message.DESCRIPTOR.name}") from None
        return answer


class CountingTelemetry(Telemetry):
    """Counts ``(door, outcome)``."""

    def __init__(self) -> None:
        super().__init__()
        self.requests: Counter[tuple[str, str]] = Counter()

    def request(self, door: str, outcome: str) -> None:
        self.requests[door, outcome] += 1


def settings(admission: Admission | None, options: dict[str, Any]) -> DoorSettings:
    names = ("max_bytes", "max_items", "token", "telemetry", "reading")
    given = {name: options.pop(name) for name in names if name in options}
    return DoorSettings(admission or Admission(256 << 20), **given)


@contextlib.asynccontextmanager
async def grpc_receiver(
    ingest: RecordingIngest, *, admission: Admission | None = None, address: Address = LOOPBACK, **options: Any
) -> AsyncIterator[Address]:
    """Open a gRPC receiver and yield its address. ``options``: receiver and :class:`DoorSettings`."""
    server = OtlpGrpcServer(ingest, settings(admission, options), address, **options)
    where = await server.start()
    try:
        yield where
    finally:
        await server.stop(1.0)


@contextlib.asynccontextmanager
async def http_receiver(
    ingest: RecordingIngest,
    *,
    admission: Admission | None = None,
    tls: Tls | None = None,
    connections: int | None = None,
    **options: Any,
) -> AsyncIterator[Address]:
    """Open an HTTP receiver and yield its address."""
    app = otlp_http_app(ingest, settings(admission, options), **options)
    server = HttpServer(app, LOOPBACK, setting="server.http", tls=tls, connections=connections)
    where = await server.start()
    try:
        yield where
    finally:
        await server.stop(1.0)


@contextlib.asynccontextmanager
async def grpc_client(where: Address) -> AsyncIterator[tuple[TraceServiceStub, LogsServiceStub]]:
    """Return the stubs of both services."""
    unlimited = (("grpc.max_send_message_length", -1),)
    async with grpc.aio.insecure_channel(str(where), options=unlimited) as channel:
        yield TraceServiceStub(channel), LogsServiceStub(channel)


def http_client(where: Address, scheme: str = "http", **options: Any) -> httpx.AsyncClient:
    return httpx.AsyncClient(base_url=f"{scheme}://{where}", timeout=120, trust_env=False, **options)


async def until(condition: Callable[[], bool], seconds: float = 150, every: float = 0.01) -> None:
    """Poll until the condition holds; fail after ``seconds``."""
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 - what is watched knows nothing of events
            await asyncio.sleep(every)


def trace_request(spans: int = 1, text: str = "hello") -> ExportTraceServiceRequest:
    """Return a request with spans of one trace."""
    span = {
        "trace_id": bytes(range(16)),
        "name": "chat",
        "start_time_unix_nano": 1_700_000_000_000_000_000,
        "attributes": [{"key": "gen_ai.output.messages", "value": {"string_value": text}}],
    }
    numbered = [{**span, "span_id": number.to_bytes(8, "big")} for number in range(1, spans + 1)]
    return ExportTraceServiceRequest(resource_spans=[{"scope_spans": [{"spans": numbered}]}])


def logs_request() -> ExportLogsServiceRequest:
    record = {"trace_id": bytes(range(16)), "body": {"string_value": "hello"}}
    return ExportLogsServiceRequest(resource_logs=[{"scope_logs": [{"log_records": [record]}]}])
