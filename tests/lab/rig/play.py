"""Plays a scenario with scripted model, agent process and receiver."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from tests.lab.rig import toolbox
from tests.lab.rig.desks import DESKS
from tests.lab.rig.environment import RIG, Framework
from tests.lab.rig.receiver import Receiver
from tests.lab.rig.scenarios import Scenario
from tests.lab.rig.scrub import scrub
from tests.support.model_server import ModelServer
from tests.support.script import Script

LATENCY_S = 0.03  # an instant model would make unrealistically short spans
TIMEOUT_S = 120


@dataclass(frozen=True)
class Run:
    """A process's output and end."""

    requests: list[dict[str, Any]]
    code: int
    raises: bool
    log: str

    @property
    def spans(self) -> int:
        blocks = [block for request in self.requests for block in request.get("resourceSpans", ())]
        return sum(len(scope["spans"]) for block in blocks for scope in block["scopeSpans"])

    @property
    def failed(self) -> bool:
        """Return whether the end was unexpected, or no span arrived."""
        return self.spans == 0 or (self.code != 0) is not self.raises

    @property
    def summary(self) -> str:
        """Return one readable line."""
        return f"{'FAILED' if self.failed else 'ok'}, {len(self.requests)} requests, {self.spans} spans"


class Stage:
    """Model server and receiver for several runs, as a context manager."""

    def __init__(self, scripts: Mapping[str, Script]) -> None:
        self._model = ModelServer(scripts, latency_s=LATENCY_S)
        self._receiver = Receiver()

    def __enter__(self) -> Self:
        self._model.__enter__()
        self._receiver.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._receiver.__exit__(kind, error, at)
        self._model.__exit__(kind, error, at)

    def play(self, framework: Framework, name: str, scenario: Scenario) -> Run:
        """Run ``scenario`` with script ``name`` in its own process."""
        done = subprocess.run(
            framework.command(),
            env=self._environment(framework, name, scenario),
            timeout=TIMEOUT_S,
            capture_output=True,
            text=True,
        )
        requests = [scrub(request) for request in self._receiver.take()]
        return Run(requests, done.returncode, scenario.raises, done.stdout + done.stderr)

    def _environment(self, framework: Framework, name: str, scenario: Scenario) -> dict[str, str]:
        job = {
            "desk": scenario.desk,
            "agent": DESKS[scenario.desk].agent,
            "instructions": DESKS[scenario.desk].instructions,
            "tools": toolbox.schemas(scenario.desk),
            "results": toolbox.results(scenario),
            "session": scenario.session,
            "turns": scenario.turns,
            "streamed": scenario.streamed,
            "failing_tools": scenario.failing_tools,
            "base_url": self._model.url(name),
            "model_root": f"{self._model.root}/{name}",
        }
        return {
            "PATH": os.environ["PATH"],
            "HOME": os.environ.get("HOME", ""),
            "PYTHONPATH": str(RIG),
            "PYTHONDONTWRITEBYTECODE": "1",
            "RIG_JOB": json.dumps(job),
            "OTEL_SERVICE_NAME": DESKS[scenario.desk].service,
            "OTEL_RESOURCE_ATTRIBUTES": "service.version=1.0.0,deployment.environment.name=staging",
            "OTEL_EXPORTER_OTLP_ENDPOINT": self._receiver.url,
            "OTEL_METRICS_EXPORTER": "none",
            "OTEL_BSP_SCHEDULE_DELAY": "200",
            "OTEL_BLRP_SCHEDULE_DELAY": "200",
            "DO_NOT_TRACK": "1",
        } | framework.env


def as_lines(requests: Iterable[dict[str, Any]]) -> bytes:
    lines = (json.dumps(request, ensure_ascii=False, separators=(",", ":")) for request in requests)
    return "".join(f"{line}\n" for line in lines).encode()
