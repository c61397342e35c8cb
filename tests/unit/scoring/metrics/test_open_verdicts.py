"""Undecided verdicts."""

from __future__ import annotations

from typing import Any

import pytest

from pandaeval_collector.base.result import Result
from pandaeval_collector.base.score import Score, Unscored, Why
from pandaeval_collector.scoring.evaluator import Evaluator, EvaluatorSettings, JudgeSettings
from pandaeval_collector.show.view.rates import OutcomeCounts
from pandaeval_collector.show.view.results import ResultView
from pandaeval_collector.store.failures import failure_of
from support.embedder import WordEmbedder
from support.judged import trace

CRASH = {"metric": "trace.response", "trace_id": "t", "reason": "the run failed"}


def answered(sure: float, correct: bool = True, against: Any = None, **settings: Any) -> Result:
    by = Evaluator(WordEmbedder(), EvaluatorSettings({"trace.correctness"}, judge=JudgeSettings("m", **settings)))
    [question] = by.judged.questions(trace())[1]
    value = max(sure / 100, 0.51) if correct else min(sure / 100, 0.49)
    label = None if correct else "wrong_thing"
    return by.judged.answered(question, Score(value, "So it is.", {"sure": sure}, label=label), against=against)


@pytest.mark.parametrize(
    ("sure", "correct", "label", "success"),
    [
        (25, False, "unclear", None),
        (75, True, "unclear", None),
        (50, True, "unclear", None),
        (24.9, False, "wrong_thing", False),
        (75.1, True, "pass", True),
        (0, False, "wrong_thing", False),
        (100, True, "pass", True),
    ],
)
def test_verdict_inside_the_unclear_band_or_on_its_bounds_is_unclear(
    sure: float, correct: bool, label: str, success: bool | None
) -> None:
    result = answered(sure, correct)
    assert (result.label, result.success, result.outcome) == (label, success, "scored")
    assert result.score == answered(sure, correct, unclear=(0, 0)).score, "the score stays"
    assert (failure_of(result) is not None) is (success is False), "an unclear verdict is no failure"


def test_undecided_verdict_stays_unscored_even_if_code_found_a_failure() -> None:
    by = Evaluator(WordEmbedder(), EvaluatorSettings({"trace.correctness"}, judge=JudgeSettings("m")))
    [question] = by.judged.questions(trace())[1]
    result = by.judged.answered(question, Unscored(Why.INSUFFICIENT_EVIDENCE, "", {"sure": 50}), against=CRASH)
    assert (result.outcome, result.label, result.why) == ("unscored", None, Why.INSUFFICIENT_EVIDENCE)


def test_result_id_changes_with_the_unclear_band() -> None:
    narrow = answered(40, False, unclear=(45, 55))
    assert (narrow.label, narrow.success) == ("wrong_thing", False)
    assert narrow.id != answered(40, False).id
    assert answered(40, False, unclear=(25.0, 75.0)).id == answered(40, False).id


@pytest.mark.parametrize(
    ("sure", "correct", "label"), [(96, True, "disputed"), (4, False, "wrong_thing"), (60, True, "unclear")]
)
def test_clearly_correct_verdict_is_disputed_if_code_found_a_failure(sure: float, correct: bool, label: str) -> None:
    result = answered(sure, correct, CRASH)
    assert result.label == label
    if label == "disputed":
        assert (result.success, result.score) == (None, 0.96)
        assert result.finding.reason == "So it is. Disputed by trace.response: the run failed"
        assert result.finding.metadata["disputed_by"] == CRASH


@pytest.mark.parametrize(("sure", "against"), [(50, None), (96, CRASH)])
def test_lists_show_unclear_and_disputed_labels_without_a_signal(sure: float, against: Any) -> None:
    result = answered(sure, against=against)
    view = ResultView.of(result.to_dict())
    assert (view.word, view.replacement_text, view.signal) == (result.label, result.label, None)


@pytest.mark.parametrize(("sure", "against", "signal"), [(50, None, None), (96, CRASH, None), (4, None, 0.04)])
def test_unclear_and_disputed_verdicts_give_no_session_signal(sure: float, against: Any, signal: float | None) -> None:
    by = Evaluator(WordEmbedder(), EvaluatorSettings(judge=JudgeSettings("m")))
    assert by.signal_value(answered(sure, sure > 49, against)) == signal


@pytest.mark.parametrize(
    ("counts", "decided", "handled"),
    [
        (
            (56, 14, 20, 0),
            "80 % of 70 decided, 20 unclear",
            "56 runs were handled correctly: 80 % of 70 decided (69% to 88%), 20 unclear",
        ),
        (
            (1, 0, 1, 2),
            "100 % of 1 decided, 1 unclear, 2 disputed",
            "1 run was handled correctly: 100 % of 1 decided (21% to 100%), 1 unclear, 2 disputed",
        ),
        ((399, 1, 0, 0), "over 99 % of 400 decided", "399 of 400 runs were handled correctly: over 99% (99% to 100%)"),
        (
            (398, 2, 1, 0),
            "over 99 % of 400 decided, 1 unclear",
            "398 runs were handled correctly: over 99 % of 400 decided (98% to 100%), 1 unclear",
        ),
        ((0, 0, 3, 0), "0 decided, 3 unclear", "runs handled correctly: {}"),
        ((0, 0, 0, 0), "0 decided", ""),
        ((3, 1, 0, 0), "75 % of 4 decided", "3 of 4 runs were handled correctly: 75% (30% to 95%)"),
    ],
)
def test_rates_count_only_decided_verdicts(counts: tuple[int, int, int, int], decided: str, handled: str) -> None:
    passed, failed, unclear, disputed = counts
    tally = OutcomeCounts()
    tally.add("scored", True, None, passed, "pass")
    tally.add("scored", False, None, failed, "wrong_thing")
    tally.add("scored", None, None, unclear, "unclear")
    tally.add("scored", None, None, disputed, "disputed")
    assert (tally.decided, tally.handled("run")) == (decided, handled.format(decided))
    assert tally.open == unclear + disputed
    assert OutcomeCounts.of(tally.to_dict()) == tally
