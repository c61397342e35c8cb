"""The fan-out of ``deploy/otelcol/fanout.yaml``."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from support.agents import run_agent, scored
from support.collector import CollectorProcess
from support.otelcol import BINARY, Otelcol
from support.ports import free_ports
from support.processors import provider, until

_ROOT = Path(__file__).parents[2]
_CONFIG = _ROOT / "deploy" / "otelcol" / "fanout.yaml"


@pytest.mark.e2e
@pytest.mark.skipif(not BINARY.exists(), reason=f"needs {BINARY}; deploy/otelcol/builder.yaml says how to build it")
def test_the_fanout_sends_every_trace_to_backend_and_pandaeval(tmp_path: Path) -> None:
    grpc_port, http_port = free_ports(2)
    config = tmp_path / "fanout.yaml"
    config.write_text(_CONFIG.read_text().replace(":4317", f":{grpc_port}").replace(":4318", f":{http_port}"))
    with CollectorProcess(tmp_path / "collector") as collector, Otelcol(tmp_path / "backend") as backend:
        collector.start()
        backend.start()
        where = {"BACKEND_ENDPOINT": f"127.0.0.1:{backend.grpc_port}", "PANDAEVAL_ENDPOINT": collector.grpc}
        with (tmp_path / "fanout.log").open("wb") as log:
            fanout = subprocess.Popen([BINARY, "--config", config], env=os.environ | where, stdout=log, stderr=log)
        try:
            exporter = OTLPSpanExporter(f"127.0.0.1:{grpc_port}", insecure=True)
            tracing = provider(BatchSpanProcessor(exporter))
            sent = {run_agent(tracing.get_tracer("t"), seed) for seed in range(5)}
            tracing.shutdown()
            collector.until(lambda: sent <= scored(collector.results()), "done with all traces")
            until(lambda: {span["traceId"] for span in backend.items("traces")} == sent, "the backend's share")
            assert {span["traceId"] for span in backend.items("traces")} == sent == scored(collector.results())
        finally:
            fanout.kill()
            fanout.wait()


def test_docs_contain_the_fanout_config() -> None:
    assert _CONFIG.read_text().strip() in (_ROOT / "docs" / "start" / "otel-collector.md").read_text()
