"""Series as OTLP metrics: cumulative, with exemplars."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator

from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.metrics.v1.metrics_pb2 import (
    AggregationTemporality,
    HistogramDataPoint,
    Metric,
    NumberDataPoint,
)
from opentelemetry.proto.metrics.v1.metrics_pb2 import Exemplar as OtlpExemplar

from pandaeval_collector.store.series import Exemplar, Point

_CUMULATIVE = AggregationTemporality.AGGREGATION_TEMPORALITY_CUMULATIVE


def metrics(points: Iterable[Point], now_ns: int) -> Iterator[bytes]:
    """One encoded ``Metric`` per instrument. ``points``: those of an instrument one after the other."""
    for instrument, group in itertools.groupby(points, key=lambda point: point.instrument):
        metric = Metric(name=instrument.name, unit=instrument.unit, description=instrument.description)
        match instrument.kind:
            case "histogram":
                metric.histogram.aggregation_temporality = _CUMULATIVE
                metric.histogram.data_points.extend(_histogram(point, now_ns) for point in group)
            case "counter":
                metric.sum.aggregation_temporality = _CUMULATIVE
                metric.sum.is_monotonic = True
                metric.sum.data_points.extend(_number(point, now_ns) for point in group)
            case _:
                metric.gauge.data_points.extend(_number(point, now_ns) for point in group)
        yield metric.SerializeToString()


def _histogram(point: Point, now_ns: int) -> HistogramDataPoint:
    return HistogramDataPoint(
        attributes=_attributes(point),
        start_time_unix_nano=point.start_ns,
        time_unix_nano=max(now_ns, point.start_ns),
        count=point.count,
        sum=point.total,
        explicit_bounds=point.instrument.bounds,
        bucket_counts=point.buckets,
        exemplars=[_exemplar(exemplar) for _, exemplar in point.exemplars],
    )


def _number(point: Point, now_ns: int) -> NumberDataPoint:
    return NumberDataPoint(
        attributes=_attributes(point),
        start_time_unix_nano=point.start_ns if point.instrument.kind == "counter" else 0,
        time_unix_nano=max(now_ns, point.start_ns),
        as_double=point.total,
        exemplars=[_exemplar(exemplar) for _, exemplar in point.exemplars],
    )


def _attributes(point: Point) -> list[KeyValue]:
    return [KeyValue(key=key, value=AnyValue(string_value=value)) for key, value in point.attributes]


def _exemplar(exemplar: Exemplar) -> OtlpExemplar:
    return OtlpExemplar(
        time_unix_nano=exemplar.time_ns,
        as_double=exemplar.value,
        trace_id=bytes.fromhex(exemplar.trace_id),
        span_id=bytes.fromhex(exemplar.span_id),
    )
