"""The scrape text, read with Prometheus' parsers."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.exposition import generate_latest as classic_text
from prometheus_client.openmetrics.exposition import generate_latest as openmetrics_text
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics
from prometheus_client.parser import text_string_to_metric_families as classic
from prometheus_client.registry import Collector
from prometheus_client.samples import Exemplar as Shown, Sample
from prometheus_client.utils import floatToGoString

from pandaeval_collector.base.instrument import Instrument
from pandaeval_collector.base.telemetry import INSTRUMENTS
from pandaeval_collector.exporters.prometheus import ScrapeText, content_type, label_name, metric_name
from pandaeval_collector.store.series import EVALUATIONS, SCORE, Exemplar, Point
from support.results import SPAN_ID, TRACE_ID

OPENMETRICS = "application/openmetrics-text; version=1.0.0; q=0.9, text/plain; q=0.5"
PROMETHEUS_2 = (
    "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,"
    "text/plain;version=0.0.4;q=0.5,*/*;q=0.1"
)
PLAIN = "text/plain"
ATTRIBUTES = (("gen_ai.evaluation.name", "coherence"), ("pandaeval.service", 'sh"op\\\n'))
EXEMPLAR = Exemplar(0.42, TRACE_ID, SPAN_ID, 1_772_366_400_250_000_000)
HISTOGRAM = Point(
    SCORE, ATTRIBUTES, 1, 3, 1.9, (1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1), ((5, EXEMPLAR), (12, EXEMPLAR))
)
COUNTER = Point(EVALUATIONS, ATTRIBUTES, 1, 3, 3.0, (3,), ((0, EXEMPLAR),))
SPECIAL = ("inf", "-inf", "nan")
both_formats = pytest.mark.parametrize(("accept", "parse"), [(OPENMETRICS, openmetrics), (PLAIN, classic)])
Parse = Callable[[str], Iterable[Any]]


def exposition(points: Iterable[Point], accept: str) -> tuple[bytes, str]:
    """Return all points as one answer."""
    kind, is_openmetrics = content_type(accept)
    text = ScrapeText(is_openmetrics)
    return text.render(points) + text.end(), kind


def read(points: Iterable[Point], accept: str = OPENMETRICS, parse: Parse = openmetrics) -> dict[str, list[Sample]]:
    text, _ = exposition(points, accept)
    found: dict[str, list[Sample]] = {}
    for family in parse(text.decode()):
        for sample in family.samples:
            found.setdefault(sample.name, []).append(sample)
    return found


class TestFormats:
    @pytest.mark.parametrize(
        ("accept", "begins"),
        [
            (OPENMETRICS, "application/openmetrics-text; version=1.0.0; charset=utf-8"),
            (PROMETHEUS_2, "application/openmetrics-text; version=1.0.0; charset=utf-8"),
            (PLAIN, "text/plain; version=0.0.4"),
            ("", "text/plain; version=0.0.4"),
            ("*/*", "text/plain; version=0.0.4"),
            ("application/openmetrics-text", "application/openmetrics-text; version=1.0.0; charset=utf-8"),
            (
                "application/openmetrics-text; version=7\r\nx: y",
                "application/openmetrics-text; version=1.0.0; charset=utf-8",
            ),
            ("text/plain, application/openmetrics-text ; q=0.5 ; version=1.0.0 ", "application/openmetrics-text; "),
            ("application/openmetrics-text;q=0.5", "application/openmetrics-text; "),
            ("application/openmetrics-text;version=0.0.1,application/openmetrics-text", "application/openmetrics"),
            ("text/plain;version=1.0.0", "text/plain; version=0.0.4"),
        ],
    )
    def test_openmetrics_is_served_only_if_accepted(self, accept: str, begins: str) -> None:
        text, content_type = exposition([COUNTER], accept)
        assert content_type.startswith(begins)
        assert text.endswith(b"# EOF\n") == begins.startswith("application")

    @both_formats
    def test_a_histogram_has_cumulative_buckets_sum_and_count(self, accept: str, parse: Parse) -> None:
        found = read([HISTOGRAM], accept, parse)
        buckets = {sample.labels["le"]: sample.value for sample in found["pandaeval_evaluation_score_bucket"]}
        assert list(buckets) == [
            "0.0", "0.1", "0.2", "0.3", "0.4", "0.5", "0.6", "0.7", "0.8", "0.9", "0.95", "0.99", "+Inf",
        ]  # fmt: skip
        assert list(buckets.values()) == [1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 3]
        assert found["pandaeval_evaluation_score_count"][0].value == 3
        assert math.isclose(found["pandaeval_evaluation_score_sum"][0].value, 1.9)

    @both_formats
    def test_a_counter_has_its_value_and_escaped_labels(self, accept: str, parse: Parse) -> None:
        [sample] = read([COUNTER], accept, parse)["pandaeval_evaluations_total"]
        assert sample.value == 3
        assert sample.labels == {"gen_ai_evaluation_name": "coherence", "pandaeval_service": 'sh"op\\\n'}

    @both_formats
    def test_series_of_one_family_can_have_different_labels(self, accept: str, parse: Parse) -> None:
        other = Point(EVALUATIONS, (("pandaeval.why", "no_content"),), 1, 1, 1.0, (1,), ())
        labels = [sample.labels for sample in read([COUNTER, other], accept, parse)["pandaeval_evaluations_total"]]
        assert labels[1] == {"pandaeval_why": "no_content"}

    @both_formats
    def test_gauges_have_their_values(self, accept: str, parse: Parse) -> None:
        lag = Point(INSTRUMENTS["pandaeval.lag"], (), 1, 1, 0.25, (), ())
        state = Point(INSTRUMENTS["pandaeval.exporter.state"], (("pandaeval.exporter", "otlp"),), 1, 1, -1, (), ())
        found = read([lag, state], accept, parse)
        assert found["pandaeval_lag_seconds"][0].value == 0.25
        assert found["pandaeval_exporter_state"][0].value == -1

    @pytest.mark.parametrize(
        "value",
        [
            *(0.0, -0.5, 0.1, 5.0, 999_999.0, 999_999.75, -2e6, -1e21, 5e-324, -1.5e-7),
            *(1e6, 1e6 + 0.5, 2_000_001.0, 12_345_678.25, 10_200_000.0, 9e15, 1.5e16, 1e21, 1.797e308),
            *map(float, SPECIAL),
        ],
    )
    def test_numbers_are_written_as_by_the_prometheus_library(self, value: float) -> None:
        lag = Point(INSTRUMENTS["pandaeval.lag"], (), 1, 1, value, (), ())
        line = exposition([lag], PLAIN)[0].decode().splitlines()[-1]
        assert line == f"pandaeval_lag_seconds {floatToGoString(value)}"


class TestPieces:
    @pytest.mark.parametrize("accept", [OPENMETRICS, PLAIN])
    def test_separately_rendered_pages_equal_one_answer(self, accept: str) -> None:
        many = [replace(HISTOGRAM, attributes=(("pandaeval.service", f"s{n}"),)) for n in range(5)]
        text = ScrapeText(content_type(accept)[1])
        pages = [text.render(page) for page in ([COUNTER], many[:2], many[2:4], many[4:])]
        assert b"".join(pages) + text.end() == exposition([COUNTER, *many], accept)[0]

    @pytest.mark.parametrize(("accept", "encoder"), [(OPENMETRICS, openmetrics_text), (PLAIN, classic_text)])
    def test_the_text_equals_that_of_the_prometheus_library(self, accept: str, encoder: Callable[[Any], bytes]) -> None:
        lag = Point(INSTRUMENTS["pandaeval.lag"], (), 1, 1, 12_345_678.25, (), ())
        labelled = replace(HISTOGRAM, attributes=tuple((key, f"of {key}") for key in ("a", "b", "lea", "z.z", "ld")))
        held = Point(INSTRUMENTS["pandaeval.store.size"], ATTRIBUTES, 1, 1, 8, (), ())
        counters = [COUNTER, replace(COUNTER, attributes=())]
        points = [*counters, lag, held, HISTOGRAM, replace(HISTOGRAM, attributes=()), labelled]
        points.sort(key=lambda point: point.instrument.name)
        registry = CollectorRegistry()
        registry.register(Families(points))
        assert exposition(points, accept)[0] == encoder(registry)


class Families(Collector):
    def __init__(self, points: Iterable[Point]) -> None:
        self._points = list(points)

    def collect(self) -> Iterator[Metric]:
        for _, group in itertools.groupby(self._points, key=lambda point: point.instrument.name):
            first, *others = [self._family(point) for point in group]
            for other in others:
                first.samples.extend(other.samples)
            yield first

    def _family(self, point: Point) -> Metric:
        instrument, labels = point.instrument, [label_name(key) for key, _ in point.attributes]
        name, unit = metric_name(instrument.name, instrument.unit)
        values = [value for _, value in point.attributes]
        shown = {
            at: Shown({"trace_id": each.trace_id, "span_id": each.span_id}, each.value, each.time_ns / 1e9)
            for at, each in point.exemplars
        }
        if instrument.kind == "histogram":
            histogram = HistogramMetricFamily(name, instrument.description, labels=labels, unit=unit)
            bounds = [*map(str, map(float, instrument.bounds)), "+Inf"]
            counts = zip(bounds, itertools.accumulate(point.buckets), strict=True)
            buckets = [(*pair, shown[at]) if at in shown else pair for at, pair in enumerate(counts)]
            histogram.add_metric(values, buckets, point.total)
            return histogram
        if instrument.kind == "counter":
            counter = CounterMetricFamily(name, instrument.description, labels=labels, unit=unit)
            counter.add_metric(values, point.total, exemplar=shown.get(0))
            return counter
        gauge = GaugeMetricFamily(name, instrument.description, labels=labels, unit=unit)
        gauge.add_metric(values, point.total)
        return gauge


class TestExemplars:
    def test_buckets_and_counters_have_exemplars(self) -> None:
        found = read([HISTOGRAM, COUNTER])
        buckets = {s.labels["le"]: s.exemplar for s in found["pandaeval_evaluation_score_bucket"] if s.exemplar}
        assert set(buckets) == {"0.5", "+Inf"}
        for exemplar in (*buckets.values(), found["pandaeval_evaluations_total"][0].exemplar):
            assert exemplar.labels == {"trace_id": TRACE_ID, "span_id": SPAN_ID}
            assert (exemplar.value, float(exemplar.timestamp)) == (0.42, pytest.approx(1_772_366_400.25, abs=1e-6))
            assert sum(len(key) + len(value) for key, value in exemplar.labels.items()) <= 128

    def test_the_classic_format_has_no_exemplars(self) -> None:
        assert not any(s.exemplar for group in read([HISTOGRAM], PLAIN, classic).values() for s in group)


class TestNames:
    @pytest.mark.parametrize(
        ("name", "unit", "expected"),
        [
            ("pandaeval.evaluation.score", "{score}", ("pandaeval_evaluation_score", "")),
            ("pandaeval.judge.duration", "s", ("pandaeval_judge_duration_seconds", "seconds")),
            ("pandaeval.store.size", "By", ("pandaeval_store_size_bytes", "bytes")),
            ("pandaeval.judge.cost", "{USD}", ("pandaeval_judge_cost", "")),
            ("wait.seconds", "s", ("wait_seconds", "seconds")),
            ("seconds.waited", "s", ("seconds_waited", "")),
            ("a-b..c", "", ("a_b_c", "")),
            ("way", "furlong", ("way", "")),
            ("share", "1", ("share_ratio", "ratio")),
            ("share", "%", ("share_percent", "percent")),
            ("wait", "ms", ("wait_milliseconds", "milliseconds")),
            ("milliseconds", "s", ("milliseconds_seconds", "seconds")),
            ("a:b.9", "{c}", ("a:b_9", "")),
        ],
    )
    def test_units_become_suffixes(self, name: str, unit: str, expected: tuple[str, str]) -> None:
        assert metric_name(name, unit) == expected

    def test_dots_in_label_names_become_underscores(self) -> None:
        assert label_name("gen_ai.evaluation.name") == "gen_ai_evaluation_name"

    def test_openmetrics_has_a_unit_line(self) -> None:
        text, _ = exposition([Point(INSTRUMENTS["pandaeval.store.size"], (), 1, 1, 8, (), ())], OPENMETRICS)
        assert b"# UNIT pandaeval_store_size_bytes bytes\n" in text

    def test_a_counter_of_seconds_ends_with_seconds_total(self) -> None:
        point = Point(Instrument("waited", "counter", "s", "how long"), (), 1, 1, 2.5, (), ())
        assert read([point])["waited_seconds_total"][0].value == 2.5
