"""``deploy/otelcol`` in the real OpenTelemetry Collector."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from support.made_traces import Composer, MadeTrace
from support.otelcol import BINARY, DEPLOYED, ConfiguredOtelcol, Otelcol
from support.processors import until
from support.senders import GrpcSender

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(not BINARY.exists(), reason=f"needs {BINARY}: python tests/support/programs.py otelcol"),
]

_CONFIGS = sorted(path.name for path in DEPLOYED.glob("*.yaml") if path.name != "builder.yaml")
_ENDPOINTS = (
    "BACKEND_ENDPOINT",
    "TRACES_ENDPOINT",
    "LOGS_ENDPOINT",
    "PANDAEVAL_ENDPOINT",
    "PANDAEVAL_1",
    "PANDAEVAL_2",
)
_ANYWHERE = dict.fromkeys(_ENDPOINTS, "127.0.0.1:1") | {"METRICS_ENDPOINT": "http://127.0.0.1:1"}


@pytest.mark.parametrize("name", _CONFIGS)
def test_the_opentelemetry_collector_accepts_the_configuration(name: str) -> None:
    command = [str(BINARY), "validate", "--config", str(DEPLOYED / name)]
    done = subprocess.run(command, env=os.environ | _ANYWHERE, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.fixture
def two(tmp_path: Path) -> Iterator[tuple[Otelcol, Otelcol]]:
    with ExitStack() as stack:
        sinks = [stack.enter_context(Otelcol(tmp_path / name)) for name in ("one", "two")]
        for sink in sinks:
            sink.start()
        yield sinks[0], sinks[1]


def test_load_balancing_sends_all_spans_of_a_trace_to_one_collector(
    tmp_path: Path, two: tuple[Otelcol, Otelcol]
) -> None:
    composer = Composer(5)
    made = [composer.trace() for _ in range(60)]
    found = _spread("loadbalanced.yaml", tmp_path, two, made, logs=False)
    assert not found[0] & found[1], "a trace was split"
    assert found[0] | found[1] == {trace.trace_id.hex() for trace in made}
    assert min(len(each) for each in found) > 10


def test_load_balancing_by_session_sends_all_traces_of_a_session_to_one_collector(
    tmp_path: Path, two: tuple[Otelcol, Otelcol]
) -> None:
    composer = Composer(6, sessions=12)
    made = [trace for trace in (composer.trace() for _ in range(80)) if trace.session is not None]
    found = _spread("loadbalanced_by_session.yaml", tmp_path, two, made, logs=True)
    assert not found[0] & found[1], "a trace or its log records were split"
    sessions = [{trace.session for trace in made if trace.trace_id.hex() in each} for each in found]
    assert not sessions[0] & sessions[1]
    assert all(sessions)


def _spread(
    name: str, folder: Path, sinks: tuple[Otelcol, Otelcol], made: list[MadeTrace], *, logs: bool
) -> tuple[set[str], set[str]]:
    """Send traces by span, with ``logs`` log records; return trace IDs by sink."""
    where = {f"PANDAEVAL_{number}": f"127.0.0.1:{sink.grpc_port}" for number, sink in enumerate(sinks, 1)}
    with ConfiguredOtelcol(name, folder / "balancer", where, {}) as balancer:
        door = GrpcSender(balancer.grpc)
        until(lambda: door.send(ExportTraceServiceRequest()).acknowledged, "the balancer's start")
        for trace in made:
            for span in trace.spans:
                assert door.send(_with_session(trace.request([span]), trace)).acknowledged
            assert not logs or door.send(_log_of(trace)).acknowledged
        door.close()
        for signal, number in (("traces", sum(len(trace.spans) for trace in made)), ("logs", logs * len(made))):
            until(lambda: sum(1 for sink in sinks for _ in sink.items(signal)) == number, signal)  # noqa: B023
    one, two = ({item["traceId"] for kind in ("traces", "logs") for item in sink.items(kind)} for sink in sinks)
    return one, two


def _with_session(request: ExportTraceServiceRequest, trace: MadeTrace) -> ExportTraceServiceRequest:
    request.resource_spans[0].resource.attributes.add(key="session.id").value.string_value = trace.session or ""
    return request


def _log_of(trace: MadeTrace) -> ExportLogsServiceRequest:
    request = ExportLogsServiceRequest()
    block = request.resource_logs.add()
    block.resource.attributes.add(key="service.name").value.string_value = trace.service
    block.resource.attributes.add(key="session.id").value.string_value = trace.session or ""
    record = block.scope_logs.add().log_records.add(trace_id=trace.trace_id, span_id=trace.spans[-1].span_id)
    record.body.string_value = "said"
    return request
