"""Counting a judge's verdicts on copies."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from pandaeval_collector.base.result import Result
from pandaeval_collector.base.score import Score, Unscored, Why
from pandaeval_lab.drill.drill import FaultyCopy
from pandaeval_lab.drill.fault import Planted, faults
from pandaeval_lab.drill.judged import count
from pandaeval_lab.drill.tally import FaultTally, Tally
from support.drilled import subject
from support.results import JUDGE, result

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
NAME = "false_success"


def results(*told: float | Why, metric: str = "confidence") -> list[Result]:
    findings = [Unscored(each, "") if isinstance(each, Why) else Score(each, "") for each in told]
    return [result(metric, each, evaluator=JUDGE) for each in findings]


def counted(*pairs: tuple[list[Result], list[Result]]) -> tuple[Tally, FaultTally]:
    tally, run = Tally({NAME: faults()[NAME]}, 0, 0), subject()
    for before, after in pairs:
        count(tally, FaultyCopy(NAME, run, Planted(run.trace, [], "", frozenset())), before, after)
    return tally, tally.faults[NAME]


@pytest.mark.parametrize(
    ("before", "after", "noticed"),
    [
        ((GOOD,), (BAD,), True),
        ((GOOD, GOOD), (GOOD, BAD), True),
        ((GOOD,), (BAD, Why.JUDGE_FAILED), True),
        ((GOOD,), (GOOD,), False),
        ((GOOD,), (GOOD, Why.NO_CONTENT), False),
        ((BAD,), (BAD,), None),
        ((BAD,), (GOOD,), None),
        ((), (), None),
        ((GOOD,), (Why.NO_CONTENT,), None),
        *(((GOOD,), (why,), None) for why in FAILED),
        *(((GOOD,), (GOOD, why), None) for why in FAILED),
    ],
)
def test_noticed_or_not_needs_a_verdict_and_an_original_that_passes(
    before: Told, after: Told, noticed: bool | None
) -> None:
    _, fault = counted((results(*before), results(*after)))
    assert fault.n == (noticed is not None)
    assert fault.refused.total() == (noticed is None)
    assert fault.noticed.hits == bool(noticed)


def test_one_metric_that_notices_is_enough_and_one_that_failed_might_have_noticed() -> None:
    before = [*results(GOOD), *results(GOOD, metric="plan_quality")]
    _, fault = counted(
        (before, [*results(Why.TIMEOUT), *results(BAD, metric="plan_quality")]),
        (before, [*results(Why.TIMEOUT), *results(GOOD, metric="plan_quality")]),
    )
    assert (fault.n, fault.refused.total()) == (1, 1)
    assert fault.by_metric == {"plan_quality": 1}


def test_failing_originals_are_alarms() -> None:
    tally, _ = counted((results(GOOD), results(GOOD)), (results(BAD), results(BAD)))
    assert {metric: (share.hits, share.n) for metric, share in tally.flagged.items()} == {"confidence": (1, 2)}
