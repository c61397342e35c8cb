"""A full deployment of real loopback processes, after some minutes of agent work.

```
 agents ──▶ OpenTelemetry Collector ──▶ Jaeger
    │         │           ▲        └──▶ Prometheus (OTLP), a log store
    └──────▶ PandaEval ───┘ ◀── Prometheus (scrapes)
```
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.sampling import DEFAULT_ON

from pandaeval_otel import PandaEvalSpanProcessor, using_session
from support.agents import run_agent
from support.collector import CollectorProcess
from support.jaeger import Jaeger
from support.judge import JudgeAnswer, JudgeServer, rubric_of
from support.made_traces import Composer
from support.otelcol import ConfiguredOtelcol, Otelcol, plain
from support.processors import until
from support.prometheus import Prometheus
from support.scripted_judge import GOOD, scripted_reply
from support.senders import GrpcSender

MODEL = "openai/gpt-4o-mini"
_KNOWN = Path(__file__).parents[1] / "golden" / "captures" / "pydantic_ai" / "good.otlp.jsonl"
_WAVES, _PER_WAVE, _PAUSE_S = 4, 12, 1.5
_SETTINGS = {
    "PANDAEVAL_EXPORTERS__OTLP__METRICS_INTERVAL": "1s",
    "PANDAEVAL_EXPORTERS__PROMETHEUS__RESULTS": "true",
    "PANDAEVAL_JUDGE__DETAIL": "all",
    "PANDAEVAL_JUDGE__MODEL": MODEL,
    "PANDAEVAL_JUDGE__API_KEY_ENV": "JUDGE_KEY",
    "PANDAEVAL_JUDGE__DELAY": "500ms",
    "PANDAEVAL_JUDGE__SAMPLE": "0.8",
    # A call reserves more than it costs. With several calls at once, the budget ends before 90 % of it is spent.
    "PANDAEVAL_JUDGE__CONCURRENCY": "1",
    "PANDAEVAL_JUDGE__DAILY_USD": "0.03",
    "JUDGE_KEY": "sk-test",
}


@dataclass
class RunningSystems:
    """The running systems. ``agents``: trace IDs by service."""

    jaeger: Jaeger
    prometheus: dict[str, Prometheus]
    logs: Otelcol
    collector: CollectorProcess
    agents: dict[str, list[str]] = field(default_factory=dict)

    @property
    def results(self) -> list[dict[str, Any]]:
        """Return every result of the JSON lines exporter."""
        return self.collector.results()


@contextmanager
def running_systems(folder: Path) -> Iterator[RunningSystems]:
    """Start everything, run the agents, and wait for all results."""
    with ExitStack() as stack:
        jaeger = stack.enter_context(Jaeger(folder / "jaeger"))
        fed = stack.enter_context(Prometheus(folder / "fed", None))
        logs = stack.enter_context(Otelcol(folder / "logs"))
        logs.start()
        judge = stack.enter_context(JudgeServer(_judge))
        collector = stack.enter_context(CollectorProcess(folder / "collector", _SETTINGS))
        where = {
            "TRACES_ENDPOINT": jaeger.grpc,
            "LOGS_ENDPOINT": f"127.0.0.1:{logs.grpc_port}",
            "METRICS_ENDPOINT": fed.otlp,
            "PANDAEVAL_ENDPOINT": collector.grpc,
        }
        beside = stack.enter_context(ConfiguredOtelcol("beside.yaml", folder / "beside", where, {}))
        _damage(collector.data)
        collector.settings |= {
            "PANDAEVAL_EXPORTERS__OTLP__ENDPOINT": beside.results,
            "PANDAEVAL_JUDGE__API_BASE": judge.url,
        }
        collector.start()
        scraped = stack.enter_context(Prometheus(folder / "scraped", f"127.0.0.1:{collector.health_port}"))
        made = RunningSystems(jaeger, {"by OTLP": fed, "by scrape": scraped}, logs, collector)
        _work(made, beside)
        _settle(made)
        yield made


def _judge(number: int, body: dict[str, Any]) -> JudgeAnswer:
    """A fair judge with missing, random and delayed verdicts."""
    rubric = rubric_of(body)
    if rubric == "step_efficiency":
        return JudgeAnswer("I would say 0.9.")
    if number == 5:
        return JudgeAnswer(status=500)
    confidence = {"reason": "By chance.", "confidence": (0.4, 0.9, 0.2, 0.7, 0.9)[number % 5]}
    never = {"never": "in form"} if rubric == "trace" else GOOD["step_efficiency"]
    return JudgeAnswer(
        scripted_reply(body["messages"], rubric, {**GOOD, "confidence": confidence, "step_efficiency": never})
    )


def _damage(data: Path) -> None:
    data.mkdir(parents=True)
    (data / "pandaeval.db").write_bytes(b"not a store" * 1000)


# -- the agents --------------------------------------------------------------------------------------------------


def _work(made: RunningSystems, beside: ConfiguredOtelcol) -> None:
    """Run good, bad and unscored agents, in waves."""
    composer, late = Composer(11, sessions=5), Composer(12)
    door = GrpcSender(beside.grpc)
    held = late.trace(6)
    assert door.send(held.request(held.spans[1:])).acknowledged
    for wave in range(_WAVES):
        for _ in range(_PER_WAVE):
            trace = composer.trace()
            request = trace.request()
            request.resource_spans[0].resource.attributes.add(key="deployment.environment.name").value.string_value = (
                "test" if trace.service == "shop" else "production"
            )
            assert door.send(request).acknowledged
            made.agents.setdefault(trace.service, []).append(trace.trace_id.hex())
        _sdk_agents(made, beside, wave)
        time.sleep(_PAUSE_S)
    assert door.send(held.request(held.spans[:1])).acknowledged
    door.close()


def _sdk_agents(made: RunningSystems, beside: ConfiguredOtelcol, wave: int) -> None:
    """Run SDK applications: OTLP, with the processor, and without content."""
    plain_otlp = _provider("plain", beside)
    made.agents.setdefault("plain", []).append(run_agent(plain_otlp.get_tracer("agents"), wave))
    with_processor = _provider("processor", beside, PandaEvalSpanProcessor(made.collector.grpc))
    with using_session(f"conversation-{wave}"):
        made.agents.setdefault("processor", []).append(run_agent(with_processor.get_tracer("agents"), wave))
    silent = _provider("silent", beside)
    with silent.get_tracer("agents").start_as_current_span("invoke_agent quiet") as span:
        span.set_attributes({"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "quiet"})
        made.agents.setdefault("silent", []).append(f"{span.get_span_context().trace_id:032x}")
    for provider in (plain_otlp, with_processor, silent):
        provider.shutdown()


def _provider(service: str, beside: ConfiguredOtelcol, *processors: Any) -> TracerProvider:
    made = TracerProvider(DEFAULT_ON, Resource({"service.name": service}), shutdown_on_exit=False)
    for each in (BatchSpanProcessor(OTLPSpanExporter(beside.grpc, insecure=True)), *processors):
        made.add_span_processor(each)
    return made


# -- waiting -----------------------------------------------------------------------------------------------------


def _settle(made: RunningSystems) -> None:
    """Wait until all work is delivered and scraped."""
    collector = made.collector
    collector.until(lambda: _revised(made), "revised")
    # The end of a session creates the last judge jobs.
    collector.until(lambda: collector.at_rest() and not collector.jobs(), "at rest and done with judging", 180)
    until(lambda: _logged(made.logs) == _ids(collector), "logged")
    for way, prometheus in made.prometheus.items():
        until(lambda: _counted(prometheus) == _shown(collector) > len(_ids(collector)), f"counted {way}")  # noqa: B023
    time.sleep(3.0)  # some more scrapes, for the last rates


def _revised(made: RunningSystems) -> bool:
    return any(result["revision"] > 1 for result in made.results)


def _logged(logs: Otelcol) -> set[str]:
    return {plain(log["attributes"])["pandaeval.result.id"] for log in logs.items("logs")}


def _ids(collector: CollectorProcess) -> set[str]:
    return {result["id"] for result in collector.results()}


def _counted(prometheus: Prometheus) -> float:
    return prometheus.value("sum(pandaeval_evaluations_total)")


def _shown(collector: CollectorProcess) -> float:
    """Return the evaluated results by the collector's counters."""
    return float(sum(count for (name, _, _), count in collector.counts().items() if name == "evaluations"))
