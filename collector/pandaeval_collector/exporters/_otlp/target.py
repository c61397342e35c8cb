"""Parses an endpoint as people write it into an address, an encryption and headers."""

from __future__ import annotations

import base64
import ipaddress
from dataclasses import dataclass, field
from urllib.parse import unquote, urlsplit

_DEFAULT_PORTS = {"grpc": 4317, "http/protobuf": 4318}


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
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def is_loopback(self) -> bool:
        """Whether it is this machine, where no proxy belongs in between."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False


def target(
    endpoint: str, signal: str, protocol: str, insecure: bool, *, headers: str = "", own_path: bool = False
) -> SignalTarget:
    """Reads where a signal goes. ``endpoint``: HOST:PORT or a URL. ``own_path``: it was given for this signal alone, so
    a path in it is the whole path, as the OpenTelemetry specification says. ``headers``: ``name=value,name=value``,
    percent-encoded."""
    is_url = "://" in endpoint
    parts = urlsplit(endpoint if is_url else f"{'http' if insecure else 'https'}://{endpoint}")
    secure = parts.scheme == "https"
    host = parts.hostname or ""
    port = parts.port or ((443 if secure else 80) if is_url else _DEFAULT_PORTS[protocol])
    path = parts.path.rstrip("/")
    if not (own_path and path):
        path = f"{path}/v1/{signal}"
    found = SignalTarget(host, port, secure, "", (*_credentials(parts.username, parts.password), *_headers(headers)))
    url = f"{parts.scheme}://{found.address}{path}"
    return SignalTarget(host, port, secure, url, found.headers)


def _credentials(user: str | None, password: str | None) -> tuple[tuple[str, str], ...]:
    if user is None:
        return ()
    token = base64.b64encode(f"{unquote(user)}:{unquote(password or '')}".encode()).decode()
    return (("authorization", f"Basic {token}"),)


def _headers(text: str) -> tuple[tuple[str, str], ...]:
    pairs = (entry.partition("=") for entry in text.split(",") if "=" in entry)
    return tuple((unquote(name.strip()).lower(), unquote(value.strip())) for name, _, value in pairs)
