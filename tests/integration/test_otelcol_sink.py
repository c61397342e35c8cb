"""The real OpenTelemetry Collector accepts logs, spans and metrics.

Build it by ``deploy/otelcol/builder.yaml``; then ``pytest -m e2e tests/integration/test_otelcol_sink.py``.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from support.collector import CollectorProcess
from support.made_traces import Composer
from support.otelcol import BINARY, Otelcol, plain
from support.senders import GrpcSender

pytestmark = [pytest.mark.e2e, pytest.mark.skipif(not BINARY.exists(), reason=f"needs {BINARY}")]

TRACES = 30


@pytest.fixture(params=["grpc", "http/protobuf"])
def houses(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[CollectorProcess, Otelcol]]:
    with Otelcol(tmp_path / "otelcol") as sink:
        port = {"grpc": sink.grpc_port, "http/protobuf": sink.http_port}[request.param]
        settings = {
            "PANDAEVAL_EXPORTERS__OTLP__ENDPOINT": f"127.0.0.1:{port}",
            "PANDAEVAL_EXPORTERS__OTLP__PROTOCOL": request.param,
            "PANDAEVAL_EXPORTERS__OTLP__METRICS_INTERVAL": "1s",
            "PANDAEVAL_EXPORTERS__PROMETHEUS__RESULTS": "true",
        }
        with CollectorProcess(tmp_path / "collector", settings) as collector:
            yield collector, sink


def test_the_opentelemetry_collector_gets_all_results_as_logs_spans_and_metrics(
    houses: tuple[CollectorProcess, Otelcol],
) -> None:
    collector, sink = houses
    collector.start()
    door, composer = GrpcSender(collector.grpc), Composer(3)
    made = [composer.trace() for _ in range(TRACES)]
    assert all(door.send(trace.request()).acknowledged for trace in made)
    door.close()
    collector.until(lambda: _decided(collector) == TRACES, "done with all traces")  # the sink is not started yet
    sink.start()
    collector.until(collector.at_rest, "at rest")
    ids = sorted(result["id"] for result in collector.results())
    collector.until(lambda: sorted(_ids(sink.items("logs"))) == ids, "seen as log events")
    collector.until(lambda: sorted(_event_ids(sink)) == ids, "seen as span events")
    collector.until(lambda: _last_sum(sink, "pandaeval.evaluations") == len(ids), "counted")
    ours, theirs = _sample_names(collector._get("/metrics").read().decode()), _sample_names(sink.scrape())
    assert ours == theirs, "series must have equal names by scrape and by OTLP"
    assert collector.stop() == 0
    sink.stop()
    _check_logs(list(sink.items("logs")), {trace.trace_id.hex() for trace in made})
    _check_spans(list(sink.items("traces")), {(log["traceId"], log["spanId"]) for log in sink.items("logs")})
    _check_metrics(sink, {trace.trace_id.hex() for trace in made})


def _check_logs(logs: list[dict[str, Any]], traces: set[str]) -> None:
    for log in logs:
        facts = plain(log["attributes"])
        assert log["eventName"] == "gen_ai.evaluation.result"
        assert log["scope"] == "pandaeval.evaluation"
        assert log["resource"]["service.name"] == "pandaeval"
        assert log["traceId"] in traces
        assert facts["gen_ai.evaluation.name"]
        assert facts["pandaeval.service"] in ("shop", "support")
        assert ("gen_ai.evaluation.score.value" in facts) == (facts["pandaeval.outcome"] == "scored")


def _check_spans(spans: list[dict[str, Any]], evaluated: set[tuple[str, str]]) -> None:
    marks = {"fail": "✗", "pass": "✓", "unscored": "evaluate"}
    assert any(" session" in span["name"] for span in spans)
    for span in spans:
        assert int(span["endTimeUnixNano"]) - int(span["startTimeUnixNano"]) == 1_000_000
        verdict = plain(span["attributes"])["pandaeval.verdict"]
        assert span["name"].split()[0] == marks[verdict]
        assert (span["status"].get("code") == 2) == (verdict == "fail")
        assert span["flags"] & 1
        assert {event["name"] for event in span["events"]} == {"gen_ai.evaluation.result"}
        linked = {link["spanId"] for link in span.get("links", ())}
        if plain(span["attributes"])["pandaeval.level"] == "session":
            assert not span.get("parentSpanId")
            assert linked
        else:
            blamed = span["parentSpanId"] in linked and verdict == "fail"
            assert blamed or (span["traceId"], span["parentSpanId"]) in evaluated


def _check_metrics(sink: Otelcol, traces: set[str]) -> None:
    units = {metric["name"]: metric["unit"] for metric in sink.items("metrics")}
    assert units["pandaeval.evaluation.score"] == "{score}"
    assert units["pandaeval.evaluations"] == "{evaluation}"
    assert units["pandaeval.store.size"] == "By"
    assert units["pandaeval.lag"] == "s"
    scores = [metric["histogram"] for metric in sink.items("metrics") if metric["name"] == "pandaeval.evaluation.score"]
    assert {histogram["aggregationTemporality"] for histogram in scores} == {2}, "cumulative"
    assert all(int(point.get("count", 0)) == 0 for point in scores[0]["dataPoints"]), "must start at 0"
    assert scores[-1]["dataPoints"][0]["explicitBounds"] == [0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99]
    exemplars = [exemplar for point in scores[-1]["dataPoints"] for exemplar in point["exemplars"]]
    assert exemplars
    assert {exemplar["traceId"] for exemplar in exemplars} <= traces


def _decided(collector: CollectorProcess) -> int:
    counts = collector.counts().items()
    return sum(count for (name, outcome, _), count in counts if (name, outcome) == ("traces", "decided"))


def _ids(items: Iterator[dict[str, Any]]) -> list[str]:
    return [plain(item["attributes"])["pandaeval.result.id"] for item in items]


def _event_ids(sink: Otelcol) -> list[str]:
    return [found for span in sink.items("traces") for found in _ids(iter(span["events"]))]


def _last_sum(sink: Otelcol, name: str) -> float:
    last = {
        str(point["attributes"]): point["asDouble"]
        for metric in sink.items("metrics")
        if metric["name"] == name
        for point in metric["sum"]["dataPoints"]
    }
    return float(sum(last.values()))


def _sample_names(text: str) -> set[str]:
    names = {sample.name for family in text_string_to_metric_families(text) for sample in family.samples}
    return {name for name in names if name.startswith("pandaeval")}
