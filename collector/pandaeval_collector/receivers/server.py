"""Serves an ASGI application on our own event loop."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import ssl
from collections import OrderedDict
from collections.abc import Iterator
from functools import partial
from socket import socket
from typing import Any, Literal

import uvicorn
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from pandaeval_collector.receivers.bind import Address, Tls, http_connections, listening_socket

_log = logging.getLogger(__name__)
_KEEP_ALIVE_S = 30
_HEAD_S = 10.0
_UNREAD_S = 10.0
"""Maximum seconds without a read by the client."""
_UNREAD_AT_END_S = 1.0
"""The same once the collector stops."""
_MAX_HEAD_BYTES = 32 * 1024
_PATHS = (
    "OTLP/HTTP is POST to /v1/traces and /v1/logs here (of metrics nothing is scored); OTLP/gRPC has a port of its own "
    "(server.grpc, 4327), and so have /healthz, /readyz and /metrics (server.health, 4329)\n"
)
_said: set[str] = set()
"""Warnings already logged about wrong ports or paths, whose client errors rarely show the cause."""


class HttpServer:
    """Serves a listener.

    ``setting``: config key for errors. ``connections``: maximum (:class:`Crowd`). ``head_s``: limit for headers.
    ``unread_s``: limit for an unread answer.
    """

    def __init__(
        self,
        app: ASGIApp,
        address: Address,
        *,
        setting: str,
        tls: Tls | None = None,
        connections: int | None = None,
        head_s: float = _HEAD_S,
        unread_s: float = _UNREAD_S,
    ) -> None:
        crowd = Crowd(connections or http_connections())
        self._protocol = partial(_LimitedHeadProtocol, crowd=crowd, head_s=head_s, unread_s=unread_s)
        self._app, self._address, self._setting, self._tls = app, address, setting, tls
        self._server: _Embedded | None = None
        self._serving: asyncio.Task[None] | None = None

    async def start(self) -> Address:
        """Listen; return the address with the real port. Raises ``BindError``."""
        listener = listening_socket(self._address, self._setting)
        try:
            self._server = _Embedded(_config(self._app, self._tls, self._protocol))
        except BaseException:
            listener.close()
            raise
        self._serving = asyncio.create_task(self._server.serve(sockets=[listener]))
        port = int(listener.getsockname()[1])
        up = asyncio.create_task(self._server.is_up.wait())
        await asyncio.wait((up, self._serving), return_when=asyncio.FIRST_COMPLETED)
        if not up.done():
            up.cancel()
            await self._serving  # raises the error of the server
        return Address(self._address.host, port)

    async def stop(self, grace_s: float = 5.0) -> None:
        """Refuse new connections, and cancel running requests after ``grace_s`` seconds. Idempotent."""
        if self._server is None or self._serving is None:
            return
        self._server.config.timeout_graceful_shutdown = max(1, round(grace_s))
        self._server.should_exit = True
        await self._serving
        self._server = self._serving = None


class _Embedded(uvicorn.Server):
    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.is_up = asyncio.Event()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket] | None = None) -> None:
        await super().startup(sockets)
        self.is_up.set()


class _LimitedHeadProtocol(HttpToolsProtocol):
    _head_bytes = 0
    _hosts = 0
    _unheard_bytes = 0

    def __init__(self, *args: Any, crowd: Crowd, head_s: float, unread_s: float, **options: Any) -> None:
        super().__init__(*args, **options)
        self._crowd, self._head_s, self._unread_s = crowd, head_s, unread_s
        self._timers: dict[str, asyncio.TimerHandle] = {}

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._wait(self._head_s)
        self._crowd.came(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._wait(None)
        self._wait(None, "unread")
        self._crowd.went(self)
        super().connection_lost(exc)

    def on_headers_complete(self) -> None:
        self._wait(None)
        self._crowd.busy(self)
        super().on_headers_complete()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.cycle.response_complete:  # else a later request is being answered
            self._wait(_KEEP_ALIVE_S)
            self._crowd.waits(self)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._wait(self._unread_s, "unread")

    def resume_writing(self) -> None:
        self._wait(None, "unread")
        super().resume_writing()

    def shutdown(self) -> None:
        super().shutdown()
        if self.transport.get_write_buffer_size():
            self._wait(_UNREAD_AT_END_S, "unread")

    def drop(self) -> None:
        self.transport.abort()

    def _wait(self, seconds: float | None, what: Literal["request", "unread"] = "request") -> None:
        """End the connection after ``seconds``, unless called again; ``None``: no limit."""
        if (timer := self._timers.pop(what, None)) is not None:
            timer.cancel()
        if seconds is not None:
            self._timers[what] = self.loop.call_later(seconds, self.drop)

    def data_received(self, data: bytes) -> None:
        if data.startswith(b"PRI * HTTP/2.0"):
            host, port = self.transport.get_extra_info("sockname")[:2]
            _say_once(
                f"a gRPC client came to {host}:{port}, which speaks OTLP/HTTP: give it the address of server.grpc "
                "(port 4327), or have it speak HTTP (OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf)"
            )
        self._unheard_bytes += len(data)
        super().data_received(data)
        if self._unheard_bytes > _MAX_HEAD_BYTES and not self.transport.is_closing():
            self.send_400_response("Request header too large.")

    def on_message_begin(self) -> None:
        self._head_bytes = self._hosts = 0
        if self.cycle is None or self.cycle.response_complete:
            self._wait(self._head_s)
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        self._count(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._count(len(name) + len(value))
        self._hosts += name.lower() == b"host"
        if self._hosts > 1:
            raise ValueError("two Host headers")  # two checks could read different headers
        super().on_header(name, value)

    def on_body(self, body: bytes) -> None:
        self._unheard_bytes = 0
        super().on_body(body)

    def _count(self, size: int) -> None:
        self._unheard_bytes = 0
        self._head_bytes += size
        if self._head_bytes > _MAX_HEAD_BYTES:
            raise ValueError("request header too large")  # the parser turns it into a 400


class Crowd:
    """A listener's connections. Above ``limit``, drops the longest idle, else the new connection."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._count = 0
        self._waiting: OrderedDict[_LimitedHeadProtocol, None] = OrderedDict()

    def came(self, connection: _LimitedHeadProtocol) -> None:
        self._count += 1
        self._waiting[connection] = None
        if self._count > self._limit:
            longest, _ = self._waiting.popitem(last=False)
            longest.drop()

    def busy(self, connection: _LimitedHeadProtocol) -> None:
        self._waiting.pop(connection, None)

    def waits(self, connection: _LimitedHeadProtocol) -> None:
        self._waiting[connection] = None
        self._waiting.move_to_end(connection)

    def went(self, connection: _LimitedHeadProtocol) -> None:
        self._count -= 1
        self._waiting.pop(connection, None)


def _config(app: ASGIApp, tls: Tls | None, protocol: Any) -> uvicorn.Config:
    options: dict[str, Any] = {}
    if tls is not None:
        tls.verify()
        options = {
            "ssl_certfile": tls.cert,
            "ssl_keyfile": tls.key,
            "ssl_ca_certs": tls.client_ca,
            "ssl_cert_reqs": ssl.CERT_REQUIRED if tls.client_ca else ssl.CERT_NONE,
        }
    config = uvicorn.Config(
        app,
        http=protocol,
        ws="none",
        lifespan="off",
        log_config=None,
        log_level="error",  # malformed requests are answered and are no news
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=_KEEP_ALIVE_S,
        **options,
    )
    config.load()
    return config


async def wrong_path(request: Request, _: Exception) -> Response:
    """Answer 404 with the available paths; log once per path."""
    _say_once(f"{request.method} {request.url.path[:100]!r} was asked for: {_PATHS.strip()}")
    return PlainTextResponse(_PATHS, 404)


def _say_once(text: str) -> None:
    if text not in _said and len(_said) < 20:
        _said.add(text)
        _log.warning("%s", text)
