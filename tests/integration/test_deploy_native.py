"""What ``deploy/compose`` runs in containers, run here as processes: its agent, its collector's configuration, and the
OpenTelemetry Collector's where that program is at hand. Only addresses differ, by the variables that exist for it."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from support.collector import CollectorProcess, free_ports
from support.deploy import DEPLOY, ROOT
from support.otelcol import BINARY
from support.otlp_sink import OtlpSink

_COMPOSE = DEPLOY / "compose"
_SESSIONS = ("helpful", "circling", "repeating", "drifting", "failing")


@pytest.fixture
def collector(tmp_path: Path) -> Iterator[CollectorProcess]:
    """The collector with the compose file's configuration, not started yet."""
    arguments = ("--config", str(_COMPOSE / "pandaeval.yaml"))
    with CollectorProcess(tmp_path, arguments=arguments) as process:
        yield process


def _run_agent(variables: Mapping[str, str]) -> str:
    """Six sessions of the example agent; returns its log."""
    outside = {key: value for key, value in os.environ.items() if not key.startswith(("PANDAEVAL", "OTEL_"))}
    given = {"PYTHONPATH": str(ROOT), "AGENT_SESSIONS": "6", "AGENT_PAUSE_S": "0", "OTEL_SERVICE_NAME": "shop"}
    done = subprocess.run(
        [sys.executable, _COMPOSE / "agent" / "agent.py"],
        env=outside | given | variables,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stderr


def _scores(collector: CollectorProcess, metric: str) -> dict[str, float]:
    """The lowest score of a metric by kind of session."""
    found: dict[str, float] = {}
    for (unit, _), result in collector.standing().items():
        if result["metric"] == metric and result["score"] is not None:
            kind = str(result["session_id"] or unit).partition("-")[0]
            found[kind] = min(result["score"], found.get(kind, 1.0))
    return found


def test_the_agents_sessions_are_scored_the_bad_ones_worse(collector: CollectorProcess) -> None:
    collector.settings["PANDAEVAL_EXPORTERS__OTLP__ENDPOINT"] = "null"
    collector.start()
    log = _run_agent({"PANDAEVAL_ENDPOINT": collector.grpc})
    assert "there is no order A-9999" in log
    collector.until(lambda: collector.counts()["traces", "decided", "explicit"] == 18, "done with 18 traces")
    collector.until(collector.at_rest, "at rest")
    reliability = _scores(collector, "agent_reliability")
    assert set(reliability) == set(_SESSIONS)
    assert reliability["helpful"] > 0.5 > max(reliability[bad] for bad in _SESSIONS[1:])
    assert _scores(collector, "tool_loop")["circling"] < 0.5
    assert _scores(collector, "loop_detection")["repeating"] < _scores(collector, "loop_detection")["helpful"]
    assert {result["service"] for result in collector.results()} == {"shop"}
    assert not any(result["why"] for result in collector.results() if result["session_id"].startswith("helpful"))


@pytest.mark.skipif(not BINARY.exists(), reason="no OpenTelemetry Collector here (deploy/otelcol/builder.yaml)")
async def test_through_the_real_opentelemetry_collector(collector: CollectorProcess, tmp_path: Path) -> None:
    """Agent and collector both send to it; it hands on to where Jaeger and Prometheus would be."""
    grpc_port, http_port = free_ports(2)
    endpoint = f"127.0.0.1:{grpc_port}"
    collector.settings["PANDAEVAL_EXPORTERS__OTLP__ENDPOINT"] = endpoint
    sink = OtlpSink()
    jaeger_port, prometheus_port = await sink.listen()
    addresses = {
        "OTELCOL_HOST": "127.0.0.1",
        "OTELCOL_GRPC_PORT": str(grpc_port),
        "OTELCOL_HTTP_PORT": str(http_port),
        "JAEGER_ENDPOINT": f"127.0.0.1:{jaeger_port}",
        "PROMETHEUS_ENDPOINT": f"http://127.0.0.1:{prometheus_port}",
    }
    with (tmp_path / "otelcol.log").open("wb") as log:
        command = [BINARY, "--config", _COMPOSE / "otelcol.yaml"]
        otelcol = subprocess.Popen(command, env=os.environ | addresses, stdout=log, stderr=log)  # noqa: ASYNC220
    try:
        collector.start()
        to = {"PANDAEVAL_ENDPOINT": collector.grpc, "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://{endpoint}"}
        await asyncio.to_thread(_run_agent, to)
        evaluated, names = set[bytes](), set[bytes]()
        async with asyncio.timeout(90):
            while len(evaluated) < 18 or not evaluated <= names or not sink.counted("pandaeval.evaluations") > 60:
                assert collector.running(), collector.log()
                assert otelcol.poll() is None, (tmp_path / "otelcol.log").read_text()
                await asyncio.sleep(0.2)
                spans = sink.spans()
                names = {span.trace_id for span in spans if span.name == "invoke_agent support-desk"}
                evaluated = {span.trace_id for span in spans if span.name == "evaluate trace"}
    finally:
        otelcol.terminate()
        otelcol.wait(30)
        await sink.hang_up()
