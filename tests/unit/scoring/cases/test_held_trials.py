"""Trials of a file run need constant memory."""

from __future__ import annotations

import gc
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pandaeval_collector.base.result import Result
from pandaeval_collector.scoring.evaluator import Evaluator, EvaluatorSettings
from pandaeval_lab.cases.files import read_suite
from pandaeval_lab.cases.grading import TrialGrader
from pandaeval_lab.cases.trial import Trial, TrialMatcher
from pandaeval_lab.replay.files import Input
from pandaeval_lab.replay.replay import replay
from pandaeval_lab.replay.trace_files import TraceFiles
from pandaeval_lab.replay.trial_grading import graded as graded_trials
from pandaeval_lab.report.layers import LayerReport
from pandaeval_otel.model import Trace
from support.trials import run, write

SUITE = [{"id": id_, "expected_tools": [{"tool_name": "send"}]} for id_ in "ab"]
TRIALS = 8


class Embedder:
    id, bands = "none", None

    def embed(self, texts: Sequence[str]) -> Any:
        return np.ones((len(texts), 2), dtype=np.float32)


def held() -> tuple[int, int]:
    """Return live trials and traces."""
    gc.collect()
    kinds = [type(each) for each in gc.get_objects()]
    return kinds.count(Trial), kinds.count(Trace)


def reachable(thing: object) -> int:
    """Return the number of reachable objects, without numbers."""
    known: dict[int, object] = {id(thing): thing}
    waiting = [thing]
    while waiting:
        for each in gc.get_referents(waiting.pop()):
            if not isinstance(each, (type, int, float)) and id(each) not in known:
                known[id(each)] = each
                waiting.append(each)
    return len(known)


def _results(files: TraceFiles, evaluator: Evaluator, grader: TrialGrader) -> Iterator[Result]:
    matcher = TrialMatcher(grader.suite)
    yield from replay(files, evaluator, on_decided=lambda decision: matcher.add(decision.traces))
    yield from (result for result in graded_trials(files, grader, matcher) if result.unit.level == "trial")


def test_at_most_two_trials_are_in_memory_at_a_time(tmp_path: Path) -> None:
    (tmp_path / "suite.json").write_text(json.dumps(SUITE))
    runs = [  # the two traces of a trial are far apart, and the trials of the two cases alternate
        run(part * TRIALS + number, case="ab"[number % 2], trial=str(number), calls=[("send", {})] if part else [])
        for part in range(2)
        for number in range(1, TRIALS + 1)
    ]
    evaluator = Evaluator(Embedder(), EvaluatorSettings(enabled=frozenset({"trial.trial_correct"})))
    grader = TrialGrader(evaluator, read_suite(tmp_path / "suite.json"))
    gc.collect()
    gc.freeze()  # excludes objects of other tests from each collection
    most = (0, 0)
    with TraceFiles() as files:
        for request in Input(str(write(tmp_path / "t.jsonl", runs))).requests():
            files.add(request)
        found = []
        for result in _results(files, evaluator, grader):
            found.append((result.finding.metadata["trial"], result.score, len(result.finding.metadata["traces"])))
            trials, traces = held()
            most = max(most[0], trials), max(most[1], traces)
    assert sorted(found) == sorted((str(number), 1.0, 2) for number in range(1, TRIALS + 1))
    assert 0 < most[0] <= 2
    assert 0 < most[1] <= 4


def test_traces_of_a_trial_are_graded_together_in_their_session(tmp_path: Path) -> None:
    suite = [
        {"id": "send", "expected_tools": [{"tool_name": "find"}, {"tool_name": "send"}], "inputs": {"task": "Send it"}},
        {"id": "talk", "interactions": [{"expected_tools": []}, {"expected_tools": [{"tool_name": "send"}]}]},
        {"id": "find", "expected_tools": [{"tool_name": "find"}], "inputs": {"task": "And now?"}},
    ]
    (tmp_path / "suite.json").write_text(json.dumps(suite))
    find, send = [("find", {})], [("send", {})]
    runs = [
        run(1, task="Send it", calls=find, session="s"),
        run(2, task="And now?", calls=send, session="s"),  # joins the trial of the previous trace
        run(3, case="talk", trial="1", session="u"),
        run(4, case="talk", trial="1", calls=send, session="u"),
        run(5, case="talk", trial="2", session="u"),
        run(6, case="nobody", calls=send, session="u"),
        run(7, task="And now?", calls=find, session="v"),
    ]
    evaluator = Evaluator(Embedder(), EvaluatorSettings(enabled=frozenset({"trial.trial_correct"})))
    with TraceFiles() as files:
        for request in Input(str(write(tmp_path / "t.jsonl", runs))).requests():
            files.add(request)
        told = {
            int(each.unit.trace_id, 16): (each.score, each.finding.metadata["trial"], each.unit.session_id)
            for each in _results(files, evaluator, TrialGrader(evaluator, read_suite(tmp_path / "suite.json")))
        }
    assert told == {2: (1.0, "s", "s"), 4: (1.0, "1", "u"), 5: (0.0, "2", "u"), 7: (1.0, "v", "v")}


def graded(count: int, wrong: int) -> Iterator[list[dict[str, Any]]]:
    """Return trial results with regular failures."""
    for number in range(count):
        success = number % wrong != 0
        about = {"case": "ab"[number % 2], "case_kind": "regression", "trial": f"{number}", "traces": [f"{number}"]}
        common = {"outcome": "scored", "score": float(success), "threshold": 1.0, "success": success, "why": None}
        yield [
            {
                **common,
                "metric": name,
                "reason": f"{name} of {number}",
                "metadata": {**about, "layer": layer, "gates": True},
            }
            for name, layer in (("plan_quality", "reasoning"), ("end_state", "outcome"), ("trial_correct", "outcome"))
        ]


def test_layer_report_keeps_grader_results_in_compact_form() -> None:
    report = LayerReport()
    for each in graded(100, 3):
        report.add(each)
    assert reachable(report) < 1000
    assert {case: count.trials for case, count in report.cases().items()} == {"a": 50, "b": 50}
    assert sum(count.correct[True] for count in report.cases().values()) == 66
    last = [*report.trials("a")][48]
    assert (last["trial"], last["broke"], last["trace_ids"]) == ("96", "reasoning", ["96"])
    assert [each["reason"] for each in last["graders"]] == ["plan_quality of 96", "end_state of 96"]
