"""Where results go."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from pandaeval_collector.config._types import Count, Endpoint, EnvName, FilePath, PositiveDuration, Section, group
from pandaeval_collector.series import MAX_SERIES


class OtlpSignal(Section):
    """One of the three surfaces over OTLP."""

    endpoint: Endpoint | None = Field(default=None, description="Endpoint of this signal alone; null: otlp.endpoint.")
    enabled: bool = Field(default=True, description="Whether this signal is sent.")


class Otlp(Section):
    """Results to an OpenTelemetry backend, as spans, metrics and log events."""

    endpoint: Endpoint | None = Field(
        default=None,
        description="Where results go, HOST:PORT or URL; null: nowhere, unless a signal has its own.",
    )
    protocol: Literal["grpc", "http/protobuf"] = Field(default="grpc", description="How OTLP is spoken.")
    insecure: bool = Field(
        default=True, description="Plain text where the endpoint is HOST:PORT; a URL's http or https decides by itself."
    )
    certificate: FilePath | None = Field(
        default=None,
        description="File with the authority that signed the sink's certificate, PEM; null: the usual ones.",
    )
    client_certificate: FilePath | None = Field(
        default=None, description="File with the certificate that is shown to the sink (mTLS), PEM; with client_key."
    )
    client_key: FilePath | None = Field(
        default=None, description="File with the private key of client_certificate, PEM, without a password."
    )
    headers_env: EnvName | None = Field(
        default=None, description="Name of the environment variable with headers, written name=value,name=value."
    )
    traces: OtlpSignal = group(OtlpSignal, "Evaluation spans.")
    metrics: OtlpSignal = group(OtlpSignal, "Score histograms and counters.")
    logs: OtlpSignal = group(OtlpSignal, "Events named gen_ai.evaluation.result.")
    metrics_interval: PositiveDuration = Field(
        default=15.0,
        description="Time between two exports of metrics. A new series is scraped as 0 for that long, so make it no "
        "shorter than the scrape interval.",
    )

    def endpoint_of(self, signal: Literal["traces", "metrics", "logs"]) -> str | None:
        """Where ``signal`` is sent; ``None`` when it is switched off or has no endpoint."""
        settings: OtlpSignal = getattr(self, signal)
        return (settings.endpoint or self.endpoint) if settings.enabled else None


class Prometheus(Section):
    """The scrape endpoint on the health listener."""

    enabled: bool = Field(default=True, description="Whether /metrics is served.")
    results: bool | None = Field(
        default=None,
        description="Whether scores are scraped too; null: only when no OTLP metrics endpoint is set, so that they "
        "are not counted twice.",
    )


class Jsonl(Section):
    """Results as lines of JSON in a file."""

    path: FilePath | None = Field(default=None, description="File that results are appended to; null: none.")


class Exporters(Section):
    """Where results go; each exporter and signal at its own pace."""

    otlp: Otlp = group(Otlp)
    prometheus: Prometheus = group(Prometheus)
    jsonl: Jsonl = group(Jsonl)
    max_series: Count = Field(
        default=MAX_SERIES,
        description="Most series of scores and counters; what is new beyond them is counted under agent, service and "
        "environment __other__.",
    )

    @property
    def scrape_results(self) -> bool:
        """Whether the scrape endpoint shows scores besides the collector's own health figures."""
        if self.prometheus.results is None:
            return self.otlp.endpoint_of("metrics") is None
        return self.prometheus.results
