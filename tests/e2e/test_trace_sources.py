"""Traces scored from real Jaeger's query API."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import grpc
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2_grpc import TraceServiceStub
from typer.testing import CliRunner

from pandaeval_collector.cli import app
from pandaeval_lab.replay.files import Input, Request
from support.jaeger import BINARY, Jaeger
from support.receivers import until

CAPTURES = Path(__file__).parents[1] / "golden" / "captures"
RECORDINGS = [CAPTURES / name / "tool_error.otlp.jsonl" for name in ("openai_agents_genai", "langgraph_openinference")]

pytestmark = pytest.mark.e2e


def _evaluated(*inputs: str) -> dict[str, dict[str, Any]]:
    done = CliRunner().invoke(app, ["evaluate", *inputs, "--format", "json"])
    assert done.exit_code == 0, done.output
    results = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return {result["id"]: result for result in results}


@pytest.mark.skipif(not BINARY.exists(), reason=f"needs {BINARY}: python tests/support/programs.py jaeger")
async def test_traces_read_from_jaeger_have_the_result_ids_of_traces_read_from_a_file(tmp_path: Path) -> None:
    with Jaeger(tmp_path / "jaeger") as jaeger:
        with grpc.insecure_channel(jaeger.grpc) as channel:
            stub = TraceServiceStub(channel)
            for file in RECORDINGS:
                for request in Input(str(file)).requests():
                    assert isinstance(request, Request)
                    if not request.logs:
                        stub.Export(ExportTraceServiceRequest.FromString(request.data))
        await until(lambda: bool(jaeger.services()), 60)
        address = jaeger.url.replace("http://", "jaeger://")
        stored = f"{address}?service={jaeger.services()[0]}&since=2000-01-01"
        # The command runs its own event loop, so it needs its own thread.
        results = await asyncio.to_thread(_evaluated, stored)
        assert results.keys() == (await asyncio.to_thread(_evaluated, *map(str, RECORDINGS))).keys()
        trace_id = next(result["trace_id"] for result in results.values() if result["level"] == "trace")
        alone = await asyncio.to_thread(_evaluated, f"{address}?trace={trace_id}")
        assert {result["trace_id"] for result in alone.values() if result["level"] == "trace"} == {trace_id}
