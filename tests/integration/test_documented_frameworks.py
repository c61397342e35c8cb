"""The framework lines of docs/start/python.md work with the newest releases.

Installs packages: ``pytest -m e2e tests/integration/test_documented_frameworks.py``.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import venv
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from support.collector import CollectorProcess
from tests.lab.rig import toolbox
from tests.lab.rig.desks import DESKS
from tests.lab.rig.environment import RIG
from tests.lab.rig.scenarios import SCENARIOS
from tests.support.model_server import ModelServer

_ROOT = Path(__file__).parents[2]
_DOCS = (_ROOT / "docs" / "start" / "python.md").read_text()
_NAMES = "import importlib.metadata as m; print(*sorted(f'{d.name}=={d.version}' for d in m.distributions()))"
_GENAI = {
    "OTEL_SEMCONV_STABILITY_OPT_IN": "gen_ai_latest_experimental",
    "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "SPAN_ONLY",
}
_RIG_NEEDS = "opentelemetry-exporter-otlp-proto-http"

pytestmark = pytest.mark.e2e


@dataclass(frozen=True)
class Framework:
    """``requirements``: the application's packages. ``env``: documented variables. ``logs``: adds the log processor."""

    script: str
    requirements: tuple[str, ...]
    env: dict[str, str] = field(default_factory=dict)
    logs: bool = False


FRAMEWORKS = {
    "openai": Framework("openai_agent.py", ("openai",), {**_GENAI, "RIG_INSTRUMENTATION": "genai"}),
    "anthropic": Framework("anthropic_agent.py", ("anthropic",), _GENAI),
    "langgraph": Framework(
        "langgraph_agent.py",
        ("langgraph", "langchain", "langchain-openai"),
        {**_GENAI, "RIG_INSTRUMENTATION": "genai", "LANGSMITH_TRACING": "false"},
    ),
    "openai-agents": Framework("openai_agents_agent.py", ("openai-agents",), {"RIG_INSTRUMENTATION": "openinference"}),
    "pydantic-ai": Framework("pydantic_ai_agent.py", ("pydantic-ai-slim[openai]",)),
    "strands": Framework("strands_agent.py", ("strands-agents[openai,otel]",)),
    "crewai": Framework("crewai_agent.py", ("crewai",), {"CREWAI_DISABLE_TELEMETRY": "true"}),
    "google-adk": Framework(
        "adk_agent.py",
        ("google-adk",),
        {
            "GOOGLE_API_KEY": "none",
            "GOOGLE_GENAI_USE_VERTEXAI": "0",
            **_GENAI,
            "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "SPAN_AND_EVENT",
        },
        logs=True,
    ),
}


def documented(framework: str) -> tuple[list[str], str]:
    section = _DOCS.split(f"\n### {framework}\n")[1].split("\n#")[0]
    install = re.search(r"`pip install ([^`]+)`", section)
    (lines,) = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    return install.group(1).split() if install else [], lines


def log_lines() -> str:
    """Return documented log lines without the provider."""
    (lines,) = (each for each in re.findall(r"```python\n(.*?)```", _DOCS, re.DOTALL) if "LoggerProvider()" in each)
    return "\n".join(line for line in lines.splitlines() if "LoggerProvider()" not in line)


def install(folder: Path, requirements: list[str]) -> Path:
    """Create an environment; return its interpreter."""
    python = folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    uv = shutil.which("uv") or shutil.which("uv", path=str(Path(sys.executable).parent))
    if uv:
        subprocess.run([uv, "venv", "--quiet", str(folder)], check=True)
        command = [uv, "pip", "install", "--quiet", "--python", str(python)]
    else:
        venv.create(folder, with_pip=True)
        command = [str(python), "-m", "pip", "install", "--quiet"]
    subprocess.run([*command, *requirements, str(_ROOT)], check=True)
    return python


@pytest.mark.parametrize("name", FRAMEWORKS)
@pytest.mark.timeout(900)
def test_documented_lines_give_scores_with_every_framework(name: str, tmp_path: Path) -> None:
    framework = FRAMEWORKS[name]
    scenario = SCENARIOS["good"]
    added, lines = documented(name)
    python = install(tmp_path / "venv", [*framework.requirements, *added, _RIG_NEEDS])
    with ModelServer({"good": scenario.dialogue}) as model, CollectorProcess(tmp_path / "collector") as collector:
        collector.start()
        job = {
            "desk": scenario.desk,
            "agent": DESKS[scenario.desk].agent,
            "instructions": DESKS[scenario.desk].instructions,
            "tools": toolbox.schemas(scenario.desk),
            "results": toolbox.results(scenario),
            "session": scenario.session,
            "turns": scenario.turns,
            "streamed": False,
            "failing_tools": False,
            "base_url": model.url("good"),
            "model_root": f"{model.root}/good",
        }
        environ = {
            "PATH": os.environ["PATH"],
            "HOME": str(tmp_path),
            "PYTHONPATH": str(RIG),
            "RIG_JOB": json.dumps(job),
            "PANDAEVAL_ENDPOINT": collector.grpc,
            "DOCUMENTED_LINES": "\f".join([lines, *([log_lines()] if framework.logs else [])]),
            "DO_NOT_TRACK": "1",
            "OTEL_METRICS_EXPORTER": "none",
            **framework.env,
        }
        script = RIG / "agents" / framework.script
        done = subprocess.run(
            [str(python), str(RIG / "documented.py"), str(script)],
            env=environ, cwd=tmp_path, capture_output=True, text=True, timeout=300,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr[-5000:]
        collector.until(lambda: bool(collector.results()), "done with the trace")
        collector.until(collector.at_rest, "at rest")
        found = {each["metric"]: each for each in collector.results() if each["level"] == "trace"}
    versions = subprocess.run([str(python), "-c", _NAMES], capture_output=True, text=True, check=True).stdout.split()
    print(
        name, *(each for each in versions if each.lower().startswith((*_plain(framework.requirements), *_plain(added))))
    )
    assert found["coherence"]["outcome"] == "scored", found["coherence"]
    assert found["coherence"]["success"]
    assert found["tool_loop"]["outcome"] == "scored", found["tool_loop"]


def _plain(requirements: list[str]) -> list[str]:
    return [f"{re.split(r'[=<>[]', each)[0].lower()}==" for each in requirements]
