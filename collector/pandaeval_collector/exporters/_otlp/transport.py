"""Target, trust and connection of a sink: OTLP over gRPC, or HTTP with protobuf."""

from __future__ import annotations

import asyncio
import base64
import gzip
import logging
import ssl
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import grpc
import httpx
from opentelemetry.proto.common.v1.common_pb2 import InstrumentationScope

from pandaeval_collector.base.runtime.version import installed_version
from pandaeval_collector.base.untrusted.foreign_pages import is_loopback
from pandaeval_collector.exporters import RetryLaterError
from pandaeval_collector.exporters._fields import pairs, repeated, tag
from pandaeval_collector.exporters._otlp.answers import MAX_RESPONSE_BYTES, grpc_error, http_error
from pandaeval_otel.wire.skeleton import Request
from pandaeval_otel.wire.splitting import OWN_SCOPE

VERSION = installed_version() or "0"
SERVICE_NAME = "pandaeval"
USER_AGENT = f"pandaeval-collector/{VERSION}"
logging.getLogger("httpx").setLevel(logging.WARNING)  # it logs every request that went well
TIMEOUT_S = 10.0
"""Seconds that a sink may take to answer."""
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
_DEFAULT_PORTS = {"grpc": 4317, "http/protobuf": 4318}
_SCHEMA = b"https://opentelemetry.io/schemas/1.38.0"
"""Semantic conventions of the attributes, the first with `gen_ai.evaluation.result`."""
_CURES = (
    (("CERTIFICATE_VERIFY_FAILED",), "set exporters.otlp.certificate to the file of the sink's authority"),
    (
        ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE"),
        "the sink does not speak TLS: write http:// before exporters.otlp.endpoint, or insecure: true",
    ),
    (
        (
            *("CERTIFICATE_REQUIRED", "UNKNOWN_CA", "HANDSHAKE_FAIL"),
            # With TLS 1.3, a refusal comes after the handshake, and can be lost with the connection.
            *("SOCKET_CLOSED", "CONNECTION_RESET", "DISCONNECTED", "READERROR"),
        ),
        "the sink may demand a certificate: set exporters.otlp.client_certificate and client_key to one it trusts",
    ),
)
_CURES_IN_THE_CLEAR = (
    (
        ("SOCKET_CLOSED", "CONNECTION_RESET", "ENDPOINT_CLOSING", "DISCONNECTED", "READERROR"),
        "if the sink speaks TLS, write https:// before exporters.otlp.endpoint, or insecure: false",
    ),
)


@dataclass(frozen=True, slots=True)
class Trust:
    """PEM files, read per connection.

    ``certificate``: trusted authority. ``client_certificate``, ``client_key``: for mTLS.
    """

    certificate: str | None = None
    client_certificate: str | None = None
    client_key: str | None = None

    def for_grpc(self) -> grpc.ChannelCredentials:
        """Make gRPC credentials. Raises :class:`OSError`."""
        files = (self.certificate, self.client_key, self.client_certificate)
        return grpc.ssl_channel_credentials(*(Path(file).read_bytes() if file else None for file in files))

    def for_http(self) -> ssl.SSLContext:
        """Make a TLS context. Raises :class:`OSError`, also ``ssl.SSLError``."""
        context = ssl.create_default_context(cafile=self.certificate)
        if self.client_certificate is not None:
            # An empty password: an encrypted key is refused, instead of a password prompt on the terminal.
            context.load_cert_chain(self.client_certificate, self.client_key, password="")
        return context

    def verify(self) -> None:
        """Raise :class:`ValueError`, naming the files, if unusable."""
        try:
            self.for_http()
        except (OSError, ValueError) as error:
            named = ", ".join(name for name in (self.certificate, self.client_certificate, self.client_key) if name)
            raise ValueError(f"cannot use {named}: {error}") from error


def cure(details: str, secure: bool) -> str:
    """Return the fix for a failed TLS connection, appended to ``details``, or ``""``."""
    normalized = details.upper().replace(" ", "_")
    for signs, advice in _CURES if secure else _CURES_IN_THE_CLEAR:
        if any(sign in normalized for sign in signs):
            return f" - {advice}"
    return ""


@dataclass(frozen=True, slots=True)
class SignalTarget:
    """The target of one signal. ``url``: with path, for HTTP. ``headers``: lower-case names; secret."""

    host: str
    port: int
    secure: bool
    url: str
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)

    @property
    def address(self) -> str:
        return _address(self.host, self.port)

    @property
    def is_loopback(self) -> bool:
        return is_loopback(self.host)


def target(
    endpoint: str, signal: str, protocol: str, insecure: bool, *, headers: str = "", own_path: bool = False
) -> SignalTarget:
    """Parse a signal's target.

    ``endpoint``: HOST:PORT or a URL. ``own_path``: its path, if any, is the whole path, as OpenTelemetry specifies.
    ``headers``: ``name=value,name=value``, percent-encoded.
    """
    is_url = "://" in endpoint
    parts = urlsplit(endpoint if is_url else f"{'http' if insecure else 'https'}://{endpoint}")
    secure = parts.scheme == "https"
    host = parts.hostname or ""
    port = parts.port or ((443 if secure else 80) if is_url else _DEFAULT_PORTS[protocol])
    path = parts.path.rstrip("/")
    if not (own_path and path):
        path = f"{path}/v1/{signal}"
    url = f"{parts.scheme}://{_address(host, port)}{path}"
    sent: list[tuple[str, str]] = []
    if parts.username is not None:
        token = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        sent.append(("authorization", f"Basic {base64.b64encode(token.encode()).decode()}"))
    for entry in headers.split(","):
        name, is_pair, value = entry.partition("=")
        if is_pair:
            sent.append((unquote(name.strip()).lower(), unquote(value.strip())))
    return SignalTarget(host, port, secure, url, tuple(sent))


def _address(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


class Envelope:
    """Makes OTLP requests of encoded items, byte for byte the same in retries."""

    def __init__(self, instance_id: str) -> None:
        facts = {"service.name": SERVICE_NAME, "service.instance.id": instance_id, "service.version": VERSION}
        self._resource = repeated(tag(1), pairs(facts))  # ``Resource.attributes`` of ``opentelemetry-proto``
        self._scope = InstrumentationScope(name=OWN_SCOPE, version=VERSION).SerializeToString()

    def request(self, items: Iterable[bytes]) -> bytes:
        request = Request()
        resourced = request.resourced.add(resource=self._resource, schema_url=_SCHEMA)
        resourced.scoped.add(scope=self._scope, items=list(items), schema_url=_SCHEMA)
        return bytes(request.SerializeToString())


class Transport(ABC):
    """A connection to a sink for one signal, on one event loop."""

    def __init__(self, target: SignalTarget, trust: Trust) -> None:
        self._target, self._trust = target, trust

    @abstractmethod
    async def open(self) -> None:
        """Prepare the client, which connects at the first request."""

    @abstractmethod
    async def send(self, request: bytes) -> bytes:
        """Send an encoded request, return the encoded response. Raises ``RetryLaterError`` or a ``RefusedError``."""

    @abstractmethod
    async def close(self) -> None:
        """Close the connection. Safe to call twice."""

    async def _renew(self) -> None:
        """Reconnect: a vanished peer looks alive for long, and certificates may be new."""
        await self.close()
        try:
            await self.open()
        except OSError as error:
            raise RetryLaterError(f"a certificate cannot be read: {error}") from error


class GrpcTransport(Transport):
    def __init__(self, target: SignalTarget, signal: str, trust: Trust) -> None:
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
            trailers: Any = error.trailing_metadata() or ()  # pairs, unlike in the stubs
            raise grpc_error(code, details + cure(details, self._target.secure), trailers) from error

    async def close(self) -> None:
        if self._channel is not None:
            channel, self._channel = self._channel, None
            await channel.close(None)


class HttpTransport(Transport):
    """Sends one signal by POST, without following redirects."""

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
