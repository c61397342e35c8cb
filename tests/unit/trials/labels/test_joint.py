"""Pass rates by a judge and scores that cost nothing, from rows of results."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pandaeval_collector.store import JudgedRow
from pandaeval_collector.trials.labels.calibration import JointPassRate, joint_pass_rates
from pandaeval_otel.wire.labels import HumanLabel
from support.judged_store import JUDGE, METRIC, flattered, judged_row, unit

BESIDE = "trace.grounding"
RUNS, LABELLED = 400, 150


def _standing(with_beside: int = RUNS) -> dict[tuple[str, str], JudgedRow]:
    """A judge that flatters, and another metric's scores of the first runs, which go along with people's verdicts."""
    passed, scores = flattered(RUNS)
    draw = np.random.default_rng(3)
    found = {}
    for at, score in enumerate(scores):
        row = judged_row(at, float(score))
        found[row.unit, METRIC] = row
        if at < with_beside:
            beside = replace(row, metric=BESIDE, model="code", score=float(passed[at]) * 0.5 + 0.5 * draw.random())
            found[row.unit, BESIDE] = beside
    return found


def _labels(number: int = LABELLED, probability: float | None = LABELLED / RUNS) -> list[HumanLabel]:
    passed, _ = flattered(RUNS)
    return [HumanLabel(unit(at), METRIC, None, bool(passed[at]), probability=probability) for at in range(number)]


def _one(found: list[JointPassRate]) -> JointPassRate:
    (only,) = found
    return only


def test_scores_that_cost_nothing_make_labels_worth_more() -> None:
    found = _one(joint_pass_rates(_labels(), [_standing()], [BESIDE]))
    assert (found.metric, found.judges, found.n) == (METRIC, (JUDGE, BESIDE), LABELLED)
    assert found.found is not None
    assert found.found.rate.low <= flattered(RUNS)[0].mean() <= found.found.rate.high
    assert found.found.each[1] > 1.1


def test_a_run_without_the_other_score_counts_as_its_mean() -> None:
    found = _one(joint_pass_rates(_labels(), [_standing(with_beside=200)], [BESIDE]))
    assert found.found is not None
    assert found.found.rate.low <= flattered(RUNS)[0].mean() <= found.found.rate.high


@pytest.mark.parametrize(("number", "probability"), [(99, 0.25), (150, None)])
def test_few_labels_or_such_that_nobody_drew_give_no_rate(number: int, probability: float | None) -> None:
    assert _one(joint_pass_rates(_labels(number, probability), [_standing()], [BESIDE])).found is None


def test_labels_of_every_run_need_not_be_drawn() -> None:
    found = _one(joint_pass_rates(_labels(RUNS, None), [_standing()], [BESIDE]))
    assert found.found is not None
    assert found.found.rate.value == pytest.approx(flattered(RUNS)[0].mean())


def test_one_judge_alone_has_its_rate_elsewhere() -> None:
    assert joint_pass_rates(_labels(), [_standing()]) == []
