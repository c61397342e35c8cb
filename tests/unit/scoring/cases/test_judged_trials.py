"""Judged graders with a scripted judge."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from unittest.mock import patch

import numpy as np

from pandaeval_collector.base.result import Result
from pandaeval_collector.judge.call import CallFailedError, CallFailure
from pandaeval_collector.judge.client import JudgeClient
from pandaeval_collector.judge.redact import redact
from pandaeval_collector.scoring.evaluator import Evaluator, EvaluatorSettings, JudgeSettings
from pandaeval_lab.cases import Case, Suite, Trial
from pandaeval_lab.cases.grading import TrialGrader
from pandaeval_lab.replay.trial_grading import TrialJudge
from pandaeval_otel.model import ToolCall, Trace, Turn
from support.scripted_judge import Memory, ScriptedCaller


class Embedder:
    id, bands = "none", None

    def embed(self, texts: Sequence[str]) -> Any:
        return np.zeros((len(texts), 2), dtype=np.float32)


class Gone:
    """A missing provider."""

    async def complete(self, call: Any) -> Any:
        raise CallFailedError(CallFailure.UNAVAILABLE, "no route")


EVALUATOR = Evaluator(Embedder(), EvaluatorSettings(judge=JudgeSettings("openai/judge")))


def trace(number: int = 1, said: str = "It costs 42.", **fields: Any) -> Trace:
    id_ = f"{number:032x}"
    return Trace(
        id_, (), "1" * 16, input="how much?", output=said, turns=(Turn("how much?", said),), digest=id_, **fields
    )


async def graded(case: dict[str, Any], caller: Any, *traces: Trace) -> dict[str, Result]:
    made = Case.model_validate({"id": "c", **case})
    grader = TrialGrader(EVALUATOR, Suite(cases=(made,)))
    trial = Trial(made, "1", traces)
    with patch("pandaeval_lab.replay.trial_grading._WAIT_S", 0.0):
        verdicts = await TrialJudge(grader, JudgeClient(caller, Memory()), redact).verdicts(trial)
    return {each.metric: each for each in grader.results(trial, verdicts)}


async def test_judge_compares_the_answer_with_the_expected_answer() -> None:
    caller = ScriptedCaller({"answer_correctness": {"reason": "Half of it.", "score": 0.5}})
    found = await graded({"expected_answer": "42 euros", "knowledge": ["prices are in euros"]}, caller, trace())
    assert caller.asked == ["answer_correctness"]
    assert "42 euros" in caller.questions[0]
    assert "prices are in euros" in caller.questions[0]
    assert found["answer_correctness"].score == 0.5
    assert found["answer_correctness"].evaluator.model == "openai/judge"
    assert found["answer_correctness"].tokens > 0
    assert found["trial_correct"].score == 0.0


async def test_each_interaction_is_judged_separately() -> None:
    answers = [{"reason": "Right.", "score": 1.0}, {"reason": "Wrong.", "score": 0.2}]
    case = {"interactions": [{"expected_answer": "a"}, {"expected_answer": "b"}]}
    found = await graded(case, ScriptedCaller({"answer_correctness": answers}), trace(), trace(2, "Else."))
    assert found["answer_correctness"].score == 0.6
    assert found["conversation_correctness"].finding.metadata["interactions"] == [True, False]


async def test_judged_use_of_results_is_a_quarter_of_tool_correctness() -> None:
    call = ToolCall("price", arguments={}, result="42", has_arguments=True, has_result=True)
    caller = ScriptedCaller({"result_utilization": {"reason": "Not used.", "score": 0.0}})
    case = {"expected_tools": [{"tool_name": "price"}], "results_must_be_used": True}
    found = await graded(case, caller, trace(tool_calls=(call,)))
    assert found["tool_correctness"].score == 0.75
    assert found["trial_correct"].score == 0.0


async def test_case_without_an_expected_answer_needs_no_judge_call() -> None:
    caller = ScriptedCaller({})
    found = await graded({"forbidden_tools": ["x"]}, caller, trace())
    assert caller.asked == []
    assert found["trial_correct"].score == 1.0


async def test_missing_answer_is_wrong_without_a_judge_call() -> None:
    caller = ScriptedCaller({})
    found = await graded({"expected_answer": "42"}, caller, trace(said=" ", error="crashed"))
    assert caller.asked == []
    assert found["answer_correctness"].score == 0.0


async def test_trial_is_undecided_if_the_judge_is_unreachable() -> None:
    found = await graded({"expected_answer": "42"}, Gone(), trace())
    assert found["answer_correctness"].why == "judge_failed"
    assert found["trial_correct"].why == "insufficient_evidence"
