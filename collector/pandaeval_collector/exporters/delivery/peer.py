"""Connections to other collectors over gRPC."""

from __future__ import annotations

from pathlib import Path

import grpc.aio


def channel(endpoint: str, certificate: str | None) -> grpc.aio.Channel:
    """``certificate``: file with the authority to trust where the endpoint is ``https://``. Raises ``OSError`` where it
    cannot be read."""
    options = [("grpc.max_send_message_length", -1)]
    target = endpoint.rpartition("//")[2]
    if endpoint.startswith("https://"):
        authority = Path(certificate).read_bytes() if certificate else None
        return grpc.aio.secure_channel(target, grpc.ssl_channel_credentials(authority), options=options)
    return grpc.aio.insecure_channel(target, options=options)


def headers(token: str | None) -> tuple[tuple[str, str], ...]:
    """``token``: the peer's."""
    return () if token is None else (("authorization", f"Bearer {token}"),)


def cure(error: grpc.aio.AioRpcError, endpoint_key: str, certificate_key: str) -> str:
    """What to do about a failed call, to be added to what it said. The keys are those that the endpoint and its
    authority are set by."""
    details = (error.details() or "").upper()
    if "CERTIFICATE_VERIFY_FAILED" in details:
        return f": set {certificate_key} to the file of its authority"
    if "WRONG_VERSION_NUMBER" in details or "WRONG VERSION NUMBER" in details:
        return f": it does not speak TLS there, write http:// in {endpoint_key}"
    if "SOCKET CLOSED" in details or "CONNECTION RESET" in details or "ENDPOINT CLOSING" in details:
        return f": if it speaks TLS, write https:// in {endpoint_key}; client certificates it must not demand"
    return ""
