"""Sends results to an OpenTelemetry backend: log events, spans and metrics, each with an endpoint and a cursor of its
own."""

from __future__ import annotations

from collections.abc import Iterator

from pandaeval_collector.exporters._otlp.settings import SIGNALS, Otlp
from pandaeval_collector.exporters._protocol import Exporter, Repeating, Surroundings

SETTINGS = Otlp


def exporters(settings: Otlp, around: Surroundings) -> Iterator[Exporter | Repeating]:
    """Makes an exporter for each signal that has an endpoint."""
    if any(settings.endpoint_of(signal) for signal in SIGNALS):
        # Here, since a collector without OTLP output needs no HTTP client.
        from pandaeval_collector.exporters._otlp.build import build

        yield from build(settings, around)
