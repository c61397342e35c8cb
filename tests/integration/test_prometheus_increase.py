"""``increase()`` loses no result over collector kills.

apt-get install prometheus
pytest -m e2e -s tests/integration/test_prometheus_increase.py
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from support.collector import CollectorProcess
from support.made_traces import Composer
from support.prometheus import BINARY, Prometheus
from support.senders import GrpcSender

pytestmark = [pytest.mark.e2e, pytest.mark.skipif(BINARY is None, reason="needs the program prometheus")]

LIVES = 20
COUNTERS = ("pandaeval_evaluations_total", "pandaeval_evaluation_score_count")


@pytest.fixture
def collector(tmp_path: Path) -> Iterator[CollectorProcess]:
    with CollectorProcess(tmp_path, {"PANDAEVAL_EXPORTERS__OTLP__METRICS_INTERVAL": "1s"}) as made:
        yield made


@pytest.fixture
def prometheus(tmp_path: Path, collector: CollectorProcess) -> Iterator[Prometheus]:
    with Prometheus(tmp_path / "prometheus", f"127.0.0.1:{collector.health_port}", "250ms") as made:
        yield made


def test_increase_equals_the_number_of_results_after_kills(collector: CollectorProcess, prometheus: Prometheus) -> None:
    chance, composer = random.Random(7), Composer(7)
    killed = 0
    for _ in range(LIVES):
        collector.start()
        door = GrpcSender(collector.grpc)
        for _ in range(chance.randint(1, 6)):
            answer = door.send(composer.trace().request())
            assert answer.acknowledged
        door.close()
        if chance.random() < 0.75:
            time.sleep(chance.uniform(0.0, 3.0))  # a kill at any point: before the decision, the zero or the value
            collector.kill()
            killed += 1
        else:
            assert collector.stop() == 0
    collector.start()
    collector.until(collector.at_rest, "at rest")
    results = collector.results()
    measured = {key for key, result in _units(results) if result["outcome"] == "scored"}
    collector.until(lambda: prometheus.value(f"sum({COUNTERS[0]})") == len(results), "scraped")

    for name, expected in zip(COUNTERS, (len(results), len(measured)), strict=True):
        series = prometheus.samples(name)
        for labels, samples in series.items():
            values = [value for _, value in samples]
            assert values[0] == 0, f"{labels} did not begin at 0"
            assert all(before <= after for before, after in pairwise(values)), f"{labels} fell"
        last = max(at for samples in series.values() for at, _ in samples)
        assert prometheus.value(f"sum({name})", last) == expected
        assert prometheus.value(f"sum(increase({name}[1h]))", last) == pytest.approx(expected, rel=1e-9)
        print(f"\n{name}: {LIVES} restarts ({killed} by kill -9), {len(series)} series, increase() = {expected}")
    known = {result["trace_id"] for result in results}
    exemplars = prometheus.exemplars("pandaeval_evaluation_score_bucket")
    assert exemplars
    assert {exemplar["trace_id"] for exemplar in exemplars} <= known


def _units(results: list[dict[str, Any]]) -> Iterator[tuple[tuple[str, str, str], dict[str, Any]]]:
    """Return results counted once in the histogram."""
    for result in results:
        unit = "session_id" if result["level"] == "session" else "trace_id"
        yield (result["level"], result[unit], result["metric"]), result
