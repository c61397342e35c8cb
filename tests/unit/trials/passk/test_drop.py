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
def test_is_the_share_of_all_ways_to_deal_the_trials_out(pairs: list[tuple[tuple[int, int], tuple[int, int]]]) -> None:
    assert p_value(pairs) == pytest.approx(by_hand(pairs))


def test_with_one_trial_each_it_is_the_sign_test_of_the_cases_that_changed() -> None:
    pairs = [((1, 1), (1, 0))] * 5 + [((1, 1), (1, 1))] * 40
    assert p_value(pairs) == pytest.approx(0.5**5 / 2)


def test_where_nothing_changed_nothing_is_credible() -> None:
    assert p_value([((3, 2), (3, 2))] * 20) == pytest.approx(0.5)
    assert p_value([((3, 3), (3, 3))] * 20) == pytest.approx(0.5)


def test_where_all_got_better_it_is_nearly_one_and_no_rounding_leads_beyond() -> None:
    for cases in range(1, 60):
        for trials in (1, 3, 7):
            p = p_value([((trials, 0), (trials, trials))] * cases)
            assert p <= 1.0
            assert p == pytest.approx(1 - 0.5 / float(math.comb(2 * trials, trials)) ** cases)


def test_effect_and_interval_are_over_cases() -> None:
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
def test_a_case_informs_that_had_both(before: tuple[int, int], now: tuple[int, int], informs: int) -> None:
    found = drop([before], [now])
    assert found is not None
    assert (found.informative, found.p) == (informs, p_value([(before, now)]))


def test_of_no_case_nothing_is_known() -> None:
    assert drop([], []) is None


def test_false_alarms_are_at_the_level() -> None:
    random = np.random.default_rng(11)
    rates = random.beta(2, 1, size=(1500, 40))
    before, now = random.binomial(4, rates), random.binomial(4, rates)
    alarms = [
        p_value([((4, int(c0)), (4, int(c1))) for c0, c1 in zip(old, new, strict=True)]) <= 0.05
        for old, new in zip(before, now, strict=True)
    ]
    assert 0.03 <= np.mean(alarms) <= 0.07
