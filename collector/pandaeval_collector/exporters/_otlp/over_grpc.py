"""OTLP over gRPC."""

from __future__ import annotations

from typing import Any

import grpc

from pandaeval_collector.exporters._otlp.answers import MAX_RESPONSE_BYTES, grpc_error
from pandaeval_collector.exporters._otlp.transport import TIMEOUT_S, USER_AGENT, SignalTarget, Trust, cure
from pandaeval_collector.exporters._protocol import RetryLaterError

_METHODS = {
    "logs": "/opentelemetry.proto.collector.logs.v1.LogsService/Export",
    "metrics": "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export",
    "traces": "/opentelemetry.proto.collector.trace.v1.TraceService/Export",
}


class GrpcTransport:
    """Sends one signal over a channel of its own: a signal's trouble is not another's. Implements ``Transport``."""

    def __init__(self, target: SignalTarget, signal: str, trust: Trust | None = None) -> None:
        self._target, self._method, self._trust = target, _METHODS[signal], trust or Trust()
        self._channel: grpc.aio.Channel | None = None

    async def open(self) -> None:
        options = (
            ("grpc.primary_user_agent", USER_AGENT),
            ("grpc.max_receive_message_length", MAX_RESPONSE_BYTES),
            ("grpc.max_reconnect_backoff_ms", 5000),  # we wait between attempts ourselves
            ("grpc.use_local_subchannel_pool", 1),
            ("grpc.enable_http_proxy", 0 if self._target.is_loopback else 1),
        )
        address, gzip = self._target.address, grpc.Compression.Gzip
        if self._target.secure:
            credentials = self._trust.for_grpc()
            self._channel = grpc.aio.secure_channel(address, credentials, options=options, compression=gzip)
        else:
            self._channel = grpc.aio.insecure_channel(address, options=options, compression=gzip)

    async def send(self, request: bytes) -> bytes:
        if self._channel is None:
            await self._reconnect()
        if self._channel is None:
            raise RuntimeError("the channel is closed")
        call = self._channel.unary_unary(self._method, bytes, bytes)  # bytes pass unchanged, both ways
        try:
            return bytes(await call(request, timeout=TIMEOUT_S, metadata=self._target.headers))
        except grpc.aio.AioRpcError as error:
            code, details = error.code(), error.details() or ""
            renew = self._target.secure and code is grpc.StatusCode.UNAVAILABLE
            if renew or code is grpc.StatusCode.DEADLINE_EXCEEDED:
                await self._reconnect()
            trailers: Any = error.trailing_metadata() or ()  # pairs, whatever the stubs say
            raise grpc_error(code, details + cure(details, self._target.secure), trailers) from error

    async def close(self) -> None:
        if self._channel is not None:
            channel, self._channel = self._channel, None
            await channel.close(None)

    async def _reconnect(self) -> None:
        """Opens a new channel: a connection whose other end has vanished looks alive for a quarter of an hour, and
        certificates may be new."""
        await self.close()
        try:
            await self.open()
        except OSError as error:
            raise RetryLaterError(f"a certificate cannot be read: {error}") from error
