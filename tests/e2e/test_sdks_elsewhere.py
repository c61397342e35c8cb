"""Java and JavaScript SDKs lose no spans while the collector is paused."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from support.collector import CollectorProcess, snapshot
from support.programs import CACHE
from support.stored import stored_spans

_SENDERS = Path(__file__).parents[1] / "support/elsewhere"
_JARS = (
    "io.opentelemetry.javaagent:opentelemetry-javaagent:2.11.0",
    "io.opentelemetry:opentelemetry-api:1.45.0",
    "io.opentelemetry:opentelemetry-context:1.45.0",
)
_PACKAGES = (
    "@opentelemetry/api@1",
    "@opentelemetry/sdk-trace-node@2",
    "@opentelemetry/exporter-trace-otlp-proto@0",
    "@opentelemetry/exporter-trace-otlp-grpc@0",
)
_TRACES, _STILL_S = 500, 3.0

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]


@pytest.mark.skipif(not (shutil.which("mvn") and shutil.which("java")), reason="needs a JDK and Maven")
@pytest.mark.parametrize("protocol", ["grpc", "http/protobuf"])
def test_the_java_agent_loses_no_spans_while_the_collector_is_paused(protocol: str, tmp_path: Path) -> None:
    folder = CACHE / "java"
    jars = [folder / "{1}-{2}.jar".format(*jar.split(":")) for jar in _JARS]
    for jar, file in zip(_JARS, jars, strict=True):
        if not file.exists():
            copy = ["mvn", "-q", "dependency:copy", f"-Dartifact={jar}", f"-DoutputDirectory={folder}"]
            subprocess.run(copy, check=True)
    path = os.pathsep.join(map(str, jars[1:]))
    command = ["java", f"-javaagent:{jars[0]}", "-cp", path, str(_SENDERS / "Sender.java"), str(_TRACES)]
    _nothing_is_lost(command, protocol, tmp_path)


@pytest.mark.skipif(not shutil.which("npm"), reason="needs npm")
@pytest.mark.parametrize("protocol", ["grpc", "http/protobuf"])
def test_the_javascript_sdk_loses_no_spans_while_the_collector_is_paused(protocol: str, tmp_path: Path) -> None:
    folder = CACHE / "javascript"
    if not (folder / "node_modules").exists():
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "package.json").write_text('{"private": true}')
        subprocess.run(["npm", "install", "--silent", "--ignore-scripts", *_PACKAGES], cwd=folder, check=True)
    shutil.copy(_SENDERS / "sender.mjs", folder)
    kind = "grpc" if protocol == "grpc" else "proto"
    _nothing_is_lost(["node", str(folder / "sender.mjs"), str(_TRACES), kind], protocol, tmp_path)


def _nothing_is_lost(command: Sequence[str], protocol: str, folder: Path) -> None:
    spans_file = folder / "told.txt"
    with CollectorProcess(folder) as collector, spans_file.open("wb") as out:
        collector.start()
        assert collector.process is not None
        environment = {key: value for key, value in os.environ.items() if not key.startswith("OTEL_")}
        environment |= {
            "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://{collector.grpc}" if protocol == "grpc" else collector.http,
            "OTEL_EXPORTER_OTLP_PROTOCOL": protocol,
            "OTEL_METRICS_EXPORTER": "none",
            "OTEL_LOGS_EXPORTER": "none",
            "OTEL_BSP_SCHEDULE_DELAY": "200",
        }
        with subprocess.Popen(command, env=environment, stdout=out) as application:
            try:
                collector.until(lambda: _is_busy(collector) or application.poll() is not None, "busy", 300)
                assert application.poll() is None, "the application ended without sending spans"
                collector.process.send_signal(signal.SIGSTOP)  # answers pause, then all follow
                time.sleep(_STILL_S)
                collector.process.send_signal(signal.SIGCONT)
                assert application.wait(300) == 0
            finally:
                application.kill()
        collector.until(collector.at_rest, "at rest")
        assert collector.stop() == 0
        sent = {(trace, span) for trace, span in map(str.split, spans_file.read_text().splitlines())}
        assert len(sent) == 2 * _TRACES
        with snapshot(collector.data, folder / "scratch") as database:
            stored = {(trace_id.hex(), span_id.hex()) for trace_id, span_id in stored_spans(database)}
        assert stored == sent


def _is_busy(collector: CollectorProcess) -> bool:
    return collector.gauge("traces_open") > 0 or bool(collector.results())
