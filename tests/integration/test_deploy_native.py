"""``deploy/compose`` as native processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from support.collector import CollectorProcess
from support.deploy import COMPOSE, DEPLOY, ROOT, mounts, services
from support.jaeger import BINARY as JAEGER
from support.otelcol import BINARY as OTELCOL
from support.ports import free_ports
from support.processes import Process
from support.programs import CACHE

PROMETHEUS = CACHE / "prometheus" / "prometheus"
_COMPOSE = DEPLOY / "compose"
_SESSIONS = ("helpful", "circling", "repeating", "drifting", "failing")


@pytest.fixture
def collector(tmp_path: Path) -> Iterator[CollectorProcess]:
    """Return the compose file's collector, not started."""
    arguments = ("--config", str(_COMPOSE / "pandaeval.yaml"))
    with CollectorProcess(tmp_path, arguments=arguments) as process:
        yield process


def _run_agent(variables: Mapping[str, str]) -> str:
    outside = {key: value for key, value in os.environ.items() if not key.startswith(("PANDAEVAL", "OTEL_"))}
    given = {"PYTHONPATH": str(ROOT), "AGENT_SESSIONS": "6", "AGENT_PAUSE_S": "0", "OTEL_SERVICE_NAME": "shop"}
    done = subprocess.run(
        [sys.executable, _COMPOSE / "agent" / "agent.py"],
        env=outside | given | dict(variables),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stderr


def _scores(collector: CollectorProcess, metric: str) -> dict[str, float]:
    """Return lowest scores by kind of session."""
    found: dict[str, float] = {}
    for (unit, _), result in collector.standing().items():
        if result["metric"] == metric and result["score"] is not None:
            kind = str(result["session_id"] or unit).partition("-")[0]
            found[kind] = min(result["score"], found.get(kind, 1.0))
    return found


def test_bad_sessions_of_the_example_agent_score_below_good_sessions(collector: CollectorProcess) -> None:
    collector.settings["PANDAEVAL_EXPORTERS__OTLP__ENDPOINT"] = "null"
    collector.start()
    log = _run_agent({"PANDAEVAL_ENDPOINT": collector.grpc})
    assert "there is no order A-9999" in log
    collector.until(lambda: collector.counts()["traces", "decided", "explicit"] == 18, "done with 18 traces")
    collector.until(collector.at_rest, "at rest")
    reliability = _scores(collector, "agent_reliability")
    assert set(reliability) == set(_SESSIONS)
    # A repeated answer is only suspicious and does not lower the reliability.
    assert reliability["helpful"] > 0.5 > max(reliability[bad] for bad in _SESSIONS[1:] if bad != "repeating")
    assert _scores(collector, "tool_loop")["circling"] < 0.5
    assert _scores(collector, "loop_detection")["repeating"] < _scores(collector, "loop_detection")["helpful"]
    assert {result["service"] for result in collector.results()} == {"shop"}
    assert not any(result["why"] for result in collector.results() if result["session_id"].startswith("helpful"))


@pytest.mark.e2e
@pytest.mark.skipif(
    not all(binary.exists() for binary in (OTELCOL, JAEGER, PROMETHEUS)),
    reason="their programs are not here: python tests/support/programs.py",
)
def test_compose_services_as_processes_bring_scores_to_jaeger_and_prometheus(
    collector: CollectorProcess, tmp_path: Path
) -> None:
    """All services except Grafana."""
    door, other_door, jaeger_door, jaeger_page, jaeger_grpc, prometheus_port = free_ports(6)
    prometheus_url, jaeger_url = f"http://127.0.0.1:{prometheus_port}", f"http://127.0.0.1:{jaeger_page}"
    to_otelcol = f"127.0.0.1:{door}"
    addresses = {
        "OTELCOL_HOST": "127.0.0.1",
        "OTELCOL_GRPC_PORT": str(door),
        "OTELCOL_HTTP_PORT": str(other_door),
        "JAEGER_ENDPOINT": f"127.0.0.1:{jaeger_door}",
        "PROMETHEUS_ENDPOINT": f"{prometheus_url}/api/v1/otlp",
    }
    here = {"0.0.0.0:14317": f"127.0.0.1:{jaeger_door}", "0.0.0.0:16686": f"127.0.0.1:{jaeger_page}"}
    jaeger = [JAEGER, *_command("jaeger", here), f"--set=extensions.jaeger_query.grpc.endpoint=127.0.0.1:{jaeger_grpc}"]
    prometheus = [PROMETHEUS, *_command("prometheus", {"=/prometheus": f"={tmp_path / 'tsdb'}"})]
    prometheus.append(f"--web.listen-address=127.0.0.1:{prometheus_port}")
    collector.settings["PANDAEVAL_EXPORTERS__OTLP__ENDPOINT"] = to_otelcol
    with (
        Process(prometheus, tmp_path / "prometheus.log", f"{prometheus_url}/-/ready"),
        Process(jaeger, tmp_path / "jaeger.log", f"{jaeger_url}/api/services", _environment("jaeger")),
        Process([OTELCOL, *_command("otelcol")], tmp_path / "otelcol.log", environ=addresses),
    ):
        collector.start()
        _run_agent({"PANDAEVAL_ENDPOINT": collector.grpc, "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://{to_otelcol}"})
        collector.until(collector.at_rest, "at rest")
        asked = f"{jaeger_url}/api/traces?service=shop&operation=invoke_agent%20support-desk&limit=100"
        collector.until(lambda: _evaluated(_get(asked)) == 18, "seen in Jaeger, each trace with its evaluation span")
        query = f"{prometheus_url}/api/v1/query?query=sum(pandaeval_evaluations_total)"
        collector.until(lambda: bool(_get(query)["result"]), "seen in Prometheus")


def _mounted(service: str) -> dict[str, str]:
    return {target: str(path) for path, target in mounts(services()[service], COMPOSE.parent)}


def _command(service: str, here: Mapping[str, str] | None = None) -> list[str]:
    """Return a service's command with local paths and addresses."""
    found = []
    for argument in services()[service]["command"]:
        for old, new in {**_mounted(service), **(here or {})}.items():
            argument = argument.replace(old, new)
        found.append(argument)
    return found


def _environment(service: str) -> dict[str, str]:
    paths = _mounted(service)
    return {name: paths.get(value, value) for name, value in services()[service]["environment"].items()}


def _get(url: str) -> Any:
    with urllib.request.urlopen(url, timeout=60) as response:
        return json.load(response)["data"]


def _evaluated(traces: list[Any]) -> int:
    """Return how many Jaeger traces have an evaluation span."""
    names = ([span["operationName"] for span in trace["spans"]] for trace in traces)
    return sum(any(name.startswith(("✓ ", "✗ ", "evaluate ")) for name in of_trace) for of_trace in names)
