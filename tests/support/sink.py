"""An unreliable OTLP backend that records requests."""

from __future__ import annotations

import random
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
from opentelemetry.proto.collector.logs.v1 import logs_service_pb2, logs_service_pb2_grpc
from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2, metrics_service_pb2_grpc
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2, trace_service_pb2_grpc

RESULT_ID, REVISION = "pandaeval.result.id", "pandaeval.revision"


class Sink:
    """OTLP/gRPC on a loopback port, as a context manager.

    ``trouble``: failure probability; half the failures lose only the answer. ``copies``: deliveries per item.
    ``changed``: items repeated with other bytes.
    """

    def __init__(self, seed: int = 0, trouble: float = 0.0, port: int = 0) -> None:
        self._chance, self._trouble, self._lock = random.Random(seed), trouble, threading.Lock()
        self._bodies: dict[str, bytes] = {}
        self.requests: list[Any] = []
        self.copies: Counter[str] = Counter()
        self.changed: set[str] = set()
        self.metric_requests = 0
        self._server = grpc.server(ThreadPoolExecutor(4))
        trace_service_pb2_grpc.add_TraceServiceServicer_to_server(_Service(self._take_spans), self._server)  # type: ignore[no-untyped-call]
        logs_service_pb2_grpc.add_LogsServiceServicer_to_server(_Service(self._take_logs), self._server)  # type: ignore[no-untyped-call]
        metrics_service_pb2_grpc.add_MetricsServiceServicer_to_server(_Service(self._take_metrics), self._server)  # type: ignore[no-untyped-call]
        self.endpoint = f"127.0.0.1:{self._server.add_insecure_port(f'127.0.0.1:{port}')}"

    def __enter__(self) -> Sink:
        self._server.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.stop(0).wait()

    @property
    def results(self) -> set[str]:
        with self._lock:
            return {key.split()[1] for key in self.copies if key.startswith("log ")}

    @property
    def repeated(self) -> int:
        """Return how many came more than once."""
        with self._lock:
            return sum(1 for count in self.copies.values() if count > 1)

    def _take_spans(self, request: Any, context: grpc.ServicerContext) -> Any:
        self._remember(request)
        spans = (span for block in request.resource_spans for scope in block.scope_spans for span in scope.spans)
        self._keep(((f"span {span.span_id.hex()} {_revisions(span)}", span) for span in spans), context)
        return trace_service_pb2.ExportTraceServiceResponse()

    def _take_logs(self, request: Any, context: grpc.ServicerContext) -> Any:
        self._remember(request)
        records = (each for block in request.resource_logs for scope in block.scope_logs for each in scope.log_records)
        self._keep(
            ((f"log {_attribute(each, RESULT_ID)} {_attribute(each, REVISION)}", each) for each in records), context
        )
        return logs_service_pb2.ExportLogsServiceResponse()

    def _take_metrics(self, request: Any, context: grpc.ServicerContext) -> Any:
        with self._lock:
            self.metric_requests += 1
        return metrics_service_pb2.ExportMetricsServiceResponse()

    def _remember(self, request: Any) -> None:
        with self._lock:
            self.requests.append(request)

    def _keep(self, items: Any, context: grpc.ServicerContext) -> None:
        with self._lock:
            luck = self._chance.random()
            if luck >= self._trouble / 2:
                for key, item in items:
                    body = item.SerializeToString(deterministic=True)
                    if self._bodies.setdefault(key, body) != body:
                        self.changed.add(key)
                    self.copies[key] += 1
        if luck < self._trouble:
            context.abort(grpc.StatusCode.UNAVAILABLE, "out of luck")


class _Service:
    def __init__(self, export: Any) -> None:
        self.Export = export


def _revisions(span: Any) -> str:
    return ",".join(str(_attribute(event, REVISION)) for event in span.events)


def _attribute(item: Any, key: str) -> str | int:
    value = next(each.value for each in item.attributes if each.key == key)
    return value.int_value if value.HasField("int_value") else str(value.string_value)
