"""Where a cheap judge's verdict may stand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pandaeval_collector.analysis.stats.corrected_rate import CascadeRule, cascade_rule
from pandaeval_collector.analysis.stats.quantiles import beta_quantile


def test_a_judge_that_always_agrees_decides_everything() -> None:
    rule = cascade_rule([0.9] * 60 + [0.1] * 40, [True] * 60 + [False] * 40, 0.5)
    assert rule is not None
    assert (rule.asked, rule.agreed, rule.n) == (0.0, 1.0, 100)
    assert rule.decides(0.9)
    assert rule.decides(0.1)


def test_the_strong_judge_is_asked_where_the_cheap_one_errs() -> None:
    """It errs in half of what it scores 0.6, and nowhere else."""
    scores = [0.9] * 60 + [0.1] * 40 + [0.6] * 40
    rule = cascade_rule(scores, [True] * 60 + [False] * 40 + [True, False] * 20, 0.5)
    assert rule is not None
    assert (rule.asked, rule.agreed) == (pytest.approx(40 / 140), 1.0)
    assert not rule.decides(0.6)


def test_few_runs_promise_nothing() -> None:
    """45 runs without a difference are the least for .95 with nine in ten sure: .95 to the 45th is .0994."""
    assert cascade_rule([0.9] * 44, [True] * 44, 0.5) is None
    assert cascade_rule([0.9] * 45, [True] * 45, 0.5) is not None


def test_a_judge_that_is_sure_and_wrong_decides_nothing() -> None:
    assert cascade_rule([1.0] * 100, [True] * 80 + [False] * 20, 0.5) is None


HALF_SURE = [0.8] * 30 + [0.3] * 30
"""Halfway from 0.6 to either end."""


@pytest.mark.parametrize(
    ("more", "passed", "low", "high", "asked"),
    [
        ([], [], 0.3, 0.8, 0.0),
        ([0.7, 0.45], [True, False], 0.45, 0.7, 0.0),
        ([0.7] * 20, [False] * 20, 0.3, 0.8, 20 / 80),
        ([0.6] * 5, [False] * 5, 0.3, 0.8, 5 / 65),
        ([0.6], [True], 0.6, 0.6, 0.0),
        ([1.0, 0.0], [True, False], 0.3, 0.8, 0.0),
    ],
)
def test_verdicts_stand_from_a_part_of_the_way_to_either_end_on(
    more: list[float], passed: list[bool], low: float, high: float, asked: float
) -> None:
    rule = cascade_rule(HALF_SURE + more, [True] * 30 + [False] * 30 + passed, 0.6)
    assert rule is not None
    assert (rule.low, rule.high, rule.n) == (low, high, 60 + len(more))
    assert (rule.asked, rule.agreed) == (pytest.approx(asked), 1.0)


@pytest.mark.parametrize(("score", "low", "high"), [(0.8, 0.466667, 0.8), (0.6, 0.6, 0.742857)])
def test_limits_are_told_with_six_digits(score: float, low: float, high: float) -> None:
    """A third, and a seventh, of the way from 0.7 to either end."""
    rule = cascade_rule([score] * 60, [score > 0.7] * 60, 0.7)
    assert rule is not None
    assert (rule.low, rule.high) == (low, high)


@pytest.mark.parametrize(("errors", "decides"), [(0, True), (4, True), (5, False)])
def test_as_many_mistakes_are_let_pass_as_the_bound_allows(errors: int, decides: bool) -> None:
    """What is promised is just what 4 mistakes in 100 let promise: the upper bound of such a share by beta."""
    strong = [True] * (100 - errors) + [False] * errors
    rule = cascade_rule([0.9] * 100, strong, 0.5, agree=1 - beta_quantile(5, 96, 0.9) - 1e-9)
    assert (rule is not None) is decides
    if rule is not None:
        assert rule.agreed == pytest.approx(1 - errors / 100)


def test_the_less_sure_one_has_to_be_the_fewer_runs_are_enough() -> None:
    assert cascade_rule([0.9] * 13, [True] * 13, 0.5, sure=0.5) is None
    assert cascade_rule([0.9] * 14, [True] * 14, 0.5, sure=0.5) is not None
    assert cascade_rule([0.9] * 21, [True] * 21, 0.5, agree=0.9) is None
    assert cascade_rule([0.9] * 22, [True] * 22, 0.5, agree=0.9) is not None


def test_where_all_verdicts_differ_none_stands() -> None:
    assert cascade_rule([0.9], [False], 0.5, agree=0.01, sure=0.01) is None


def test_a_score_a_rounding_error_away_is_decided() -> None:
    rule = CascadeRule(0.3, 0.8, 10, 0.5, 1.0)
    assert [rule.decides(each) for each in (0.3 + 1e-10, 0.3 + 1e-8, 0.8 - 1e-10, 0.8 - 1e-8)] == [True, False] * 2


@given(
    st.lists(st.tuples(st.sampled_from([0.0, 0.2, 0.4, 0.5, 0.7, 1.0]), st.booleans()), min_size=1, max_size=200),
    st.sampled_from([0.3, 0.5, 0.7]),
)
def test_whatever_comes_the_runs_it_was_found_by_keep_the_promise(
    runs: list[tuple[float, bool]], threshold: float
) -> None:
    scores, passed = zip(*runs, strict=True)
    rule = cascade_rule(scores, passed, threshold)
    if rule is None:
        return
    stands = np.asarray([rule.decides(score) for score in scores])
    differs = np.asarray([(score >= threshold) != good for score, good in runs])
    assert rule.agreed == pytest.approx(1 - (stands & differs).mean())
    assert rule.agreed >= 0.95
    assert rule.asked == pytest.approx(1 - stands.mean())
    assert rule.low <= threshold <= rule.high
