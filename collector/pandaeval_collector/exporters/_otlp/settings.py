"""What the OTLP exporters read of the configuration."""

from __future__ import annotations

from typing import Literal, Protocol

Signal = Literal["logs", "traces", "metrics"]
SIGNALS: tuple[Signal, ...] = ("logs", "traces", "metrics")


class SignalSettings(Protocol):
    """``exporters.otlp.logs`` and its like."""

    @property
    def endpoint(self) -> str | None: ...


class OtlpSettings(Protocol):
    """``exporters.otlp``."""

    @property
    def protocol(self) -> str: ...
    @property
    def insecure(self) -> bool: ...
    @property
    def certificate(self) -> str | None: ...
    @property
    def client_certificate(self) -> str | None: ...
    @property
    def client_key(self) -> str | None: ...
    @property
    def headers_env(self) -> str | None: ...
    @property
    def metrics_interval(self) -> float: ...
    @property
    def logs(self) -> SignalSettings: ...
    @property
    def traces(self) -> SignalSettings: ...
    @property
    def metrics(self) -> SignalSettings: ...
    def endpoint_of(self, signal: Signal, /) -> str | None: ...
