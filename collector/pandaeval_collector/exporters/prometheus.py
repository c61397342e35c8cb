"""Series for Prometheus to scrape: OpenMetrics with exemplars for those who ask for it, else the classic text."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Iterable, Iterator, Sequence

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector
from prometheus_client.samples import Exemplar as PrometheusExemplar

from pandaeval_collector.exporters._naming import label_name, metric_name
from pandaeval_collector.exporters.own import own_points
from pandaeval_collector.exporters.zero_first import ZeroFirst
from pandaeval_collector.series import Exemplar, Point
from pandaeval_collector.telemetry import Telemetry

Bucket = tuple[str, float] | tuple[str, float, PrometheusExemplar]

_NOTE_AFTER_S = 1.0


class Scrape:
    """Answers scrapes with the collector's own numbers and, given ``series``, with the scores."""

    def __init__(self, telemetry: Telemetry, series: ZeroFirst | None) -> None:
        self._telemetry, self._series = telemetry, series

    async def render(self, accept: str) -> tuple[bytes, str]:
        """Body and content type that fit the ``accept`` header of the request."""
        now = time.time()
        own = own_points(self._telemetry)
        points, text, content_type = await asyncio.to_thread(self._render, accept, own, now)
        if self._series is not None:
            # Not before the answer is out: a zero that was noted and never seen would be no zero.
            asyncio.get_running_loop().call_later(_NOTE_AFTER_S, self._series.shown, points, now)
        return text, content_type

    def _render(self, accept: str, own: Sequence[Point], now: float) -> tuple[list[Point], bytes, str]:
        points = self._series.points(now) if self._series is not None else []
        return points, *exposition([*own, *points], accept)


def exposition(points: Iterable[Point], accept: str) -> tuple[bytes, str]:
    """Points as text, in the format that ``accept`` asks for, and its content type. Pure."""
    registry = CollectorRegistry()
    registry.register(_Families(points))
    encoder, content_type = choose_encoder(accept)
    return encoder(registry), content_type


class _Families(Collector):
    def __init__(self, points: Iterable[Point]) -> None:
        self._points = sorted(points, key=lambda point: point.instrument.name)

    def collect(self) -> Iterator[Metric]:
        for _, group in itertools.groupby(self._points, key=lambda point: point.instrument.name):
            yield _family(list(group))


def _family(points: Sequence[Point]) -> Metric:
    """One family of points that need not have the same labels: what is absent has no label."""
    whole = _of_one(points[0])
    for point in points[1:]:
        whole.samples.extend(_of_one(point).samples)
    return whole


def _of_one(point: Point) -> Metric:
    instrument = point.instrument
    name, unit = metric_name(instrument.name, instrument.unit)
    labels = [label_name(key) for key, _ in point.attributes]
    values = [value for _, value in point.attributes]
    exemplars = {index: _exemplar(found) for index, found in point.exemplars}
    match instrument.kind:
        case "histogram":
            histogram = HistogramMetricFamily(name, instrument.description, labels=labels, unit=unit)
            histogram.add_metric(values, _buckets(point, exemplars), point.total)
            return histogram
        case "counter":
            counter = CounterMetricFamily(name, instrument.description, labels=labels, unit=unit)
            counter.add_metric(values, point.total, exemplar=exemplars.get(0))
            return counter
        case _:
            gauge = GaugeMetricFamily(name, instrument.description, labels=labels, unit=unit)
            gauge.add_metric(values, point.total)
            return gauge


def _buckets(point: Point, exemplars: dict[int, PrometheusExemplar]) -> list[Bucket]:
    """Cumulative counts by upper bound, as Prometheus has them."""
    bounds = [*(str(float(bound)) for bound in point.instrument.bounds), "+Inf"]
    counts = itertools.accumulate(point.buckets)
    found: list[Bucket] = []
    for index, (bound, count) in enumerate(zip(bounds, counts, strict=True)):
        found.append((bound, count, exemplars[index]) if index in exemplars else (bound, count))
    return found


def _exemplar(exemplar: Exemplar) -> PrometheusExemplar:
    """64 characters of labels; OpenMetrics allows 128."""
    labels = {"trace_id": exemplar.trace_id, "span_id": exemplar.span_id}
    return PrometheusExemplar(labels, exemplar.value, exemplar.time_ns / 1e9)
