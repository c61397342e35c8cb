"""``judge.detail``: the verdict determines which further questions the judge gets."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from pandaeval_collector.base.result import Result
from pandaeval_collector.judge.call import JudgeConfig
from pandaeval_collector.scoring.evaluator import Evaluator, EvaluatorSettings, JudgeSettings
from pandaeval_collector.store.series import EVALUATIONS, SCORE, SeriesLabels, increments
from pandaeval_lab.cli._inputs import requests
from pandaeval_lab.replay.judge import ReplayJudge
from pandaeval_lab.replay.replay import replay
from pandaeval_lab.replay.trace_files import TraceFiles
from support.embedder import WordEmbedder
from support.scripted_judge import GOOD, RIGHT, Answers, ScriptedCaller

CAPTURES = Path(__file__).parents[3] / "golden" / "captures"
SESSION = CAPTURES / "langgraph_genai" / "good_session.otlp.jsonl"
ALONE = CAPTURES / "openai_openllmetry" / "good.otlp.jsonl"
LOOP = CAPTURES / "openai_openllmetry" / "tool_loop.otlp.jsonl"
_TALK = {"goal_completed": True, "friction": "none", "friction_turns": []}
_FAULT = {"things": [{"thing": "renew the loan", "became": "wrong", "shown_by": "call 5"}], "sure": 9}
WRONG = {**RIGHT, **_FAULT, "correct": False, "first_wrong_step": "call 5"}
ALONE_WRONG = {**RIGHT, **_FAULT, "correct": False, "first_wrong_step": None}
ALONE_WRONG["things"] = [{"thing": "find it", "became": "missing", "shown_by": None}]


def judged(
    file: Path, answers: Answers, thresholds: dict[str, float] | None = None, **settings: Any
) -> tuple[list[Result], list[str], ScriptedCaller]:
    """Return file results, question names and judge."""
    caller = ScriptedCaller(answers)
    judge = JudgeSettings("openai/m", **{"detail": "failing", **settings})
    evaluator = Evaluator(WordEmbedder(), EvaluatorSettings(thresholds=thresholds or {}, judge=judge))
    with TraceFiles() as files:
        files.add_all(requests([str(file)]))
        with ReplayJudge(files.store, evaluator, JudgeConfig(("openai/m",)), caller=caller) as asked:
            results = [*replay(files, evaluator, asked)]
    names = [name for name in caller.asked if name not in ("error_deduplication", "same_cause")]
    return results, names, caller


def detailed(results: Sequence[Result]) -> list[Result]:
    """Return the questions except the verdict."""
    levels = ("trace", "turn")
    return [r for r in results if r.evaluator.kind == "llm" and r.unit.level in levels and r.metric != "correctness"]


def test_a_correct_session_causes_only_the_verdict_call() -> None:
    results, asked, _ = judged(SESSION, {})
    assert asked == ["conversation"]
    assert not detailed(results)


def test_a_wrong_session_causes_one_more_call_on_the_trace_and_turn_of_the_first_wrong_step() -> None:
    results, asked, caller = judged(SESSION, {"conversation": {**WRONG, **_TALK}})
    assert asked == ["conversation", "trace"]
    assert '"turn"' in caller.questions[-1]
    assert "turn: 1" in caller.questions[-1]
    [verdict] = [each for each in results if (each.unit.level, each.metric) == ("session", "correctness")]
    found = detailed(results)
    assert {each.unit.trace_id for each in found} == {verdict.finding.metadata["blame"]["trace_id"]}
    assert {each.metric for each in found if each.unit.level == "turn"} >= {"helpfulness", "agent_behavior_failure"}
    assert {each.metric for each in found if each.unit.level == "trace"} >= {"task_completion", "confidence"}


def test_results_requested_because_of_a_verdict_are_not_in_rates() -> None:
    results, _, _ = judged(SESSION, {"conversation": {**WRONG, **_TALK}})
    found = detailed(results)
    assert found
    assert not any(each.is_rated for each in found)
    added = increments(found, (), SeriesLabels())
    assert SCORE not in {each.instrument for each in added}
    passed = {dict(each.attributes).get("pandaeval.passed") for each in added if each.instrument == EVALUATIONS}
    assert passed == {None}
    [reliability] = [each for each in results if each.metric == "agent_reliability"]
    assert reliability.finding.metadata["basis"] == "inline"


@pytest.mark.parametrize(("file", "verdict"), [(SESSION, "conversation"), (ALONE, "correctness")])
def test_detail_none_requests_only_the_verdict(file: Path, verdict: str) -> None:
    wrong = {"conversation": {**WRONG, **_TALK}, "correctness": ALONE_WRONG}
    results, asked, _ = judged(file, wrong, detail="none")
    assert asked == [verdict]
    assert not detailed(results)


def test_without_a_session_the_verdict_on_the_trace_comes_first() -> None:
    assert judged(ALONE, {})[1] == ["correctness"]
    results, asked, _ = judged(ALONE, {"correctness": ALONE_WRONG})
    assert asked == ["correctness", "trace"]
    assert len({each.unit.trace_id for each in detailed(results)}) == 1


def test_a_trace_with_a_code_finding_is_judged_in_detail_even_if_the_verdict_passes() -> None:
    results, asked, _ = judged(LOOP, {})
    assert any(each.success is False and each.evaluator.kind == "code" for each in results)
    assert asked == ["correctness", "trace"]
    assert detailed(results)


def test_a_metric_with_a_threshold_is_judged_for_each_trace_and_is_in_rates() -> None:
    results, asked, _ = judged(SESSION, {}, thresholds={"trace.confidence": 0.2})
    assert sorted(asked) == [*["confidence"] * 4, "conversation"]
    assert {each.metric for each in detailed(results)} == {"confidence"}
    assert all(each.is_rated for each in detailed(results))


def test_detail_all_judges_each_trace_and_turn() -> None:
    results, asked, _ = judged(SESSION, {}, detail="all")
    assert sorted(asked) == ["conversation", *["trace"] * 4, *["turn"] * 4]
    assert all(each.is_rated for each in detailed(results))


def test_without_a_verdict_metric_the_other_metrics_are_judged_for_each_trace() -> None:
    caller = ScriptedCaller(GOOD)
    settings = EvaluatorSettings(enabled={"trace.confidence"}, judge=JudgeSettings("openai/m", detail="failing"))
    evaluator = Evaluator(WordEmbedder(), settings)
    with TraceFiles() as files:
        files.add_all(requests([str(SESSION)]))
        with ReplayJudge(files.store, evaluator, JudgeConfig(("openai/m",)), caller=caller) as asked:
            results = [*replay(files, evaluator, asked)]
    assert caller.asked == ["confidence"] * 4
    assert all(each.is_rated for each in results)
