"""OpenTelemetry Collector to Kafka to collector, by deploy/otelcol/kafka.yaml."""

from __future__ import annotations

import contextlib
import subprocess
from pathlib import Path

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from support.kafka import Broker
from support.kafka_workers import scores, worker
from support.made_traces import Composer
from support.otelcol import BINARY, ConfiguredOtelcol
from support.processors import until
from support.senders import GrpcSender

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(1200)]


def test_messages_of_the_opentelemetry_collector_are_read_and_scored(broker: Broker, tmp_path: Path) -> None:
    """Each message is one trace, keyed by hex ID."""
    if not BINARY.exists():
        pytest.skip(f"needs {BINARY}: python tests/support/programs.py otelcol")
    parts = subprocess.run([BINARY, "components"], capture_output=True, text=True, check=True).stdout
    if "kafkaexporter" not in parts:
        pytest.skip("the Collector was built without the Kafka exporter: python tests/support/programs.py otelcol")
    for topic in ("otlp_spans", "otlp_spans.as_librdkafka"):
        broker.create(topic, 5)
    broker.create("otlp_spans.scores")
    composer = Composer(41)
    traces = [composer.trace() for _ in range(40)]
    whole = ExportTraceServiceRequest()
    for trace in traces:
        whole.MergeFrom(trace.request())
    with (
        ConfiguredOtelcol("kafka.yaml", tmp_path / "otelcol", {"KAFKA_BROKERS": broker.address}, {}) as otelcol,
        worker(tmp_path, broker, "a", "otlp_spans", "otlp_spans.scores") as reader,
    ):
        reader.start()
        with contextlib.closing(GrpcSender(otelcol.grpc)) as door:
            until(lambda: door.send(ExportTraceServiceRequest()).acknowledged, "the Collector's start", 120)
            assert door.send(whole).acknowledged
        wanted = {trace.trace_id.hex() for trace in traces}
        reader.until(lambda: {each["trace_id"] for each in reader.results()} >= wanted, "all scored", 300)
        reader.until(reader.at_rest, "at rest", 120)
        assert reader.gauge("accounting_residual") == 0
    assert {each["trace_id"] for each in scores(broker, "otlp_spans.scores")} == wanted
    written = broker.everything("otlp_spans")
    where = {message.key(): message.partition() for message in written}
    assert {(key or b"").decode() for key in where} == wanted
    broker.produce("otlp_spans.as_librdkafka", [(key, b"") for key in where])
    assert {message.key(): message.partition() for message in broker.everything("otlp_spans.as_librdkafka")} == where
