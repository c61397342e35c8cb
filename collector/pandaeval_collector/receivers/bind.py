"""Addresses, TLS files, protection of listeners, and connection limits."""

from __future__ import annotations

import errno
import resource
import socket
import ssl
from typing import NamedTuple

from pandaeval_collector.base.section import FilePath, Section
from pandaeval_collector.base.untrusted.foreign_pages import is_loopback

_BACKLOG = 1024
_WANTED_FILES = 65_536
_GRPC_SHARE, _HTTP_SHARE, _HEALTH_CONNECTIONS = 0.5, 0.2, 64
_FEWEST = 16


class BindError(Exception):
    """A listener cannot or must not start. The message has the fix."""


class PortInUse(BindError):  # noqa: N818 - the name is the error
    """Another socket listens on the address."""


class InsecureBind(BindError):  # noqa: N818 - likewise
    """The address is reachable from other machines without protection."""


class Address(NamedTuple):
    """A host (without brackets) and a TCP port, 0 for any."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach the address; of names, only ``localhost``."""
        return is_loopback(self.host)


class Tls(Section):
    cert: FilePath
    """PEM file with the server's certificate and its chain."""
    key: FilePath
    """PEM file with the private key of the certificate."""
    client_ca: FilePath | None = None
    """PEM file with the CA of client certificates. If this key is set, clients must send a certificate."""

    def verify(self) -> None:
        """Raise :class:`BindError` with the name of an unusable file."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        try:
            # An empty password: an encrypted key is refused, instead of a password prompt on the terminal.
            context.load_cert_chain(self.cert, self.key, password="")
        except (OSError, ValueError) as error:
            raise BindError(f"server.tls: cannot use {self.cert} with {self.key}: {error}") from error
        if self.client_ca is None:
            return
        try:
            context.load_verify_locations(self.client_ca)
        except OSError as error:
            raise BindError(f"server.tls: cannot use client CA {self.client_ca}: {error}") from error


def parse_address(text: str) -> Address:
    """Read ``127.0.0.1:4327``, ``localhost:4327`` or ``[::1]:4327``. Raises :class:`ValueError`."""
    host, colon, port = text.strip().rpartition(":")
    if not colon or not host:
        raise ValueError(f"{text!r} is not host:port (all interfaces: 0.0.0.0:port)")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        raise ValueError(f"{text!r}: write an IPv6 address in brackets, as in [::1]:4327")
    if not (port.isascii() and port.isdigit() and int(port) <= 65535):
        raise ValueError(f"{text!r}: {port!r} is not a port (0 to 65535)")
    return Address(host, int(port))


def check_bind(
    address: Address, tls: Tls | None, token: str | None, insecure_bind: bool, *, setting: str = "server"
) -> None:
    """Raise :class:`InsecureBind` for a reachable address without protection: TLS with a token or client certificate,
    or ``insecure_bind``. ``setting``: config key.
    """
    if insecure_bind or address.is_loopback:
        return
    authenticated = bool(token) or (tls is not None and tls.client_ca is not None)
    missing = [
        cure
        for cure, present in (
            ("set server.tls", tls is not None),
            ("set server.token_env (or a client CA in server.tls)", authenticated),
        )
        if not present
    ]
    if missing:
        raise InsecureBind(
            f"{setting} {address} can be reached from other machines, and it takes in prompts and answers: "
            f"{' and '.join(missing)}, or bind to 127.0.0.1, or set server.insecure_bind: true"
        )


def listening_socket(address: Address, setting: str) -> socket.socket:
    """Open a listening socket on an address, or a name's first address.

    Raises :class:`PortInUse` or :class:`BindError` with the config key ``setting``.
    """
    listener: socket.socket | None = None
    try:
        family, kind, protocol, _, place = socket.getaddrinfo(
            address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, kind, protocol)
        # Else a restart would have to wait for the old connections' TIME_WAIT.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(place)
        listener.listen(_BACKLOG)
    except OSError as error:
        if listener is not None:
            listener.close()
        if error.errno == errno.EADDRINUSE:
            raise PortInUse(
                f"{address} is already in use, perhaps by another collector: stop that one, or set {setting} "
                f"(environment: PANDAEVAL_{setting.upper().replace('.', '__')}) to a free address"
            ) from error
        raise BindError(f"cannot listen on {address}: {error.strerror or error}; check {setting}") from error
    return listener


def grpc_connections() -> int:
    """Return the connection limit of OTLP over gRPC: half of the file limit, at least 16.

    It exceeds the limit of HTTP, because idle connections cannot be dropped.
    """
    return max(_FEWEST, int(_files() * _GRPC_SHARE))


def http_connections() -> int:
    """Return the connection limit of OTLP over HTTP and the API: a fifth of the file limit, at least 16."""
    return max(_FEWEST, int(_files() * _HTTP_SHARE))


def health_connections() -> int:
    return min(_HEALTH_CONNECTIONS, max(_FEWEST, _files() // 16))


def _files() -> int:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return _WANTED_FILES
    wanted = _WANTED_FILES if hard == resource.RLIM_INFINITY else min(_WANTED_FILES, hard)
    if soft >= wanted:
        return soft
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    except (OSError, ValueError):  # not allowed: the limit stays
        return soft
    return wanted
