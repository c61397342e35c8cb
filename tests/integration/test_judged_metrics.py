"""Judged trace metrics through real litellm: cost and sharing."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from pandaeval_collector.base.score import Score
from pandaeval_collector.judge.call import JudgeConfig
from pandaeval_collector.judge.client import Judge, JudgeClient
from pandaeval_collector.judge.pack import pack
from pandaeval_collector.judge.process import WorkerProcess
from pandaeval_collector.scoring.evaluator import Evaluator, EvaluatorSettings, JudgeSettings
from pandaeval_otel.model import Turn
from support.collector import CollectorProcess
from support.embedder import WordEmbedder
from support.judge import JudgeServer
from support.judged import call, trace
from support.judged_files import MODEL, NAMES, behave, environ, evaluated, of_judges, send
from support.scripted_judge import Memory

MOST_CALLS = 2
"""Calls about a trace, with ``correctness``."""
GOLDEN = Path(__file__).parents[1] / "golden" / "captures"
CAPTURE = GOLDEN / "pydantic_ai" / "good.otlp.jsonl"
RUN = trace(
    calls=[call(1), call(2, "book")],
    reasoning=("First I search, then I book, then I tell.",),
    turns=(Turn("Where is my parcel?", "It left the depot."), Turn("Book a pick-up.", "It is booked.")),
)


async def test_the_seven_judged_trace_metrics_cost_one_call() -> None:
    by = Evaluator(WordEmbedder(), EvaluatorSettings(judge=JudgeSettings(MODEL)))
    _, every = by.judged.questions(RUN)
    questions = [question for question in every if question.metric.name in NAMES]
    assert (len(every), len(questions)) == (8, 7), "correctness is included, because there is no session"
    with JudgeServer(behave) as server:
        setup = JudgeConfig((MODEL,), server.url, "JUDGE_KEY", timeout=60.0, retries=0)
        process = WorkerProcess(setup, {**os.environ, "JUDGE_KEY": "sk-test"})
        desk, packed = JudgeClient(process, Memory()), pack(RUN, b"s" * 32)
        judges = {
            each.metric.name: Judge(desk, packed, MODEL, together=by.judged.together(every, each)) for each in questions
        }
        try:
            asked = [each.metric.ask(RUN, judges[each.metric.name]) for each in questions if each.metric.ask]
            findings = await asyncio.gather(*asked)
        finally:
            await process.close()
    assert all(isinstance(found, Score) for found in findings), findings
    assert len(server.requests) == sum(judge.spent.calls for judge in judges.values()) == 1


def test_a_trace_of_a_file_is_judged_by_all_seven_metrics_in_at_most_two_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    files = [GOLDEN / name / "good.otlp.jsonl" for name in ("pydantic_ai", "langgraph_openinference")]
    results, heads = evaluated(files, monkeypatch)
    results = of_judges(results)
    for trace_id in {each["trace_id"] for each in results}:
        of_trace = [each for each in results if each["trace_id"] == trace_id]
        assert {each["metric"] for each in of_trace} == NAMES
        assert any(each["outcome"] == "scored" for each in of_trace)
    assert max(heads.values()) <= MOST_CALLS
    assert len(heads) == len(files), "all calls about a trace must show the same record"


@pytest.mark.slow  # files are judged by the same code
def test_a_running_collector_judges_by_all_seven_metrics(tmp_path: Path) -> None:
    with JudgeServer(behave) as server, CollectorProcess(tmp_path, environ(server)) as collector:
        collector.start()
        send(collector, [CAPTURE])
        collector.until(lambda: _judged(collector) == NAMES, "judged by all seven")
        assert collector.stop() == 0
    assert len(server.requests) <= MOST_CALLS


def _judged(collector: CollectorProcess) -> set[str]:
    return {each["metric"] for each in of_judges(collector.results())}
