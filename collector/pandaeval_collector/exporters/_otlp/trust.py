"""Loads the certificates that a sink is checked against and those that we show it."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from pathlib import Path

import grpc


@dataclass(frozen=True, slots=True)
class Trust:
    """PEM files. ``certificate``: the authority to trust, ``None`` for the usual ones. ``client_certificate`` and
    ``client_key``: who we are (mTLS), both or neither. They are read when a connection is made: renewed ones are taken
    up by the next."""

    certificate: str | None = None
    client_certificate: str | None = None
    client_key: str | None = None

    def for_grpc(self) -> grpc.ChannelCredentials:
        """Raises :class:`OSError` for files that cannot be read."""
        return grpc.ssl_channel_credentials(
            _content(self.certificate), _content(self.client_key), _content(self.client_certificate)
        )

    def for_http(self) -> ssl.SSLContext:
        """Raises :class:`OSError` (which ``ssl.SSLError`` is) for files that cannot be used."""
        context = ssl.create_default_context(cafile=self.certificate)
        if self.client_certificate is not None:
            # An empty password, so that an encrypted key is refused instead of asked for on the terminal.
            context.load_cert_chain(self.client_certificate, self.client_key, password="")
        return context

    def verify(self) -> None:
        """Raises :class:`ValueError`, naming the files, unless they can be used."""
        try:
            self.for_http()
        except (OSError, ValueError) as error:
            named = ", ".join(name for name in (self.certificate, self.client_certificate, self.client_key) if name)
            raise ValueError(f"cannot use {named}: {error}") from error


def cure(details: str, secure: bool) -> str:
    """What to do about a failed connection, to be added to ``details``; empty where it has nothing to do with TLS."""
    said = details.upper().replace(" ", "_")
    for signs, advice in _CURES if secure else _CURES_IN_THE_CLEAR:
        if any(sign in said for sign in signs):
            return f" - {advice}"
    return ""


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


def _content(file: str | None) -> bytes | None:
    return Path(file).read_bytes() if file else None
