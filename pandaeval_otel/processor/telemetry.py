"""Processor metrics: a protocol and an OpenTelemetry implementation.

Each ended span counts as ``ended``, later as ``acknowledged`` (stored), ``rejected`` or ``dropped``. At rest ``ended``
equals the sum of the others. Log records likewise.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import Protocol

from opentelemetry.metrics import CallbackOptions, MeterProvider, Observation, get_meter_provider

ENDED, ACKNOWLEDGED, REJECTED, DROPPED = "ended", "acknowledged", "rejected", "dropped"
QUEUE, HELD, BUFFERED = "queue", "held", "buffered"


class ProcessorTelemetry(Protocol):
    """Receives counts on the worker thread, after a shutdown also on application threads. Must not block."""

    def count(self, signal: str, outcome: str, number: int, reason: str = "") -> None:
        """Count ``number`` items.

        ``signal``: ``spans``, ``logs`` or ``traces``. ``reason``: for ``rejected`` and ``dropped``.
        """
        ...

    def watch(self, what: str, read: Callable[[], int]) -> None:
        """Register ``read``, which returns items in the ``queue``, or bytes ``held`` or ``buffered``."""
        ...


class MetricsTelemetry:
    """Counters ``pandaeval.processor.{spans,logs,traces}`` and gauges ``pandaeval.processor.{queue,held,buffered}``."""

    def __init__(self, provider: MeterProvider | None = None) -> None:
        self._meter = (provider or get_meter_provider()).get_meter("pandaeval_otel")
        self._counters = {
            signal: self._meter.create_counter(f"pandaeval.processor.{signal}", f"{{{signal[:-1]}}}")
            for signal in ("spans", "logs", "traces")
        }

    def count(self, signal: str, outcome: str, number: int, reason: str = "") -> None:
        attributes = {"pandaeval.outcome": outcome}
        if reason:
            attributes["pandaeval.reason"] = reason
        self._counters[signal].add(number, attributes)

    def watch(self, what: str, read: Callable[[], int]) -> None:
        def observe(_: CallbackOptions) -> Iterable[Observation]:
            return (Observation(read()),)

        self._meter.create_observable_gauge(
            f"pandaeval.processor.{what}", (observe,), "{item}" if what == QUEUE else "By"
        )


def telemetry_by_environment() -> ProcessorTelemetry | None:
    """Return OpenTelemetry metrics if the SDK's own metrics are enabled, else ``None``."""
    if os.environ.get("OTEL_PYTHON_SDK_INTERNAL_METRICS_ENABLED", "").strip().lower() == "true":
        return MetricsTelemetry()
    return None
