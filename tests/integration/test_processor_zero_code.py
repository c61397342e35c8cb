"""``opentelemetry-instrument`` without code changes."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from support.processors import FakeCollector, spans_of

_COMMAND = Path(sys.executable).parent / "opentelemetry-instrument"
_APP = """
from opentelemetry import trace
from support.agents import run_agent
run_agent(trace.get_tracer("app"))
"""

pytestmark = pytest.mark.skipif(
    not _COMMAND.exists() or not entry_points(group="opentelemetry_post_instrument", name="pandaeval"),
    reason="needs opentelemetry-distro and pandaeval-otel installed (the dev extra has both)",
)


def run(folder: Path, program: str = _APP, **variables: str) -> subprocess.CompletedProcess[str]:
    app = folder / "app.py"
    app.write_text(program)
    outside = {key: value for key, value in os.environ.items() if not key.startswith(("PANDAEVAL", "OTEL_"))}
    quiet = {f"OTEL_{signal}_EXPORTER": "none" for signal in ("TRACES", "METRICS", "LOGS")}
    path = os.pathsep.join(entry for entry in sys.path if entry)
    done = subprocess.run(
        [str(_COMMAND), sys.executable, str(app)],
        env={**outside, **quiet, "PYTHONPATH": path, "OTEL_SERVICE_NAME": "shop", **variables},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done


def test_traces_are_sent_if_only_an_endpoint_is_configured(tmp_path: Path) -> None:
    with FakeCollector() as collector:
        run(tmp_path, PANDAEVAL_ENDPOINT=collector.endpoint)
        (sent,) = collector.traces
    assert b"shop" in sent.spans
    assert len(spans_of(sent)) == 4
    assert not sent.fragment


@pytest.mark.parametrize("off", [{"PANDAEVAL_ENABLED": "false"}, {"OTEL_SDK_DISABLED": "true"}])
def test_zero_code_instrumentation_can_be_disabled(tmp_path: Path, off: dict[str, str]) -> None:
    with FakeCollector() as collector:
        run(tmp_path, PANDAEVAL_ENDPOINT=collector.endpoint, **off)
        assert not collector.traces


def test_neither_grpc_nor_the_forwarder_is_loaded_without_an_endpoint(tmp_path: Path) -> None:
    done = run(tmp_path, PYTHONVERBOSE="1")
    loaded = set(re.findall(r"^import '([\w.]+)'", done.stderr, re.MULTILINE))
    assert "pandaeval_otel.processor.auto" in loaded
    assert loaded.isdisjoint({"pandaeval_otel.processor.forwarder", "grpc"})


def test_a_missing_provider_is_explained(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", "from pandaeval_otel.processor.auto import instrument; instrument()"],
        env={**os.environ, "PANDAEVAL_ENDPOINT": "127.0.0.1:1"},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert "opentelemetry-distro" in done.stderr
