"""What is sent to a sink, where, and with which trust: requests of encoded items."""

from __future__ import annotations

import base64
import ssl
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote, urlsplit

import grpc
from opentelemetry.proto.common.v1.common_pb2 import InstrumentationScope

from pandaeval_collector.base.runtime.version import installed_version
from pandaeval_collector.base.untrusted.foreign_pages import is_loopback
from pandaeval_collector.exporters._fields import pairs, repeated, tag
from pandaeval_otel.wire.skeleton import Request
from pandaeval_otel.wire.splitting import OWN_SCOPE

VERSION = installed_version() or "0"
SERVICE_NAME = "pandaeval"
USER_AGENT = f"pandaeval-collector/{VERSION}"
_DEFAULT_PORTS = {"grpc": 4317, "http/protobuf": 4318}
_CURES = (
    (("CERTIFICATE_VERIFY_FAILED",), "set exporters.otlp.certificate to the file of the sink's authority"),
    (
        ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE"),
        "the sink does not speak TLS: write http:// before exporters.otlp.endpoint, or insecure: true",
    ),
    (
        (
            *("CERTIFICATE_REQUIRED", "UNKNOWN_CA", "HANDSHAKE_FAIL"),
            # With TLS 1.3 a refusal comes after the handshake, and may be lost with the connection.
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
    """PEM files. ``certificate``: the authority to trust, ``None`` for the usual ones. ``client_certificate`` and
    ``client_key``: who we are (mTLS), both or neither. The files are read when a connection is made: renewed ones are
    used by the next."""

    certificate: str | None = None
    client_certificate: str | None = None
    client_key: str | None = None

    def for_grpc(self) -> grpc.ChannelCredentials:
        """Makes gRPC credentials of the files. Raises :class:`OSError` for files that cannot be read."""
        return grpc.ssl_channel_credentials(
            _content(self.certificate), _content(self.client_key), _content(self.client_certificate)
        )

    def for_http(self) -> ssl.SSLContext:
        """Makes a TLS context of the files. Raises :class:`OSError` (which ``ssl.SSLError`` is) for unusable files."""
        context = ssl.create_default_context(cafile=self.certificate)
        if self.client_certificate is not None:
            # An empty password, so that an encrypted key is refused instead of asked for on the terminal.
            context.load_cert_chain(self.client_certificate, self.client_key, password="")
        return context

    def verify(self) -> None:
        """Raises :class:`ValueError`, naming the files, unless a TLS context can be made of them."""
        try:
            self.for_http()
        except (OSError, ValueError) as error:
            named = ", ".join(name for name in (self.certificate, self.client_certificate, self.client_key) if name)
            raise ValueError(f"cannot use {named}: {error}") from error


def cure(details: str, secure: bool) -> str:
    """Returns what to do about a failed connection, to be added to ``details``; empty if the cause is not TLS."""
    said = details.upper().replace(" ", "_")
    for signs, advice in _CURES if secure else _CURES_IN_THE_CLEAR:
        if any(sign in said for sign in signs):
            return f" - {advice}"
    return ""


def _content(file: str | None) -> bytes | None:
    return Path(file).read_bytes() if file else None


@dataclass(frozen=True, slots=True)
class SignalTarget:
    """Where one signal is sent. ``url``: with the path, for HTTP. ``headers``: lower-case names; secret."""

    host: str
    port: int
    secure: bool
    url: str
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)

    @property
    def address(self) -> str:
        """``HOST:PORT``."""
        return _address(self.host, self.port)

    @property
    def is_loopback(self) -> bool:
        """Whether the host is this machine, to which no proxy leads."""
        return is_loopback(self.host)


def target(
    endpoint: str, signal: str, protocol: str, insecure: bool, *, headers: str = "", own_path: bool = False
) -> SignalTarget:
    """Reads where a signal goes. ``endpoint``: HOST:PORT or a URL. ``own_path``: the endpoint was given for this signal
    alone, so a path in it is the whole path, as the OpenTelemetry specification says. ``headers``:
    ``name=value,name=value``, percent-encoded."""
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
    """Makes OTLP requests of items that are encoded already (log records, spans, metrics): their bytes stay as they
    are, so what is sent again is byte for byte what was sent before."""

    def __init__(self, instance_id: str) -> None:
        facts = {
            "service.name": SERVICE_NAME,
            "service.instance.id": instance_id,
            "service.version": VERSION,
        }
        self._resource = repeated(tag(1), pairs(facts))  # ``Resource.attributes`` of ``opentelemetry-proto``
        self._scope = InstrumentationScope(name=OWN_SCOPE, version=VERSION).SerializeToString()

    def request(self, items: Iterable[bytes]) -> bytes:
        """Encodes one export request; its form is the same for all three signals."""
        request = Request()
        request.resourced.add(resource=self._resource).scoped.add(scope=self._scope, items=list(items))
        return bytes(request.SerializeToString())
