"""Opens plain or TLS connections to a collector, and explains failures and retry times."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import grpc

# gRPC imports it with the first channel, on the worker's thread. A fork during that import would stop the child.
import grpc._channel
import grpc.aio
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import DecodeError

from pandaeval_otel.processor.settings import Settings

_BRISK = (
    ("grpc.initial_reconnect_backoff_ms", 250),
    ("grpc.min_reconnect_backoff_ms", 250),
    ("grpc.max_reconnect_backoff_ms", 5000),
    ("grpc.use_local_subchannel_pool", 1),  # a forked child must not share a connection with its parent
)
_ALIVE = (("grpc.keepalive_time_ms", 30_000), ("grpc.max_reconnect_backoff_ms", 2000))


def channel(settings: Settings) -> grpc.Channel:
    """Return a channel for submitting, which connects on first use.

    Raises :class:`OSError` for missing certificates.
    """
    # Tells gRPC if gevent has replaced threads: otherwise gRPC's thread, a greenlet too, blocks all others while
    # it waits for an answer. Repeated calls are harmless, also after a fork.
    monkey = sys.modules.get("gevent.monkey")
    if monkey is not None and monkey.is_module_patched("threading"):
        from grpc.experimental import gevent  # type: ignore[attr-defined]

        gevent.init_gevent()
    compression = grpc.Compression.Gzip if settings.gzip else grpc.Compression.NoCompression
    if not settings.secure:
        return grpc.insecure_channel(settings.target, options=_BRISK, compression=compression)
    return grpc.secure_channel(settings.target, _credentials(settings), options=_BRISK, compression=compression)


def watching_channel(settings: Settings) -> grpc.aio.Channel:
    """Return a channel for results on the running event loop. It detects a lost peer."""
    if not settings.secure:
        return grpc.aio.insecure_channel(settings.target, options=_ALIVE)
    return grpc.aio.secure_channel(settings.target, _credentials(settings), options=_ALIVE)


def cure(settings: Settings, details: str) -> str:
    """Return the fix for a failed connection from gRPC's ``details``."""
    upper_details = details.upper()
    if "CERTIFICATE_VERIFY_FAILED" in upper_details:
        return "its certificate has no trusted authority: set PANDAEVAL_CERTIFICATE to the file of its authority"
    if "PEER NAME" in upper_details or "HOSTNAME VERIFICATION" in upper_details:
        return "its certificate has another host name: use a name of the certificate in PANDAEVAL_ENDPOINT"
    if "WRONG_VERSION_NUMBER" in upper_details or "WRONG VERSION NUMBER" in upper_details:
        return "the collector does not use TLS: write http:// in PANDAEVAL_ENDPOINT, or set server.tls at the collector"
    if "CERTIFICATE_REQUIRED" in upper_details or "CERTIFICATE REQUIRED" in upper_details:
        return _WITH_CLIENT_CERTIFICATE
    if "SOCKET CLOSED" in upper_details or "CONNECTION RESET" in upper_details or "ENDPOINT CLOSING" in upper_details:
        if settings.secure:
            return f"{_WITH_CLIENT_CERTIFICATE}, or the client certificate is signed by another authority"
        return "if the collector uses TLS, write https:// in PANDAEVAL_ENDPOINT"
    return "is it running, and is PANDAEVAL_ENDPOINT its gRPC port (4327)?"


_WITH_CLIENT_CERTIFICATE = (
    "it may demand a client certificate: set PANDAEVAL_CLIENT_CERTIFICATE and PANDAEVAL_CLIENT_KEY"
)


def _credentials(settings: Settings) -> grpc.ChannelCredentials:
    files = (settings.certificate, settings.client_key, settings.client_certificate)
    return grpc.ssl_channel_credentials(*[Path(file).read_bytes() if file else None for file in files])


def retry_after_s(trailers: Iterable[Any] | None) -> float | None:
    """Return the seconds of a ``google.rpc.RetryInfo`` in gRPC trailers, or ``None``."""
    for key, value in trailers or ():
        if key == "google.rpc.retryinfo-bin":
            try:
                delay = Duration.FromString(value[2:])  # behind the field's tag and its length
            except DecodeError:
                return 0.0
            return max(0.0, delay.seconds + delay.nanos / 1e9)
    return None
