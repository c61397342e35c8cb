"""The exact test for drops."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from pandaeval_lab.passk.gate import drop, p_value


def by_hand(pairs: list[tuple[tuple[int, int], tuple[int, int]]]) -> float:
    """Enumerate every split of outcomes."""
    urns = [([1] * (c0 + c1) + [0] * (n0 + n1 - c0 - c1), n1) for (n0, c0), (n1, c1) in pairs]
    ways = itertools.product(*(itertools.combinations(urn, drawn) for urn, drawn in urns))
    sums = [sum(map(sum, shares)) for shares in ways]
    observed = sum(c1 for _, (_, c1) in pairs)
    return (sum(each < observed for each in sums) + sum(each == observed for each in sums) / 2) / len(sums)


@pytest.mark.parametrize(
    "pairs",
    [
        [((3, 2), (3, 1))],
        [((2, 2), (2, 0)), ((3, 1), (2, 1))],
        [((1, 1), (1, 0)), ((1, 1), (1, 1)), ((1, 0), (1, 1)), ((4, 3), (2, 0))],
    ],
)
def test_p_equals_the_enumeration_of_all_splits_of_the_trials(
    pairs: list[tuple[tuple[int, int], tuple[int, int]]],
) -> None:
    assert p_value(pairs) == pytest.approx(by_hand(pairs))


def test_p_of_single_trials_is_that_of_the_sign_test() -> None:
    pairs = [((1, 1), (1, 0))] * 5 + [((1, 1), (1, 1))] * 40
    assert p_value(pairs) == pytest.approx(0.5**5 / 2)


def test_p_is_one_half_if_nothing_changed() -> None:
    assert p_value([((3, 2), (3, 2))] * 20) == pytest.approx(0.5)
    assert p_value([((3, 3), (3, 3))] * 20) == pytest.approx(0.5)


def test_p_is_nearly_1_and_never_more_if_all_cases_improved() -> None:
    for cases in range(1, 60):
        for trials in (1, 3, 7):
            p = p_value([((trials, 0), (trials, trials))] * cases)
            assert p <= 1.0
            assert p == pytest.approx(1 - 0.5 / float(math.comb(2 * trials, trials)) ** cases)


def test_difference_and_interval_are_computed_over_cases() -> None:
    found = drop([(4, 4), (4, 4), (2, 1), (4, 4)], [(4, 2), (4, 4), (4, 2), (4, 3)])
    assert found is not None
    assert found.difference.mean == pytest.approx((-0.5 + 0 + 0 - 0.25) / 4)
    assert found.difference.low is not None
    assert found.difference.low < found.difference.mean < (found.difference.high or 0.0) + 1e-9
    assert (found.difference.n, found.informative) == (4, 3)


@pytest.mark.parametrize(
    ("before", "now", "informs"),
    [((2, 0), (2, 0), 0), ((2, 0), (2, 1), 1), ((2, 1), (2, 2), 1), ((2, 2), (2, 2), 0), ((1, 1), (1, 0), 1)],
)
def test_only_cases_with_successes_and_failures_are_informative(
    before: tuple[int, int], now: tuple[int, int], informs: int
) -> None:
    found = drop([before], [now])
    assert found is not None
    assert (found.informative, found.p) == (informs, p_value([(before, now)]))


def test_no_cases_give_no_drop() -> None:
    assert drop([], []) is None


def test_the_false_alarm_rate_is_near_the_significance_level() -> None:
    random = np.random.default_rng(11)
    rates = random.beta(2, 1, size=(1500, 40))
    before, now = random.binomial(4, rates), random.binomial(4, rates)
    alarms = [
        p_value([((4, int(c0)), (4, int(c1))) for c0, c1 in zip(old, new, strict=True)]) <= 0.05
        for old, new in zip(before, now, strict=True)
    ]
    assert 0.03 <= np.mean(alarms) <= 0.07
