"""Live traces that are trials: graded on the line, emitted like other results."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from pandaeval_collector.base.result import Result
from pandaeval_collector.cli._start_checks import start_problems
from pandaeval_collector.config import load
from pandaeval_collector.exporters.attributes import encode_attributes
from pandaeval_collector.exporters.encode import log_record, spans
from pandaeval_collector.pipeline.line.grading import LiveGrading
from pandaeval_collector.receivers.files import Input
from pandaeval_collector.runs.filerun import FileRun
from pandaeval_collector.scoring.evaluator import Evaluator, EvaluatorSettings
from pandaeval_otel.model import Kind, Trace
from pandaeval_otel.model import Span as OneSpan
from support.trials import run, write

SUITE = [
    {"id": "send", "expected_tools": [{"tool_name": "send"}]},
    {"id": "talk", "interactions": [{"expected_tools": []}, {"expected_tools": [{"tool_name": "send"}]}]},
]


class Embedder:
    id, bands = "none", None

    def embed(self, texts: Sequence[str]) -> Any:
        return np.ones((len(texts), 2), dtype=np.float32)


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> list[Result]:
    folder = tmp_path_factory.mktemp("live")
    (folder / "suite.json").write_text(json.dumps(SUITE))
    runs = [
        run(1, case="send", trial="7", calls=[("send", {})], session="s"),
        run(2),
        run(3, case="send"),
        run(4, case="talk"),
    ]
    evaluator = Evaluator(Embedder(), EvaluatorSettings(cases=str(folder / "suite.json")))
    with FileRun(evaluator) as line:
        for request in Input(str(write(folder / "t.jsonl", runs))).requests():
            line.add(request)
        return [*line.results()]


def test_a_trace_that_names_a_case_is_graded_with_its_other_results(results: list[Result]) -> None:
    correct = {r.unit.trace_id: r for r in results if r.metric == "trial_correct"}
    assert {int(id_, 16): result.score for id_, result in correct.items()} == {1: 1.0, 3: 0.0, 4: None}
    assert correct[f"{1:032x}"].finding.metadata["trial"] == "7"
    assert correct[f"{1:032x}"].unit.session_id == "s"
    assert correct[f"{4:032x}"].score is None
    assert {r.unit.level for r in results if r.unit.trace_id == f"{2:032x}"} == {"trace"}


def test_a_part_of_a_conversation_is_not_held_against_all_of_it(results: list[Result]) -> None:
    (only,) = (r for r in results if r.unit.level == "trial" and r.unit.trace_id == f"{4:032x}")
    assert (only.metric, only.why) == ("trial_correct", "insufficient_evidence")
    assert "1 of 2 interactions" in only.finding.reason


def test_a_step_that_is_a_trace_of_its_own_is_no_trial(tmp_path: Path) -> None:
    (tmp_path / "suite.json").write_text(json.dumps(SUITE))
    live = LiveGrading(Evaluator(Embedder(), EvaluatorSettings()), tmp_path / "suite.json")
    span = OneSpan("1" * 32, "1" * 16, "", "run", Kind.AGENT, 1, 2, attributes={"pandaeval.case.id": "send"})
    whole = Trace("1" * 32, (span,), "1" * 16, input="go", output="done", digest="d")
    assert [result.metric for result in live.alone(whole, live.facts(whole))].count("trial_correct") == 1
    asking = replace(whole, spans=(replace(span, kind=Kind.LLM),), ends_in_tool_call=True)
    assert asking.is_step
    assert not live.alone(asking, live.facts(asking))


def test_its_results_are_no_signals_of_the_session(results: list[Result]) -> None:
    (session,) = (r for r in results if r.metric == "agent_reliability")
    assert "tool_correctness" not in json.dumps(session.finding.metadata["per_trace_signals"])


def test_they_are_sent_as_log_events_and_evaluation_spans(results: list[Result]) -> None:
    of_one = [r for r in results if r.unit.level == "trial" and r.unit.trace_id == f"{1:032x}"]
    encoded = encode_attributes(of_one)
    log = LogRecord.FromString(log_record(encoded[-1]))
    told = {each.key: each.value.string_value for each in log.attributes}
    assert told["pandaeval.level"] == "trial"
    assert told["pandaeval.case.id"] == "send"
    assert told["pandaeval.trial"] == "7"
    assert told["gen_ai.evaluation.name"] == "trial_correct"
    (span,) = (Span.FromString(each) for each in spans(encoded))
    assert span.name == "✓ evaluate trial"
    assert span.trace_id.hex() == f"{1:032x}"
    assert len(span.events) == len(of_one)


def test_a_case_file_that_cannot_be_used_keeps_a_collector_from_starting(tmp_path: Path) -> None:
    (tmp_path / "suite.yaml").write_text("- id: a\n  grader: nobody\n")
    config = load(None, {"PANDAEVAL_CASES__PATH": str(tmp_path / "suite.yaml")})
    (problem,) = (each for each in start_problems(config) if each.key == "cases.path")
    assert "suite.yaml:2: cases[0].graders[0]: there is no grader nobody" in problem.message
