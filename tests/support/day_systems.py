"""The systems of the day: a collector beside an OpenTelemetry Collector, Jaeger, Prometheus with alerts, a judge."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from support.collector import CollectorProcess, children_of
from support.day_agents import CLAIM, TOO_LONG
from support.jaeger import Jaeger, pages
from support.judge import JudgeAnswer, JudgeServer, rubric_of, text_of
from support.otelcol import ConfiguredOtelcol, Otelcol
from support.prometheus import Prometheus
from support.scripted_judge import GOOD, RATED, RIGHT, scripted_reply

RULES = Path(__file__).parents[2] / "deploy" / "prometheus" / "rules.yaml"
_SETTINGS = {
    "PANDAEVAL_CLOSE__IDLE": "10s",
    "PANDAEVAL_SESSION__IDLE": "45s",
    "PANDAEVAL_LATE__WINDOW": "6h",
    "PANDAEVAL_EXPORTERS__PROMETHEUS__RESULTS": "true",
    "PANDAEVAL_JUDGE__MODEL": "openai/gpt-4o-mini",
    "PANDAEVAL_JUDGE__API_KEY_ENV": "JUDGE_KEY",
    "PANDAEVAL_JUDGE__DELAY": "2s",
    "PANDAEVAL_JUDGE__DAILY_USD": "5",
    "JUDGE_KEY": "sk-test",
}
_WORKER = b"line.main"
_FAIR = {
    **GOOD,
    **{name: {"reason": "As the guide says.", "rating": 5} for name in RATED},
    "confidence": {"reason": "It did not waver.", "confidence": 0.9},
}
_WRONG = {
    "things": [{"thing": "Do what was asked.", "became": "missing", "shown_by": "turn 1"}],
    "correct": False,
    "sure": 5,
}


@dataclass
class DaySystems:
    """The running systems. ``judged``: (time, status, rubric, text) of each call of the judge."""

    collector: CollectorProcess
    prometheus: Prometheus
    jaeger: Jaeger
    logs: Otelcol
    beside: ConfiguredOtelcol
    judge_is_up: bool = True
    judged: list[tuple[float, int, str]] = field(default_factory=list)

    def judge(self, _: int, body: dict[str, Any]) -> JudgeAnswer:
        """Answer honestly while up: a lie is wrong, all else is right."""
        rubric, up = rubric_of(body), self.judge_is_up
        self.judged.append((time.time(), 200 if up else 503, rubric))
        if not up:
            return JudgeAnswer(status=503)
        record = " ".join(map(text_of, body["messages"]))
        wrong = CLAIM in record or TOO_LONG in record
        reason = "The run crashed." if TOO_LONG in record else "The refund failed, and the answer claims it."
        right = {**RIGHT, **({**_WRONG, "reason": reason} if wrong else {})}
        whole = {**right, "goal_completed": not wrong, "friction": "none", "friction_turns": []}
        answers = {**_FAIR, "correctness": right, "conversation": whole}
        if wrong:
            answers["task_completion"] = {"answered": "no", "taken": "no", "reason": reason, "verdict": 0.0}
        return JudgeAnswer(scripted_reply(body["messages"], rubric, answers))

    def sink_down(self) -> None:
        self.beside.stop()

    def sink_up(self) -> None:
        self.beside.__enter__()

    def kill_front(self) -> None:
        """Kill the whole collector and start it again, as a supervisor does."""
        self.collector.kill()
        self.collector.start()

    def kill_worker(self) -> int:
        """Kill a scoring worker; return its process ID."""
        worker = children_of(self.collector, _WORKER)[0]
        os.kill(worker, signal.SIGKILL)
        return worker

    def api(self, path: str, **asked: Any) -> Any:
        answer = httpx.get(f"{self.collector.http}/api/v1{path}", params=asked, timeout=120.0)
        return answer.raise_for_status().json()

    def tool(self, name: str, **arguments: Any) -> str:
        """Call a tool at ``/mcp`` and return its text."""
        call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": arguments}}
        headers = {"accept": "application/json, text/event-stream"}
        answer = httpx.post(f"{self.collector.http}/mcp", json=call, headers=headers, timeout=120.0)
        text = answer.raise_for_status().text
        document = text if text.startswith("{") else text.partition("data: ")[2]
        return "\n".join(part["text"] for part in json.loads(document)["result"]["content"])

    def firing(self) -> list[str]:
        """Return the names of the alerts that fire now."""
        found = self.prometheus.alerts()
        return sorted({each["labels"]["alertname"] for each in found if each["state"] == "firing"})


@contextmanager
def day_systems(folder: Path) -> Iterator[DaySystems]:
    """Start everything."""
    with ExitStack() as stack:
        jaeger = stack.enter_context(Jaeger(folder / "jaeger", pages(folder / "jaeger-pages")))
        logs = stack.enter_context(Otelcol(folder / "logs"))
        logs.start()
        collector = stack.enter_context(CollectorProcess(folder / "collector", _SETTINGS))
        where = {
            "TRACES_ENDPOINT": jaeger.grpc,
            "LOGS_ENDPOINT": f"127.0.0.1:{logs.grpc_port}",
            "METRICS_ENDPOINT": f"http://127.0.0.1:{logs.http_port}",
            "PANDAEVAL_ENDPOINT": collector.grpc,
        }
        beside = stack.enter_context(ConfiguredOtelcol("beside.yaml", folder / "beside", where, {}))
        target = f"127.0.0.1:{collector.health_port}"
        prometheus = stack.enter_context(Prometheus(folder / "prometheus", target, "5s", RULES))
        made = DaySystems(collector, prometheus, jaeger, logs, beside)
        judge = stack.enter_context(JudgeServer(made.judge))
        collector.settings |= {
            "PANDAEVAL_EXPORTERS__OTLP__ENDPOINT": beside.results,
            "PANDAEVAL_JUDGE__API_BASE": judge.url,
        }
        collector.start()
        yield made
