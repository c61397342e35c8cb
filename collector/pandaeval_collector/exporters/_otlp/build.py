"""Builds one exporter per signal from the configuration."""

from __future__ import annotations

from collections.abc import Iterator

from pandaeval_collector.exporters._otlp.items import ItemExporter
from pandaeval_collector.exporters._otlp.metrics import MetricsExporter
from pandaeval_collector.exporters._otlp.over_grpc import GrpcTransport
from pandaeval_collector.exporters._otlp.over_http import HttpTransport
from pandaeval_collector.exporters._otlp.settings import SIGNALS, Otlp, OtlpSignal, Signal
from pandaeval_collector.exporters._otlp.target import SignalTarget, target
from pandaeval_collector.exporters._otlp.transport import Envelope
from pandaeval_collector.exporters._otlp.trust import Trust
from pandaeval_collector.exporters._protocol import Exporter, Repeating, Surroundings
from pandaeval_collector.exporters.zero_first import ZeroFirst


def build(settings: Otlp, around: Surroundings) -> Iterator[Exporter | Repeating]:
    """One exporter for each signal with an endpoint. The exporters are not open yet."""
    trust = Trust(settings.certificate, settings.client_certificate, settings.client_key)
    envelope, interval = Envelope(around.instance_id), settings.metrics_interval
    for signal in SIGNALS:
        where = _target(settings, signal, around)
        if where is None:
            continue
        transport = GrpcTransport(where, signal, trust) if settings.protocol == "grpc" else HttpTransport(where, trust)
        if signal == "metrics":
            # A little less than the interval: timers are not exact, and one zero is enough.
            series = ZeroFirst(around.store, "otlp", 0.9 * interval)
            yield MetricsExporter(transport, envelope, series, around.telemetry, interval)
        else:
            yield ItemExporter(signal, transport, envelope)


def _target(settings: Otlp, signal: Signal, around: Surroundings) -> SignalTarget | None:
    endpoint = settings.endpoint_of(signal)
    if endpoint is None:
        return None
    headers = around.environ.get(settings.headers_env, "") if settings.headers_env else ""
    own: OtlpSignal = getattr(settings, signal)
    return target(
        endpoint, signal, settings.protocol, settings.insecure, headers=headers, own_path=own.endpoint is not None
    )
