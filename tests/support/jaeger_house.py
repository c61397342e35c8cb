"""Recorded framework runs with their scores in a real Jaeger."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from pandaeval_lab.cli._inputs import requests
from pandaeval_lab.replay.files import Request
from pandaeval_otel.wire.own_output import evaluation_span_id
from support.collector import CollectorProcess
from support.jaeger import Jaeger
from support.judge import JudgeAnswer, JudgeServer, rubric_of
from support.judged_files import send
from support.processors import until
from support.recent import recent
from support.scripted_judge import GOOD, TURN, of_turn, scripted_reply
from support.senders import GrpcSender

_CAPTURES = Path(__file__).parents[1] / "golden" / "captures"
_FRAMEWORKS = ("pydantic_ai", "openai_agents_genai")
RUNS = ("good", "tool_loop", "off_topic", "wrong_tool", "repeated_answer", "good_session")
_JUDGED = {
    "PANDAEVAL_JUDGE__DETAIL": "all",
    "PANDAEVAL_JUDGE__MODEL": "openai/gpt-4o-mini",
    "PANDAEVAL_JUDGE__API_KEY_ENV": "JUDGE_KEY",
    "PANDAEVAL_JUDGE__DELAY": "100ms",
    "PANDAEVAL_UI__URL": "http://localhost:4328",
    "JUDGE_KEY": "sk-test",
}
_WRONG = {
    "reason": "What is in stock says nothing of a warranty.",
    "missing": [],
    "excess": [],
    "wrong": [],
    "score": 0.2,
}


@dataclass(frozen=True, slots=True)
class JaegerHouse:
    """``url``: of Jaeger's pages; ``results``: as JSON objects."""

    url: str
    results: list[dict[str, Any]]

    def ids(self, *, failed: bool, level: str = "trace") -> set[str]:
        """Return IDs with failed results at this level."""
        key = "trace_id" if level == "trace" else "session_id"
        of_level = [each for each in self.results if (each["level"] == "session") == (level == "session")]
        bad = {each[key] for each in of_level if each["success"] is False}
        return bad if failed else {each[key] for each in of_level} - bad

    def trace_of(self, metric: str) -> dict[str, Any]:
        return next(each for each in self.results if each["metric"] == metric and each["success"] is False)

    def inline_span(self, trace_id: str) -> str:
        """Return the ID of the evaluation span without a model."""
        of_trace = [each for each in self.results if each["trace_id"] == trace_id and each["level"] == "trace"]
        return evaluation_span_id(each["id"] for each in of_trace if each["evaluator"]["kind"] != "llm").hex()


@contextmanager
def jaeger_house(folder: Path, shown: Path) -> Iterator[JaegerHouse]:
    """Start it and wait for every result. ``shown``: folder of built pages."""
    with ExitStack() as stack:
        jaeger = stack.enter_context(Jaeger(folder / "jaeger", shown))
        judge = stack.enter_context(JudgeServer(_judge))
        served = {
            "PANDAEVAL_EXPORTERS__OTLP__TRACES__ENDPOINT": jaeger.grpc,
            "PANDAEVAL_JUDGE__API_BASE": judge.url,
        }
        collector = stack.enter_context(CollectorProcess(folder / "run", _JUDGED | served))
        collector.start()
        files = [file for name in RUNS for each in _FRAMEWORKS if (file := _file(each, name)).exists()]
        copies = recent(files, folder / "recent")
        send(collector, copies)
        _send_spans(jaeger, copies)
        collector.until(lambda: _all_judged(collector), "judged", 180)
        collector.until(collector.at_rest, "at rest")
        yield JaegerHouse(jaeger.url, collector.results())


def _file(framework: str, name: str) -> Path:
    return _CAPTURES / framework / f"{name}.otlp.jsonl"


def _judge(_: int, body: dict[str, Any]) -> JudgeAnswer:
    tool = _WRONG if "How long is the warranty" in str(body["messages"]) else GOOD["tool_correctness"]
    answers = {**GOOD, "tool_correctness": tool, "confidence": {"reason": "It did not waver.", "confidence": 0.9}}
    turn = of_turn({**TURN, "verbosity": {"reason": "Short and whole.", "rating": 5}})
    answers |= dict.fromkeys((*TURN, "turn"), turn)
    return JudgeAnswer(scripted_reply(body["messages"], rubric_of(body), answers))


def _all_judged(collector: CollectorProcess) -> bool:
    with collector.database() as database:
        jobs = dict(database.execute("SELECT state, count(*) FROM jobs GROUP BY state").fetchall())
    return bool(jobs) and not {"due", "leased"} & jobs.keys()


def _send_spans(jaeger: Jaeger, files: list[Path]) -> None:
    door = GrpcSender(jaeger.grpc)
    until(lambda: door.send(ExportTraceServiceRequest()).acknowledged, "Jaeger's start")
    for request in requests([str(file) for file in files]):
        assert isinstance(request, Request)
        if not request.logs:
            assert door.send(ExportTraceServiceRequest.FromString(request.data)).acknowledged
    door.close()
