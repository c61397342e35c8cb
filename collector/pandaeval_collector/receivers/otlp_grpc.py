"""OTLP over gRPC, as unparsed bytes."""

from __future__ import annotations

import asyncio
import functools
import time
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import grpc
from google.protobuf.message import DecodeError, Message

from pandaeval_collector.receivers import Accepted, Ingest, Malformed, Refusal, Unauthenticated
from pandaeval_collector.receivers._answers import Outcomes, trailers_of
from pandaeval_collector.receivers._body_reader import MAX_WAITING
from pandaeval_collector.receivers._signals import SIGNALS, DoorSettings, Signal, store
from pandaeval_collector.receivers.admission import UNAUTHENTICATED_MESSAGE, is_authorised
from pandaeval_collector.receivers.bind import Address, BindError, Tls, grpc_connections, listening_socket

_SETTING = "server.grpc"
_UNREAD_BYTES = 128 * 1024  # with fewer bytes, ordinary messages would arrive in pieces
_HANDSHAKE_S = 5.0
_IDLE_S = 900.0
"""Seconds without a call before a connection is closed. A new connection may reach another collector behind a
balancer.
"""
_MESSAGE_CHARS = 500  # the status text is in a header, and clients limit headers to 8 KiB

if TYPE_CHECKING:  # grpc's classes take type arguments in their stubs only
    _Context = grpc.aio.ServicerContext[bytes, bytes]
    _Handler = grpc.GenericRpcHandler[Any, Any]
    _Interceptor = grpc.aio.ServerInterceptor[bytes, bytes]
    _Details = grpc.HandlerCallDetails
    _Method = grpc.RpcMethodHandler[bytes, bytes]
else:
    _Interceptor = grpc.aio.ServerInterceptor


class GrpcDoor:
    """Answers the calls of an endpoint, on one event loop. ``name``: for counters."""

    def __init__(self, name: str, settings: DoorSettings) -> None:
        self.reading, self.outcomes = settings.reading, Outcomes(name, settings.telemetry)
        self._tasks: set[asyncio.Task[Any]] = set()

    def method(self, work: Callable[[bytes], Coroutine[Any, Any, tuple[Accepted, Message]]]) -> _Method:
        """Make a method that answers with ``work`` on the message, or with its refusal."""

        async def answer(_: object, context: _Context) -> bytes:
            try:
                # A task of its own: a sender that hangs up, and so cancels this call, must neither cut a commit short
                # nor free the bytes of its request before.
                task = asyncio.create_task(work(await self.reading.read(context)))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
                try:
                    accepted, response = await asyncio.shield(task)
                finally:
                    # Its error knows this frame: together they would keep the request until the next collection.
                    del task
            except Exception as error:  # noqa: BLE001 - every request gets an answer, and the server continues
                return refuse(context, self.outcomes.refused(error))
            self.outcomes.accepted(accepted)
            return response.SerializeToString()

        return grpc.stream_unary_rpc_method_handler(answer)

    async def finish(self, timeout_s: float) -> None:
        """Wait at most ``timeout_s`` seconds until all is stored."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=timeout_s)


class OtlpGrpcServer:
    """Serves ``TraceService/Export``, ``LogsService/Export`` and ``handlers`` on the running event loop.

    gRPC rejects requests above ``max_bytes`` with RESOURCE_EXHAUSTED, uncounted. ``handshake_s``: limit of TLS and
    HTTP/2 setup. ``idle_s``: limit without a call.
    """

    def __init__(
        self,
        ingest: Ingest,
        settings: DoorSettings,
        address: Address,
        *,
        tls: Tls | None = None,
        handlers: Sequence[_Handler] = (),
        handshake_s: float = _HANDSHAKE_S,
        idle_s: float = _IDLE_S,
    ) -> None:
        self._ingest, self._settings, self._address = ingest, settings, address
        self._tls, self._handlers = tls, handlers
        self._handshake_s, self._idle_s = handshake_s, idle_s
        self._door = GrpcDoor("grpc", settings)
        self._server: grpc.aio.Server | None = None

    async def start(self) -> Address:
        """Listen; return the address with the real port. Raises :class:`BindError`."""
        token = self._settings.token
        server = grpc.aio.server(
            interceptors=[_BearerAuth(token, self._door.outcomes)] if token else [],
            options=(
                ("grpc.max_receive_message_length", self._settings.max_bytes),
                # From 1,000 on gRPC would cancel calls at random: no answer to a sender, and counted nowhere.
                ("grpc.server.max_pending_requests", MAX_WAITING),
                ("grpc.server.max_pending_requests_hard_limit", MAX_WAITING),
                # Bytes of an unread message that a sender may send. By default, gRPC increases this window to
                # megabytes.
                ("grpc.http2.bdp_probe", 0),
                ("grpc.http2.lookahead_bytes", _UNREAD_BYTES),
                ("grpc.max_allowed_incoming_connections", grpc_connections()),  # gRPC before 1.66 ignores it
                # gRPC does not close connections above this number, so idle connections must expire.
                ("grpc.server_handshake_timeout_ms", round(self._handshake_s * 1000)),
                ("grpc.max_connection_idle_ms", round(self._idle_s * 1000)),
                ("grpc.so_reuseport", 0),  # else a second collector would silently get half of the connections
                ("grpc.http2.min_recv_ping_interval_without_data_ms", 10_000),  # keep-alive pings of the Collector
                ("grpc.keepalive_time_ms", 60_000),  # a watcher whose machine is gone gives its place back
            ),
        )
        exports = [
            grpc.method_handlers_generic_handler(
                signal.grpc_service, {"Export": self._door.method(functools.partial(self._store, signal))}
            )
            for signal in SIGNALS
        ]
        server.add_generic_rpc_handlers((*exports, *self._handlers))
        place = str(self._address)
        try:
            if self._tls is None:
                port = server.add_insecure_port(place)
            else:
                port = server.add_secure_port(place, _credentials(self._tls))
        except RuntimeError:
            port = 0
        if port == 0:
            # gRPC does not report the cause. A plain socket does.
            listening_socket(self._address, _SETTING).close()
            raise BindError(f"gRPC cannot listen on {place}; check {_SETTING}")
        await server.start()
        self._server = server
        return Address(self._address.host, port)

    async def stop(self, grace_s: float) -> None:
        """Refuse new calls, and cancel running calls after ``grace_s`` seconds. Idempotent."""
        if self._server is None:
            return
        server, self._server = self._server, None
        ends = time.monotonic() + grace_s
        await server.stop(grace_s)
        await self._door.finish(max(0.0, ends - time.monotonic()))

    async def _store(self, signal: Signal, request: bytes) -> tuple[Accepted, Message]:
        async with self._settings.admission.reserve(len(request)) as reservation:
            accepted = await store(signal, self._ingest, request, reservation, self._settings)
            return accepted, signal.respond(accepted)


class _BearerAuth(_Interceptor):
    def __init__(self, token: str, outcomes: Outcomes) -> None:
        self._token, self._outcomes = token, outcomes
        self._refusal = grpc.stream_stream_rpc_method_handler(self._refuse)

    async def intercept_service(
        self, continuation: Callable[[_Details], Awaitable[_Method]], handler_call_details: _Details
    ) -> _Method:
        header = dict(handler_call_details.invocation_metadata).get("authorization")
        if is_authorised(header, self._token):
            return await continuation(handler_call_details)
        return self._refusal

    async def _refuse(self, _: object, context: _Context) -> None:
        refuse(context, self._outcomes.refused(Unauthenticated(UNAUTHENTICATED_MESSAGE)))


def parsed(kind: Any, request: bytes) -> Any:
    try:
        return kind.FromString(request)
    except DecodeError as error:
        raise Malformed(f"not a protobuf {kind.DESCRIPTOR.name}: {error}") from error


def refuse(context: _Context, answer: Refusal) -> bytes:
    """End a call when its handler returns. ``context.abort`` would keep the message alive."""
    context.set_code(grpc.StatusCode[answer.grpc])
    context.set_details(str(answer)[:_MESSAGE_CHARS])
    context.set_trailing_metadata(trailers_of(answer))
    return b""


def _credentials(tls: Tls) -> grpc.ServerCredentials:
    tls.verify()
    authority = Path(tls.client_ca).read_bytes() if tls.client_ca else None
    return grpc.ssl_server_credentials(
        [(Path(tls.key).read_bytes(), Path(tls.cert).read_bytes())],
        root_certificates=authority,
        require_client_auth=authority is not None,
    )
