"""Processor settings: arguments, else environment variables, else defaults.

A wrong variable is logged and ignored, except ``PANDAEVAL_REDACTOR``. This variable or a wrong argument raises
:class:`ValueError`.
"""

from __future__ import annotations

import importlib
import ipaddress
import logging
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypedDict
from urllib.parse import unquote

from pandaeval_otel.processor.telemetry import ProcessorTelemetry

_log = logging.getLogger(__name__)

Redact = Callable[[str, str], "str | None"]
"""``redact(key, text)`` returns the text to send, or ``None`` to omit it. Called on the worker thread for each span
name and status message, and for each string, also nested, in log bodies and in attributes of spans, events, links and
log records. Not called for resources, scopes, keys and event names. If it raises, the trace is dropped.
"""


@dataclass(frozen=True)
class Settings:
    """Settings of a processor. docs/reference/configuration.md lists the environment variables."""

    endpoint: str = "localhost:4327"
    """``host:port``, or a URL: ``http://`` (plain), ``https://`` (TLS), ``unix:/path``."""
    headers: tuple[tuple[str, str], ...] = ()
    """In gRPC's form: with keys in lower case."""
    certificate: str = ""
    """PEM file of the trusted certificate authority; empty: gRPC's defaults."""
    client_certificate: str = ""
    """PEM file of the client certificate, for mTLS."""
    client_key: str = ""
    """PEM file with its private key."""
    compression: Literal["auto", "gzip", "none"] = "auto"
    """``auto``: gzip, except to this machine."""
    redact: Redact | None = None
    queue_size: int = 8192
    """Span starts, span ends and log records between application and worker."""
    held_bytes: int = 32 << 20
    """Bytes for incomplete traces: encoded spans and log records, plus 400 bytes each and 1,700 bytes per trace."""
    buffer_bytes: int = 32 << 20
    """Bytes for complete traces, and parts of traces, that wait for the collector."""
    timeout: float = 10.0
    """Seconds per submission attempt."""
    shutdown_timeout: float = 5.0
    """Seconds for the last submissions at shutdown. Traces that remain are dropped."""
    telemetry: ProcessorTelemetry | None = None

    def __post_init__(self) -> None:
        for name in ("queue_size", "held_bytes", "buffer_bytes", "timeout", "shutdown_timeout"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} must be positive, not {getattr(self, name)!r}")
        if self.compression not in ("auto", "gzip", "none"):
            raise ValueError(f"compression must be one of auto, gzip, none, not {self.compression!r}")
        if not self.target:
            raise ValueError(f"endpoint must name a host and a port, not {self.endpoint!r}")
        for name in ("certificate", "client_certificate", "client_key"):
            file = getattr(self, name)
            try:
                if file:
                    Path(file).read_bytes()
            except OSError as error:
                raise ValueError(f"{name}: {file!r} cannot be read: {error.strerror}") from error

    @property
    def secure(self) -> bool:
        """Whether connections use TLS."""
        return self.endpoint.startswith("https://")

    @property
    def target(self) -> str:
        """The endpoint in gRPC's form."""
        return self.endpoint.removeprefix("http://").removeprefix("https://").rstrip("/")

    @property
    def gzip(self) -> bool:
        """Whether requests are compressed."""
        return self.compression == "gzip" or (self.compression == "auto" and not _is_local(self.target))


class Options(TypedDict, total=False):
    """The arguments of both processors, see :class:`Settings`. ``token``: the collector's bearer token."""

    token: str | None
    headers: Mapping[str, str] | None
    certificate: str | None
    client_certificate: str | None
    client_key: str | None
    compression: Literal["auto", "gzip", "none"] | None
    redact: Redact | None
    queue_size: int | None
    held_bytes: int | None
    buffer_bytes: int | None
    timeout: float | None
    shutdown_timeout: float | None
    telemetry: ProcessorTelemetry | None


def settings(environ: Mapping[str, str] | None = None, **given: Any) -> Settings:
    """Return settings from non-``None`` arguments, else the environment. Raises :class:`ValueError`."""
    environ = os.environ if environ is None else environ
    values = {name: value for name, value in given.items() if value is not None}
    token = values.pop("token", None)
    for name, (variable, read) in _VARIABLES.items():
        if name not in values and environ.get(variable, "").strip():
            values |= _read(name, variable, environ[variable].strip(), read)
    token = token or environ.get("PANDAEVAL_TOKEN", "").strip()
    headers = {key.lower(): value for key, value in dict(values.pop("headers", ())).items()}
    if token:
        headers["authorization"] = f"Bearer {token}"
    chosen = Settings(headers=tuple(headers.items()), **values)
    if bool(chosen.client_certificate) != bool(chosen.client_key):
        _log.warning("PANDAEVAL_CLIENT_CERTIFICATE and PANDAEVAL_CLIENT_KEY go together: set both; now neither is used")
        chosen = replace(chosen, client_certificate="", client_key="")
    if not chosen.secure and (chosen.certificate or chosen.client_certificate):
        _log.warning("a certificate is set, but %s uses no TLS: write https://HOST:PORT", chosen.endpoint)
    return chosen


def enabled() -> bool:
    """Return whether processors are active: not with OTEL_SDK_DISABLED true or PANDAEVAL_ENABLED false."""
    disabled = os.environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true"
    return not disabled and os.environ.get("PANDAEVAL_ENABLED", "").strip().lower() not in ("false", "0", "no", "off")


def _read(name: str, variable: str, text: str, read: Callable[[str], Any]) -> dict[str, Any]:
    try:
        value = {name: read(text)}
        Settings(**value)
    except Exception as error:  # importing a redactor runs the user's code, which can raise any exception
        if name == "redact":
            raise ValueError(
                f"{variable}={text!r} cannot be used ({error}): write package.module:function, or unset the variable"
            ) from error
        _log.warning("%s is ignored: %s", variable, error)
        return {}
    return value


def _headers(text: str) -> tuple[tuple[str, str], ...]:
    """Read ``key=value,key=value``, percent-encoded."""
    pairs = (part.partition("=") for part in text.split(",") if part.strip())
    return tuple((unquote(key.strip()), unquote(value.strip())) for key, _, value in pairs)


def _named(text: str) -> Redact:
    module, _, name = text.partition(":")
    function = getattr(importlib.import_module(module), name)
    if not callable(function):
        raise TypeError(f"{text} is not a function")
    return function  # type: ignore[no-any-return]


def _is_local(target: str) -> bool:
    if target.startswith("unix:"):
        return True
    host = target.rpartition(":")[0].strip("[]") or target
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


_VARIABLES: Mapping[str, tuple[str, Callable[[str], Any]]] = {
    "endpoint": ("PANDAEVAL_ENDPOINT", str),
    "headers": ("PANDAEVAL_HEADERS", _headers),
    "certificate": ("PANDAEVAL_CERTIFICATE", str),
    "client_certificate": ("PANDAEVAL_CLIENT_CERTIFICATE", str),
    "client_key": ("PANDAEVAL_CLIENT_KEY", str),
    "compression": ("PANDAEVAL_COMPRESSION", str.lower),
    "redact": ("PANDAEVAL_REDACTOR", _named),
    "queue_size": ("PANDAEVAL_QUEUE_SIZE", int),
    "held_bytes": ("PANDAEVAL_HELD_BYTES", int),
    "buffer_bytes": ("PANDAEVAL_BUFFER_BYTES", int),
    "timeout": ("PANDAEVAL_TIMEOUT", float),
    "shutdown_timeout": ("PANDAEVAL_SHUTDOWN_TIMEOUT", float),
}
VARIABLES = (*(variable for variable, _ in _VARIABLES.values()), "PANDAEVAL_TOKEN", "PANDAEVAL_ENABLED")
"""All environment variables of the processors. A test compares them with the docs."""
