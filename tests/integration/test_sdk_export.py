"""Newest and oldest SDK against a dying collector."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support import sdk_sender
from support.collector import CollectorProcess, snapshot
from support.stored import exported_problems, stored_spans

OLDEST = "1.30.0"
TRACES = 150
PACKAGES = ("opentelemetry-sdk", "opentelemetry-exporter-otlp-proto-grpc", "opentelemetry-exporter-otlp-proto-http")


def newest() -> Path:
    return Path(sys.executable)


def oldest() -> Path:
    """Return a cached Python with the oldest SDK."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    home = cache / "pandaeval" / f"sdk-{OLDEST}-py{sys.version_info[0]}.{sys.version_info[1]}"
    python = home / "bin" / "python"
    if not (home / "complete").exists():
        shutil.rmtree(home, ignore_errors=True)
        subprocess.run([sys.executable, "-m", "venv", str(home)], check=True)
        wanted = [f"{package}=={OLDEST}" for package in PACKAGES]
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", *wanted], check=True)
        (home / "complete").touch()
    return python


@pytest.mark.parametrize("protocol", ["grpc", pytest.param("http", marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "python", [pytest.param(newest, id="newest"), pytest.param(oldest, id=OLDEST, marks=pytest.mark.slow)]
)
def test_spans_acknowledged_to_the_sdk_survive_a_kill_of_the_collector(
    protocol: str, python: Callable[[], Path], tmp_path: Path
) -> None:
    spans_file = tmp_path / "told.jsonl"
    spans_file.touch()
    with CollectorProcess(tmp_path) as collector:
        collector.start()
        endpoint = collector.grpc if protocol == "grpc" else collector.http
        command = [str(python()), sdk_sender.__file__, protocol, endpoint, str(TRACES), str(spans_file)]
        with subprocess.Popen(command, env=plain_environment()) as application:
            try:
                collector.until(lambda: len(acknowledged(spans_file)) > 20, "sent something")
                collector.kill()
                before = len(acknowledged(spans_file))
                collector.start()
                application.wait(120)
            finally:
                application.kill()
        assert application.returncode == 0
        collector.until(collector.at_rest, "at rest")
        assert collector.stop() == 0
        kept = acknowledged(spans_file)
        assert len(kept) > before, "no span was acknowledged after the restart"
        with snapshot(collector.data, tmp_path) as database:
            stored = {(trace_id.hex(), span_id.hex()) for trace_id, span_id in stored_spans(database)}
            assert kept - stored == set()
            assert stored <= spans(spans_file)
            assert exported_problems(database, collector.results_file) == []
        scored = {each["trace_id"] for each in collector.results() if each["metric"] == "coherence"}
        assert {trace_id for trace_id, _ in kept} <= scored


def acknowledged(spans_file: Path) -> set[tuple[str, str]]:
    return {tuple(each) for line in lines(spans_file) if line["acknowledged"] for each in line["spans"]}


def spans(spans_file: Path) -> set[tuple[str, str]]:
    return {tuple(each) for line in lines(spans_file) for each in line["spans"]}


def lines(spans_file: Path) -> list[dict[str, Any]]:
    text = spans_file.read_text()
    return [json.loads(line) for line in text[: text.rfind("\n") + 1].splitlines()]


def plain_environment() -> dict[str, str]:
    """Return our environment without SDK and package settings."""
    return {key: value for key, value in os.environ.items() if not key.startswith(("OTEL_", "PYTHONPATH"))}
