"""An exporter per signal: log events and spans from the outbox, all series at each interval."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.metrics.v1.metrics_pb2 import (
    AggregationTemporality,
    Exemplar as OtlpExemplar,
    HistogramDataPoint,
    Metric,
    NumberDataPoint,
)

from pandaeval_collector.base.telemetry import Telemetry
from pandaeval_collector.exporters import Exporter, Repeating, Row, Sent, Surroundings
from pandaeval_collector.exporters._otlp.answers import BatchTooLargeError, OtlpSink, RefusedError
from pandaeval_collector.exporters._otlp.transport import (
    Envelope,
    GrpcTransport,
    HttpTransport,
    Transport,
    Trust,
    target,
)
from pandaeval_collector.exporters.otlp import SIGNALS, Otlp
from pandaeval_collector.exporters.zero_first import ZeroFirst, new_ones, own_points
from pandaeval_collector.store.series import Point

_CUMULATIVE = AggregationTemporality.AGGREGATION_TEMPORALITY_CUMULATIVE
_MAX_POINTS = 500
"""Maximum points per request: at most 2 MiB with any names."""
_MAX_ROWS = 512
_REJECTED = "rejected_by_sink"
_MAX_BYTES = 2 << 20
"""Half of the default limit of gRPC servers."""
_PASSED = "pandaeval.passed"
"""A boolean attribute in OTLP. In Prometheus, labels are texts."""

T = TypeVar("T")


def _value(key: str, value: str) -> AnyValue:
    return AnyValue(bool_value=value == "true") if key == _PASSED else AnyValue(string_value=value)


class SignalExporter:
    """Sends a signal's items, at most ``max_items`` per request."""

    def __init__(self, signal: str, transport: Transport, envelope: Envelope, max_items: int) -> None:
        self.name = f"otlp.{signal}"
        self._transport, self._envelope, self._sink = transport, envelope, OtlpSink(self.name)
        self._max_items = max_items

    @property
    def off(self) -> bool:
        return self._sink.off

    async def close(self) -> None:
        await self._transport.close()

    async def _send_some(self, items: Sequence[T], encode: Callable[[Sequence[T]], Iterable[bytes]]) -> Sent:
        while True:
            batch = items[: self._max_items]
            request = await asyncio.to_thread(lambda some: self._envelope.request(encode(some)), batch)
            try:
                response = await self._transport.send(request)
            except RefusedError as error:
                if isinstance(error, BatchTooLargeError) and len(batch) > 1:
                    self._max_items = len(batch) // 2
                    continue
                self._sink.refused(len(batch), error)
                return Sent(len(batch), dropped={error.reason: len(batch)})
            return Sent(len(batch), dropped={_REJECTED: self._sink.took(len(batch), response)})


class ItemExporter(SignalExporter):
    """``Exporter`` of ``logs`` or ``traces``."""

    def __init__(self, signal: str, transport: Transport, envelope: Envelope) -> None:
        super().__init__(signal, transport, envelope, _MAX_ROWS)
        self.source = signal

    async def open(self, position: str) -> str:
        await self._transport.open()
        return ""

    async def export(self, rows: Sequence[Row]) -> Sent:
        if self._sink.left_alone:
            return Sent(len(rows), dropped={"unimplemented": len(rows)})
        sent = await self._send_some(_fitting(rows), lambda some: (row.body for row in some))
        if _REJECTED in sent.dropped:
            self._max_items = min(_MAX_ROWS, 2 * self._max_items)
        return sent


def _fitting(rows: Sequence[Row]) -> Sequence[Row]:
    size = 0
    for index, row in enumerate(rows):
        size += len(row.body)
        if size > _MAX_BYTES:
            return rows[: max(1, index)]
    return rows


def metrics(points: Iterable[Point], now_ns: int) -> Iterator[bytes]:
    """Encode a ``Metric`` per instrument from its consecutive ``points``, all at ``now_ns``.

    If one point had a later time, Prometheus would refuse the next requests: ``target_info`` has the latest time.
    """
    for instrument, group in itertools.groupby(points, key=lambda point: point.instrument):
        metric = Metric(name=instrument.name, unit=instrument.unit, description=instrument.description)
        match instrument.kind:
            case "histogram":
                metric.histogram.aggregation_temporality = _CUMULATIVE
                metric.histogram.data_points.extend(_data_point(point, now_ns) for point in group)
            case "counter":
                metric.sum.aggregation_temporality = _CUMULATIVE
                metric.sum.is_monotonic = True
                metric.sum.data_points.extend(_data_point(point, now_ns) for point in group)
            case _:
                metric.gauge.data_points.extend(_data_point(point, now_ns) for point in group)
        yield metric.SerializeToString()


def _data_point(point: Point, now_ns: int) -> Any:
    kind = point.instrument.kind
    common: Any = {
        "attributes": [KeyValue(key=key, value=_value(key, value)) for key, value in point.attributes],
        "start_time_unix_nano": 0 if kind == "gauge" else min(point.start_ns, now_ns),
        "time_unix_nano": now_ns,
        "exemplars": [
            OtlpExemplar(
                time_unix_nano=exemplar.time_ns,
                as_double=exemplar.value,
                trace_id=bytes.fromhex(exemplar.trace_id),
                span_id=bytes.fromhex(exemplar.span_id),
            )
            for _, exemplar in point.exemplars
        ],
    }
    if kind != "histogram":
        return NumberDataPoint(as_double=point.total, **common)
    bounds, counts = point.instrument.bounds, point.buckets
    return HistogramDataPoint(
        count=point.count, sum=point.total, explicit_bounds=bounds, bucket_counts=counts, **common
    )


class MetricsExporter(SignalExporter):
    """``Repeating`` exporter of scores and the collector's own numbers."""

    def __init__(
        self, transport: Transport, envelope: Envelope, series: ZeroFirst, telemetry: Telemetry, interval: float
    ) -> None:
        super().__init__("metrics", transport, envelope, _MAX_POINTS)
        self.interval, self._series, self._telemetry = interval, series, telemetry

    async def open(self) -> None:
        await self._transport.open()

    async def send(self, last: bool = False) -> None:
        now = time.time()
        await self._send(own_points(self._telemetry), now)
        had_new = await self._send_series(now, hold=True)
        if last and had_new:
            await self._send_series(time.time(), hold=False)  # else it is unknown when values follow their zeros

    async def _send_series(self, now: float, hold: bool) -> bool:
        pages = self._series.pages(now, hold)
        had_new = False
        while (points := await asyncio.to_thread(next, pages, None)) is not None:
            had_new = had_new or bool(new_ones(points))
            await self._send(points, now)
        return had_new

    async def _send(self, points: Sequence[Point], now: float) -> None:
        while points and not self._sink.left_alone:
            sent = await self._send_some(points, lambda some: metrics(some, int(now * 1e9)))
            for reason, count in sent.dropped.items():
                self._telemetry.add(
                    "pandaeval.exporter.items", "dropped", count, reason, exporter="otlp", signal="metrics"
                )
            if _REJECTED in sent.dropped:
                await self._series.shown(new_ones(points[: sent.rows]), now)
            points = points[sent.rows :]


def build(settings: Otlp, around: Surroundings) -> Iterator[Exporter | Repeating]:
    trust = Trust(settings.certificate, settings.client_certificate, settings.client_key)
    envelope, interval = Envelope(around.instance_id), settings.metrics_interval
    headers = around.environ.get(settings.headers_env, "") if settings.headers_env else ""
    for signal in SIGNALS:
        endpoint, own = settings.endpoint_of(signal), getattr(settings, signal)
        if endpoint is None:
            continue
        own_path = own.endpoint is not None
        where = target(endpoint, signal, settings.protocol, settings.insecure, headers=headers, own_path=own_path)
        transport = GrpcTransport(where, signal, trust) if settings.protocol == "grpc" else HttpTransport(where, trust)
        if signal == "metrics":
            # A little less than the interval: timers are not exact, and one zero is enough.
            series = ZeroFirst(around.store, "otlp", 0.9 * interval)
            yield MetricsExporter(transport, envelope, series, around.telemetry, interval)
        else:
            yield ItemExporter(signal, transport, envelope)
