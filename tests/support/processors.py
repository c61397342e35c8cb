"""Telemetry, collector and spans for tests of the span processor."""

from __future__ import annotations

import threading
import time
from collections import Counter, deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Any

import grpc
from opentelemetry._logs import SeverityNumber
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider

from pandaeval_otel import PandaEvalSpanProcessor
from pandaeval_otel._proto.trace_service_pb2 import (
    CompletedTrace,
    Rejection,
    SubmitTracesRequest,
    SubmitTracesResponse,
)
from pandaeval_otel.processor.buffer import Buffer

try:  # before about 1.35 the SDK had its own class
    from opentelemetry.sdk._logs import LogRecord  # type: ignore[attr-defined]
except ImportError:
    from opentelemetry._logs import LogRecord


class Recording:
    """Recording telemetry: ``of("spans", "dropped")`` or ``["spans", "dropped", "queue_full"]``."""

    def __init__(self) -> None:
        self.counts: Counter[tuple[str, str, str]] = Counter()
        self.gauges: dict[str, Callable[[], int]] = {}
        self._lock = threading.Lock()

    def count(self, signal: str, outcome: str, number: int, reason: str = "") -> None:
        with self._lock:
            self.counts[signal, outcome, reason] += number

    def watch(self, what: str, read: Callable[[], int]) -> None:
        self.gauges[what] = read

    def __getitem__(self, key: tuple[str, str, str]) -> int:
        return self.counts[key]

    def of(self, signal: str, outcome: str) -> int:
        with self._lock:
            return sum(n for (s, o, _), n in self.counts.items() if (s, o) == (signal, outcome))

    def balance(self, signal: str = "spans") -> int:
        """Return unaccounted spans."""
        return self.of(signal, "ended") - sum(
            self.of(signal, outcome) for outcome in ("acknowledged", "rejected", "skipped", "dropped")
        )


class FakeCollector:
    """A gRPC server that keeps submissions. ``script``: first answers, as functions of the call context."""

    def __init__(self, port: int = 0, max_bytes: int = 64 << 20) -> None:
        self.requests: list[SubmitTracesRequest] = []
        self.sizes: list[int] = []
        self.metadata: list[dict[str, Any]] = []
        self.script: deque[Callable[[Any], dict[bytes, str] | None]] = deque()
        self._pool = ThreadPoolExecutor(4)
        self._server = grpc.server(self._pool, options=[("grpc.max_receive_message_length", max_bytes)])
        method = grpc.unary_unary_rpc_method_handler(self._submit)
        self._server.add_generic_rpc_handlers(
            (grpc.method_handlers_generic_handler("pandaeval.v1.TraceService", {"SubmitTraces": method}),)
        )
        self.port = self._server.add_insecure_port(f"127.0.0.1:{port}")
        self._server.start()

    @property
    def endpoint(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def traces(self) -> list[CompletedTrace]:
        return [trace for request in self.requests for trace in request.traces]

    def _submit(self, data: bytes, context: Any) -> bytes:
        request = SubmitTracesRequest.FromString(data)
        self.metadata.append(dict(context.invocation_metadata()))
        rejected = self.script.popleft()(context) if self.script else None
        self.requests.append(request)
        self.sizes.append(len(data))
        rejections = [Rejection(trace_id=trace_id, reason=why) for trace_id, why in (rejected or {}).items()]
        return SubmitTracesResponse(
            accepted=len(request.traces) - len(rejections), rejected=rejections
        ).SerializeToString()

    def __enter__(self) -> FakeCollector:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.stop(0).wait()
        self._pool.shutdown()


def refusing(code: grpc.StatusCode, *trailers: tuple[str, bytes]) -> Callable[[Any], None]:
    def answer(context: Any) -> None:
        context.set_trailing_metadata(trailers)
        context.abort(code, "as the test says")

    return answer


def provider(*processors: Any, **options: Any) -> TracerProvider:
    """Return a provider that shuts down after the test."""
    made = TracerProvider(shutdown_on_exit=False, resource=Resource({"service.name": "tested"}), **options)
    for processor in processors:
        made.add_span_processor(processor)
    return made


def processor(endpoint: str, telemetry: Recording, **options: Any) -> PandaEvalSpanProcessor:
    return PandaEvalSpanProcessor(endpoint, telemetry=telemetry, **{"shutdown_timeout": 5.0, **options})


class _Witness(Buffer):
    taken: set[str]

    def _tell(self, waiting: Any, outcome: str, reason: str = "") -> None:
        super()._tell(waiting, outcome, reason)
        if outcome == "acknowledged":
            self.taken.add(waiting.trace_id.hex())


def witness(processor: PandaEvalSpanProcessor) -> set[str]:
    """Record the traces that the collector accepts."""
    taken: set[str] = set()
    forwarder = processor._forwarder
    assert forwarder is not None
    witness = type("Witness", (_Witness,), {"taken": taken})

    begin = forwarder._begin

    def watched(inherited: tuple[int, ...] = ()) -> None:
        begin(inherited)
        forwarder.worker.submission.buffer.__class__ = witness

    forwarder._begin = watched  # type: ignore[method-assign]
    forwarder.worker.submission.buffer.__class__ = witness
    return taken


def spans_of(trace: CompletedTrace) -> list[Any]:
    request = ExportTraceServiceRequest.FromString(trace.spans)
    return [span for each in request.resource_spans for scoped in each.scope_spans for span in scoped.spans]


def logs_of(trace: CompletedTrace) -> list[Any]:
    request = ExportLogsServiceRequest.FromString(trace.logs)
    return [record for each in request.resource_logs for scoped in each.scope_logs for record in scoped.log_records]


def attributes_of(item: Any) -> dict[str, Any]:
    return {pair.key: getattr(pair.value, pair.value.WhichOneof("value")) for pair in item.attributes}


def until(condition: Callable[[], Any], what: str = "it", timeout: float = 120.0) -> None:
    deadline = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < deadline, f"{what} did not happen within {timeout} s"
        time.sleep(0.01)


def emit(logs: LoggerProvider, span: Any, body: Any, **attributes: Any) -> None:
    """Emit a log record in a span's context, for every SDK release."""
    context = span.get_span_context()
    record = LogRecord(
        timestamp=1,
        observed_timestamp=1,
        trace_id=context.trace_id,
        span_id=context.span_id,
        trace_flags=context.trace_flags,
        severity_number=SeverityNumber.INFO,
        body=body,
        attributes=attributes,
    )
    logs.get_logger("t").emit(record)
