"""Results to an OpenTelemetry backend: log events, spans and metrics, each with an endpoint and a place of its own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, Protocol

from pandaeval_collector.exporters._protocol import Exporter, Repeating, Surroundings

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


def exporters(settings: OtlpSettings, around: Surroundings) -> Iterator[Exporter | Repeating]:
    """One for each signal that has somewhere to go."""
    if any(settings.endpoint_of(signal) for signal in SIGNALS):
        # Here, since a collector without OTLP output needs no HTTP client.
        from pandaeval_collector.exporters._otlp.build import build

        yield from build(settings, around)
