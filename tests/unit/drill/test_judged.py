"""What a judge's verdicts on a drill's copies are counted as."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from pandaeval_collector.base.result import Result
from pandaeval_collector.base.score import Score, Unscored, Why
from pandaeval_lab.drill.judged import JudgedCounts, State, state
from support.results import CODE, JUDGE, result

GOOD, BAD = 0.9, 0.1
FAILED = (
    Why.JUDGE_FAILED,
    Why.INVALID_VERDICT,
    Why.TIMEOUT,
    Why.OVER_BUDGET,
    Why.METRIC_ERROR,
    Why.INJECTION_SUSPECTED,
    Why.SHUTDOWN,
)
Told = Sequence[float | Why]


def results(*told: float | Why, metric: str = "confidence") -> list[Result]:
    """Judged results of one metric: scores, or why there is none."""
    findings = [Unscored(each, "") if isinstance(each, Why) else Score(each, "") for each in told]
    return [result(metric, each, evaluator=JUDGE) for each in findings]


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ((), None),
        ((Why.NO_CONTENT,), None),
        ((GOOD,), "passes"),
        ((GOOD, Why.NO_CONTENT), "passes"),
        ((GOOD, BAD), "fails"),
        ((BAD, Why.JUDGE_FAILED), "fails"),
        *(((why,), "not judged") for why in FAILED),
        *(((GOOD, why), "not judged") for why in FAILED),
    ],
)
def test_a_metric_says_of_a_run_what_its_results_say_together(told: Told, expected: State | None) -> None:
    assert state(results(*told)) == expected


@pytest.mark.parametrize(
    ("before", "after", "noticed"),
    [
        ((GOOD,), (BAD,), True),
        ((GOOD,), (GOOD,), False),
        ((BAD,), (BAD,), None),
        ((BAD,), (GOOD,), None),
        ((), (), None),
        *(((GOOD,), (why,), None) for why in FAILED),
        *(((why,), (BAD,), None) for why in FAILED),
    ],
)
def test_noticed_or_not_needs_both_verdicts_and_an_original_that_passes(
    before: Told, after: Told, noticed: bool | None
) -> None:
    counts = JudgedCounts(["m"])
    counts.add(results(*before), results(*after), inline=True)
    assert counts.not_judged == (noticed is None)
    assert dict(counts.beside) == ({} if noticed is None else {(noticed, True): 1})


def test_one_metric_that_notices_is_enough_and_one_that_failed_might_have_noticed() -> None:
    counts = JudgedCounts(["m"])
    before = [*results(GOOD), *results(GOOD, metric="plan_quality")]
    counts.add(before, [*results(Why.TIMEOUT), *results(BAD, metric="plan_quality")], inline=False)
    counts.add(before, [*results(Why.TIMEOUT), *results(GOOD, metric="plan_quality")], inline=False)
    assert dict(counts.beside) == {(True, False): 1}
    assert counts.not_judged == 1
    assert counts.metrics["trace.confidence"].not_judged == 2
    assert (counts.metrics["trace.plan_quality"].noticed, counts.metrics["trace.plan_quality"].n) == (1, 2)


def test_a_lower_score_counts_without_a_threshold_and_failing_originals_are_alarms() -> None:
    counts = JudgedCounts(["m"])
    for before, after in ((GOOD, 0.6), (GOOD, BAD), (BAD, 0.05), (GOOD, GOOD)):
        counts.add(results(before), results(after), inline=False)
    figures = counts.report().to_dict()["figures"]
    kinds = ("noticed", "scored lower", "original fails")
    assert [figures[f"trace.confidence: {kind}"]["figure"] for kind in kinds] == ["1 of 3", "3 of 4", "1 of 4"]


def test_what_needs_no_model_is_not_the_judges() -> None:
    counts = JudgedCounts(["m"])
    counts.add([result(evaluator=CODE)], [result(finding=Score(BAD, ""), evaluator=CODE)], inline=True)
    assert (counts.metrics, counts.not_judged) == ({}, 1)
