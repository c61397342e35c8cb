"""Tells senders that came to the wrong port or path, or logs it: their own errors seldom name the cause."""

from __future__ import annotations

import logging

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

_log = logging.getLogger(__name__)
_MAX_SAID = 20
_said: set[str] = set()

GRPC_PREFACE = b"PRI * HTTP/2.0"
"""What a gRPC client says first."""
_PATHS = (
    "OTLP/HTTP is POST to /v1/traces and /v1/logs here (of metrics nothing is scored); OTLP/gRPC has a port of its own "
    "(server.grpc, 4327), and so have /healthz, /readyz and /metrics (server.health, 4329)\n"
)


def grpc_on_http(address: object) -> None:
    """Says once per address that a gRPC client came to a port that speaks HTTP."""
    _say_once(
        f"a gRPC client came to {address}, which speaks OTLP/HTTP: give it the address of server.grpc (port 4327), or "
        "have it speak HTTP (OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf)"
    )


async def wrong_path(request: Request, _: Exception) -> Response:
    """Answers 404 with what is where, and says so once per path."""
    _say_once(f"{request.method} {request.url.path[:100]!r} was asked for: {_PATHS.strip()}")
    return PlainTextResponse(_PATHS, 404)


def _say_once(text: str) -> None:
    if text not in _said and len(_said) < _MAX_SAID:
        _said.add(text)
        _log.warning("%s", text)
