"""Sends log events, spans and metrics to an OpenTelemetry backend, each with endpoint and cursor."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from pandaeval_collector.base.section import Endpoint, EnvName, FilePath, PositiveDuration, Section, group
from pandaeval_collector.exporters import Exporter, Repeating, Surroundings

Signal = Literal["logs", "traces", "metrics"]
SIGNALS: tuple[Signal, ...] = ("logs", "traces", "metrics")


class OtlpSignal(Section):
    """One of the three surfaces over OTLP."""

    endpoint: Endpoint | None = None
    """Endpoint of this signal. If null, exporters.otlp.endpoint applies."""
    enabled: bool = True
    """Send this signal."""


class Otlp(Section):
    """Results to an OpenTelemetry backend, as spans, metrics and log events."""

    endpoint: Endpoint | None = None
    """Endpoint for results, HOST:PORT or URL. If null, only signals with their own endpoint are sent."""
    protocol: Literal["grpc", "http/protobuf"] = "grpc"
    """OTLP protocol."""
    insecure: bool = True
    """Use no TLS for an endpoint of the form HOST:PORT. For a URL, its scheme (http or https) decides."""
    certificate: FilePath | None = None
    """PEM file with the CA of the backend's certificate. If null, the system's CAs apply."""
    client_certificate: FilePath | None = None
    """PEM file with the client certificate for mutual TLS. Set client_key too."""
    client_key: FilePath | None = None
    """PEM file with the private key of client_certificate, without a password."""
    headers_env: EnvName | None = None
    """Name of the environment variable with the headers, in the form name=value,name=value."""
    traces: OtlpSignal = group(OtlpSignal, "Evaluation spans.")
    metrics: OtlpSignal = group(OtlpSignal, "Score histograms and counters.")
    logs: OtlpSignal = group(OtlpSignal, "Events named gen_ai.evaluation.result.")
    metrics_interval: PositiveDuration = 15.0
    """Time between two exports of metrics. A new series is 0 for this time. Prometheus must see this 0, so use at least
    the scrape interval."""

    def endpoint_of(self, signal: Signal) -> str | None:
        """Return the target of ``signal``; ``None`` if off or without endpoint."""
        settings: OtlpSignal = getattr(self, signal)
        return (settings.endpoint or self.endpoint) if settings.enabled else None


SETTINGS = Otlp


def exporters(settings: Otlp, around: Surroundings) -> Iterator[Exporter | Repeating]:
    if any(settings.endpoint_of(signal) for signal in SIGNALS):
        # Here, since a collector without OTLP output needs no HTTP client.
        from pandaeval_collector.exporters._otlp.build import build

        yield from build(settings, around)
