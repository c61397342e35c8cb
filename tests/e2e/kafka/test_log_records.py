"""Spans and log records over Kafka, shared by two collectors, score like OTLP."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from pandaeval_lab.replay.files import Input, Request
from support.collector import CollectorProcess, standing
from support.kafka import Broker
from support.kafka_workers import worker
from support.kills import uninterrupted
from support.otelcol import BINARY, ConfiguredOtelcol
from support.processors import until
from support.senders import GrpcSender

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.timeout(900),
    pytest.mark.skipif(not BINARY.exists(), reason=f"needs {BINARY}: python tests/support/programs.py otelcol"),
]

_RECORDED = Path(__file__).parents[2] / "golden" / "captures" / "openai_genai_event"
_ACROSS = "trace.loop_detection"
"""Metrics that read other traces of the session."""


def test_log_records_over_kafka_give_the_scores_of_otlp(broker: Broker, tmp_path: Path) -> None:
    broker.create("with_logs", 6)
    broker.create("with_logs.scores")
    recorded = [each for path in sorted(_RECORDED.glob("*.jsonl")) for each in Input(str(path)).requests()]
    expected = {key: score for key, (_, score) in uninterrupted(recorded).items() if _is_own(key)}
    assert {score for (_, metric), score in expected.items() if metric == "trace.coherence"} - {None}, "a score exists"
    topic = {'"otlp_spans"': '"with_logs"'}
    with (
        ConfiguredOtelcol("kafka.yaml", tmp_path / "otelcol", {"KAFKA_BROKERS": broker.address}, topic) as otelcol,
        worker(tmp_path, broker, "a", "with_logs", "with_logs.scores") as one,
        worker(tmp_path, broker, "b", "with_logs", "with_logs.scores") as other,
    ):
        both = (one.start(), other.start())
        until(lambda: all(_owned(each) for each in both), "both having partitions", 120)
        with contextlib.closing(GrpcSender(otelcol.grpc)) as door:
            until(lambda: door.send(ExportTraceServiceRequest()).acknowledged, "the Collector's start", 120)
            for each in recorded:
                assert isinstance(each, Request)
                kind = ExportLogsServiceRequest if each.logs else ExportTraceServiceRequest
                assert door.send(kind.FromString(each.data)).acknowledged
        until(lambda: _scores(*both).keys() >= expected.keys(), "all scored", 200)
        for each in both:
            each.until(each.at_rest, "at rest", 120)
            assert each.gauge("accounting_residual") == 0
            assert each.counts()["logs", "stored", ""] > 0, "both collectors must have stored log records"
        assert _scores(*both) == expected


def _owned(collector: CollectorProcess) -> int:
    counts = collector.counts()
    return counts["log_partitions", "taken", ""] - counts["log_partitions", "released", ""]


def _scores(*collectors: CollectorProcess) -> dict[tuple[str, str], float | None]:
    results = standing([result for each in collectors for result in each.results()])
    return {key: result["score"] for key, result in results.items() if _is_own(key)}


def _is_own(key: tuple[str, str]) -> bool:
    """Return whether a result depends on a single trace."""
    return key[1].startswith("trace.") and key[1] != _ACROSS
