"""A loopback OTLP/HTTP receiver that keeps OTLP/JSON."""

from __future__ import annotations

import base64
import gzip
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self, cast

from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

REQUESTS: dict[str, type[Message]] = {"/v1/traces": ExportTraceServiceRequest, "/v1/logs": ExportLogsServiceRequest}
ID_FIELDS = {"traceId", "spanId", "parentSpanId"}


class Receiver:
    """A context manager on its own thread, for traces and logs."""

    def __init__(self) -> None:
        self._http = _Http(("127.0.0.1", 0), _Handler)
        self._http.taken = []
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.05,), daemon=True)

    @property
    def url(self) -> str:
        """Return the ``OTEL_EXPORTER_OTLP_ENDPOINT``."""
        return f"http://127.0.0.1:{self._http.server_port}"

    def take(self) -> list[dict[str, Any]]:
        """Return new requests as OTLP/JSON."""
        taken, self._http.taken = self._http.taken, []
        return taken

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()


def to_json(request: Message) -> dict[str, Any]:
    """Return OTLP/JSON: hex IDs and numeric enums."""
    return cast(dict[str, Any], _with_hex_ids(MessageToDict(request, use_integers_for_enums=True)))


def _with_hex_ids(value: Any) -> Any:
    if isinstance(value, list):
        return [_with_hex_ids(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {k: base64.b64decode(v).hex() if k in ID_FIELDS else _with_hex_ids(v) for k, v in value.items()}


class _Http(ThreadingHTTPServer):
    daemon_threads = True
    taken: list[dict[str, Any]]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        chunked = self.headers.get("transfer-encoding", "").lower() == "chunked"
        body = b"".join(self._chunks()) if chunked else self.rfile.read(int(self.headers.get("content-length") or 0))
        if self.headers.get("content-encoding") == "gzip":
            body = gzip.decompress(body)
        kind = REQUESTS.get(self.path)
        if kind is not None:
            sent_json = "json" in self.headers.get("content-type", "")
            cast(_Http, self.server).taken.append(json.loads(body) if sent_json else to_json(kind.FromString(body)))
        self.send_response(200 if kind is not None else 404)
        self.send_header("content-type", "application/x-protobuf")
        self.send_header("content-length", "0")
        self.end_headers()

    def _chunks(self) -> Iterator[bytes]:
        while size := int(self.rfile.readline().partition(b";")[0], 16):
            yield self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()

    def log_message(self, format: str, *args: object) -> None:
        pass
