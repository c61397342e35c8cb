"""Series as OTLP metrics."""

from __future__ import annotations

import pytest
from opentelemetry.proto.metrics.v1.metrics_pb2 import AggregationTemporality, Metric

from pandaeval_collector.base.instrument import Instrument
from pandaeval_collector.base.telemetry import Telemetry
from pandaeval_collector.exporters._otlp.build import metrics
from pandaeval_collector.exporters.zero_first import own_points
from pandaeval_collector.store.series import EVALUATIONS, SCORE, Exemplar, Point
from support.otlp_sink import attributes
from support.results import SPAN_ID, TRACE_ID

CUMULATIVE = AggregationTemporality.AGGREGATION_TEMPORALITY_CUMULATIVE
EXEMPLAR = Exemplar(0.42, TRACE_ID, SPAN_ID, 77)
LABELS = (("gen_ai.evaluation.name", "coherence"),)
NOW_NS = 99


def encoded(*points: Point) -> list[Metric]:
    return [Metric.FromString(metric) for metric in metrics(points, NOW_NS)]


def test_a_histogram_has_cumulative_buckets_and_exemplars() -> None:
    buckets = (1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1)
    [metric] = encoded(Point(SCORE, LABELS, 5, 3, 1.9, buckets, ((5, EXEMPLAR),)))
    assert (metric.name, metric.unit) == ("pandaeval.evaluation.score", "{score}")
    assert metric.histogram.aggregation_temporality == CUMULATIVE
    [point] = metric.histogram.data_points
    assert list(point.explicit_bounds) == [0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99]
    assert tuple(point.bucket_counts) == buckets
    assert (point.count, point.sum, point.start_time_unix_nano, point.time_unix_nano) == (3, 1.9, 5, 99)
    assert attributes(point.attributes) == dict(LABELS)
    [exemplar] = point.exemplars
    assert (exemplar.trace_id.hex(), exemplar.span_id.hex()) == (TRACE_ID, SPAN_ID)
    assert (exemplar.as_double, exemplar.time_unix_nano) == (0.42, 77)


def test_a_counter_is_a_cumulative_monotonic_sum() -> None:
    [metric] = encoded(Point(EVALUATIONS, LABELS, 5, 3, 3.0, (3,), ((0, EXEMPLAR),)))
    assert (metric.name, metric.unit) == ("pandaeval.evaluations", "{evaluation}")
    assert (metric.sum.aggregation_temporality, metric.sum.is_monotonic) == (CUMULATIVE, True)
    [point] = metric.sum.data_points
    assert (point.as_double, point.start_time_unix_nano, point.exemplars[0].as_double) == (3.0, 5, 0.42)
    assert (point.time_unix_nano, attributes(point.attributes)) == (99, dict(LABELS))


def test_a_gauge_has_no_start_time() -> None:
    gauge = Instrument("pandaeval.lag", "gauge", "s", "How long")
    [metric] = encoded(Point(gauge, LABELS, 5, 1, 0.25, (), ()))
    assert (metric.name, metric.unit, metric.description) == ("pandaeval.lag", "s", "How long")
    [point] = metric.gauge.data_points
    assert (point.as_double, point.start_time_unix_nano, point.time_unix_nano) == (0.25, 0, 99)
    assert attributes(point.attributes) == dict(LABELS)


@pytest.mark.parametrize(("began", "start"), [(98, 98), (99, 99), (100, 99), (10**18, 99)])
def test_all_points_have_the_same_time_and_no_later_start(began: int, start: int) -> None:
    """A series can start while a request is built, or before the clock was set back."""
    counter, histogram = encoded(
        Point(EVALUATIONS, LABELS, began, 1, 1.0, (1,), ()), Point(SCORE, LABELS, began, 1, 0.5, (0,) * 13, ())
    )
    for point in (*counter.sum.data_points, *histogram.histogram.data_points):
        assert (point.start_time_unix_nano, point.time_unix_nano) == (start, NOW_NS)


def test_each_instrument_is_a_metric_with_a_description() -> None:
    found = encoded(Point(EVALUATIONS, LABELS, 5, 3, 3.0, (3,), ()), Point(SCORE, LABELS, 5, 1, 0.5, (0,) * 13, ()))
    assert [(each.name, each.description) for each in found] == [
        (each.name, each.description) for each in (EVALUATIONS, SCORE)
    ]


def test_points_of_one_instrument_are_one_metric() -> None:
    two = [Point(EVALUATIONS, (("pandaeval.level", level),), 5, 1, 1.0, (1,), ()) for level in ("trace", "session")]
    [metric] = encoded(*two)
    assert len(metric.sum.data_points) == 2


def test_the_collectors_own_counters_and_gauges_are_exported() -> None:
    telemetry = Telemetry()
    telemetry.add("pandaeval.spans", "stored", 7)
    telemetry.add("pandaeval.exporter.items", "dropped", 2, "too_large", exporter="otlp", signal="logs")
    telemetry.gauge("pandaeval.lag", lambda: 0.5)
    found = {metric.name: metric for metric in encoded(*own_points(telemetry))}
    spans = {attributes(p.attributes)["pandaeval.outcome"]: p for p in found["pandaeval.spans"].sum.data_points}
    assert spans["stored"].as_double == 7
    assert spans["decoded"].as_double == 0, "counters are shown from 0"
    assert own_points(telemetry)[0].start_ns == telemetry.start_ns
    [dropped] = found["pandaeval.exporter.items"].sum.data_points
    assert attributes(dropped.attributes) == {
        "pandaeval.outcome": "dropped",
        "pandaeval.reason": "too_large",
        "pandaeval.exporter": "otlp",
        "pandaeval.signal": "logs",
    }
    assert found["pandaeval.lag"].unit == "s"
    assert found["pandaeval.lag"].gauge.data_points[0].as_double == 0.5
    assert telemetry.counts() == {
        ("pandaeval.spans", "stored", ""): 7,
        ("pandaeval.exporter.items", "dropped", "too_large"): 2,
    }


def test_the_passed_attribute_is_a_boolean() -> None:
    [metric] = encoded(Point(EVALUATIONS, (*LABELS, ("pandaeval.passed", "false")), 5, 3, 3.0, (3,), ()))
    [point] = metric.sum.data_points
    assert attributes(point.attributes) == {**dict(LABELS), "pandaeval.passed": False}
