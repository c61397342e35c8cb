"""OTLP over gRPC, and over HTTP as protobuf."""

from __future__ import annotations

import asyncio
import gzip
import logging
from abc import ABC, abstractmethod
from typing import Any

import grpc
import httpx

from pandaeval_collector.exporters import RetryLaterError
from pandaeval_collector.exporters._otlp.answers import MAX_RESPONSE_BYTES, grpc_error, http_error
from pandaeval_collector.exporters._otlp.transport import USER_AGENT, SignalTarget, Trust, cure

logging.getLogger("httpx").setLevel(logging.WARNING)  # it logs every request that went well
TIMEOUT_S = 10.0
"""How long a sink may take to answer."""
_METHODS = {
    "logs": "/opentelemetry.proto.collector.logs.v1.LogsService/Export",
    "metrics": "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export",
    "traces": "/opentelemetry.proto.collector.trace.v1.TraceService/Export",
}
_HEADERS = {
    "content-type": "application/x-protobuf",
    "content-encoding": "gzip",
    "accept": "application/x-protobuf",
    "accept-encoding": "identity",  # so that the cap counts the bytes that are sent
    "user-agent": USER_AGENT,
}


class Transport(ABC):
    """One connection to one sink for one signal, on one event loop: a signal's trouble is not another's."""

    def __init__(self, target: SignalTarget, trust: Trust | None = None) -> None:
        self._target, self._trust = target, trust or Trust()

    @abstractmethod
    async def open(self) -> None:
        """Prepares the client; it connects at the first request."""

    @abstractmethod
    async def send(self, request: bytes) -> bytes:
        """Sends an encoded request, returns the encoded response. Raises ``RetryLaterError`` or a ``RefusedError``."""

    @abstractmethod
    async def close(self) -> None:
        """Closes the connection. Safe to call twice."""

    async def _renew(self) -> None:
        """Opens a new connection: one whose other end has vanished looks alive for a quarter of an hour, and
        certificates may be new."""
        await self.close()
        try:
            await self.open()
        except OSError as error:
            raise RetryLaterError(f"a certificate cannot be read: {error}") from error


class GrpcTransport(Transport):
    """Sends one signal over a channel of its own."""

    def __init__(self, target: SignalTarget, signal: str, trust: Trust | None = None) -> None:
        super().__init__(target, trust)
        self._method = _METHODS[signal]
        self._channel: grpc.aio.Channel | None = None

    async def open(self) -> None:
        options = (
            ("grpc.primary_user_agent", USER_AGENT),
            ("grpc.max_receive_message_length", MAX_RESPONSE_BYTES),
            ("grpc.max_reconnect_backoff_ms", 5000),  # we wait between attempts ourselves
            ("grpc.use_local_subchannel_pool", 1),
            ("grpc.enable_http_proxy", 0 if self._target.is_loopback else 1),
        )
        address, compression = self._target.address, grpc.Compression.Gzip
        if self._target.secure:
            credentials = self._trust.for_grpc()
            self._channel = grpc.aio.secure_channel(address, credentials, options=options, compression=compression)
        else:
            self._channel = grpc.aio.insecure_channel(address, options=options, compression=compression)

    async def send(self, request: bytes) -> bytes:
        if self._channel is None:
            await self._renew()
        if self._channel is None:
            raise RuntimeError("the channel is closed")
        call = self._channel.unary_unary(self._method, bytes, bytes)  # bytes pass unchanged, both ways
        try:
            return bytes(await call(request, timeout=TIMEOUT_S, metadata=self._target.headers))
        except grpc.aio.AioRpcError as error:
            code, details = error.code(), error.details() or ""
            is_old = self._target.secure and code is grpc.StatusCode.UNAVAILABLE
            if is_old or code is grpc.StatusCode.DEADLINE_EXCEEDED:
                await self._renew()
            trailers: Any = error.trailing_metadata() or ()  # pairs, whatever the stubs say
            raise grpc_error(code, details + cure(details, self._target.secure), trailers) from error

    async def close(self) -> None:
        if self._channel is not None:
            channel, self._channel = self._channel, None
            await channel.close(None)


class HttpTransport(Transport):
    """Sends one signal by POST. Does not follow redirects: content goes where it was configured to go."""

    _client: httpx.AsyncClient | None = None

    async def open(self) -> None:
        self._client = httpx.AsyncClient(
            headers={**_HEADERS, **dict(self._target.headers)},
            timeout=TIMEOUT_S,
            trust_env=not self._target.is_loopback,
            verify=self._trust.for_http() if self._target.secure else False,
        )

    async def send(self, request: bytes) -> bytes:
        if self._client is None:
            await self._renew()
        if self._client is None:
            raise RuntimeError("the client is closed")
        body = await asyncio.to_thread(gzip.compress, request, 3, mtime=0)
        try:
            async with asyncio.timeout(TIMEOUT_S):
                async with self._client.stream("POST", self._target.url, content=body) as response:
                    if not response.is_success:
                        raise http_error(response.status_code, response.headers)
                    answer = b""
                    async for part in response.aiter_raw():
                        answer += part
                        if len(answer) > MAX_RESPONSE_BYTES:
                            return b""  # the request was taken, whatever is said of it
                    return answer
        except (httpx.HTTPError, TimeoutError) as error:
            if self._target.secure:
                await self._renew()
            details = f"{type(error).__name__}: {error}"
            raise RetryLaterError(details + cure(details, self._target.secure)) from error

    async def close(self) -> None:
        if self._client is not None:
            client, self._client = self._client, None
            await client.aclose()
