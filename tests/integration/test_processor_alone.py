"""``pandaeval_otel`` without the collector, with the oldest libraries.

Installs packages: ``pytest -m slow tests/integration/test_processor_alone.py``.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
import venv
from pathlib import Path

import pytest

from support.processors import FakeCollector, spans_of

_ROOT = Path(__file__).parents[2]
_APPLICATION = """
import sys
from opentelemetry import trace
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk.trace import TracerProvider
from pandaeval_otel import PandaEvalLogProcessor, PandaEvalSpanProcessor, session_end, using_case, using_session

tracing, logs = TracerProvider(), LoggerProvider()
tracing.add_span_processor(PandaEvalSpanProcessor())
logs.add_log_record_processor(PandaEvalLogProcessor())
tracer = tracing.get_tracer("application")
with using_session("s"), using_case("c", 1), tracer.start_as_current_span("invoke_agent a") as root:
    root.set_attribute("gen_ai.operation.name", "invoke_agent")
    with tracer.start_as_current_span("chat"):
        pass
    session_end()
assert tracing.force_flush(20_000)
tracing.shutdown()
logs.shutdown()
heavy = {"pandaeval_collector", "numpy", "pydantic", "litellm", "starlette", "uvicorn"} & {*sys.modules}
assert not heavy, heavy
"""

pytestmark = pytest.mark.slow


def oldest() -> list[str]:
    """Return the lowest allowed requirements."""
    project = tomllib.loads((_ROOT / "pyproject.toml").read_text())["project"]
    return [requirement.replace(">=", "==") for requirement in project["dependencies"]]


@pytest.mark.parametrize("end", ["oldest", "newest"])
def test_sdk_works_with_oldest_and_newest_dependencies_without_warnings(end: str, tmp_path: Path) -> None:
    venv.create(tmp_path / "venv", with_pip=True)
    python = tmp_path / "venv" / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")

    def run(*arguments: str, **environ: str) -> str:
        done = subprocess.run([str(python), *arguments], env=environ or None, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[-3000:]
        assert not environ or "pandaeval_otel" not in done.stderr, done.stderr
        return done.stdout

    run("-m", "pip", "install", "--quiet", str(_ROOT), *(oldest() if end == "oldest" else ()))
    installed = json.loads(run("-m", "pip", "list", "--format=json", "--disable-pip-version-check"))
    names = {each["name"].lower() for each in installed}
    assert not {"numpy", "pydantic", "typer", "uvicorn", "litellm"} & names
    with FakeCollector() as collector:
        run("-W", "always", "-c", _APPLICATION, PANDAEVAL_ENDPOINT=collector.endpoint)
        (sent,) = collector.traces
    assert [span.name for span in spans_of(sent)] == ["chat", "invoke_agent a"]
    assert (sent.session_id, sent.case_id, sent.trial, sent.session_end) == ("s", "c", "1", True)
