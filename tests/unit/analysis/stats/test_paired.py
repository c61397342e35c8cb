"""How far two verdicts on the same things agree, and how much of it is chance."""

from __future__ import annotations

import math
import random

import pytest

from pandaeval_collector.analysis.stats import paired

FAR = [(0.9, 0.1), (0.8, 0.9), (0.2, 0.1), (0.1, 0.2)]


def test_agreement_flips_and_noise_are_of_the_pairs() -> None:
    assert math.isclose(paired.agreement(FAR), 1 - (0.8 + 0.1 * 3) / 4)
    assert paired.flips(FAR, 0.5) == 1
    assert math.isclose(paired.noise([(0.4, 0.6), (0.6, 0.4)]), math.sqrt(0.04 / 2))


def test_a_constant_judge_agrees_with_itself_and_discriminates_nothing() -> None:
    pairs = [(0.9, 0.9)] * 30
    assert paired.agreement(pairs) == 1.0
    assert paired.spread([first for first, _ in pairs]) == 0.0
    assert paired.discrimination(pairs) == 0.0
    assert paired.kappa(pairs, 0.5) is None


def test_dice_discriminate_nothing_and_a_sharp_judge_nearly_all() -> None:
    chance = random.Random(3)
    dice = [(chance.random(), chance.random()) for _ in range(200)]
    sharp = [(value, min(1.0, value + 0.02)) for value, _ in dice]
    assert paired.discrimination(dice) < 0.25
    assert paired.discrimination(sharp) > 0.95


def test_kappa_as_in_cohens_table() -> None:
    """20 yes-yes, 5 yes-no, 10 no-yes, 15 no-no: observed 0.7, by chance 0.5, kappa 0.4."""
    pairs = [(1.0, 1.0)] * 20 + [(1.0, 0.0)] * 5 + [(0.0, 1.0)] * 10 + [(0.0, 0.0)] * 15
    found = paired.kappa(pairs, 0.5)
    assert found is not None
    assert math.isclose(found.value, 0.4)
    assert found.low < 0.4 < found.high


def test_the_difference_has_students_interval() -> None:
    found = paired.difference([(0.5, 0.6), (0.5, 0.7), (0.5, 0.8), (0.5, 0.5), (0.5, 0.4)])
    assert found is not None
    assert math.isclose(found.value, 0.1)
    assert found.high - found.value == pytest.approx(2.776 * 0.158114 / math.sqrt(5), rel=0.01)
    assert paired.difference([(0.1, 0.2)] * 2) is None, "of two pairs nothing can be said"


@pytest.mark.parametrize(
    ("hits", "n", "low", "high"), [(0, 10, 0.0, 0.278), (10, 10, 0.722, 1.0), (5, 10, 0.237, 0.763)]
)
def test_a_share_has_wilsons_interval(hits: int, n: int, low: float, high: float) -> None:
    found = paired.share(hits, n)
    assert (found.low, found.high) == (pytest.approx(low, abs=1e-3), pytest.approx(high, abs=1e-3))


@pytest.mark.parametrize(
    ("pair", "flipped"),
    [((0.5, 0.4), 1), ((0.4, 0.5), 1), ((0.5, 0.5), 0), ((0.5, 0.9), 0), ((0.4, 0.4), 0), ((0.9, 0.5), 0)],
)
def test_a_verdict_at_the_threshold_passes_it(pair: paired.Pair, flipped: int) -> None:
    assert paired.flips([pair], 0.5) == flipped


def test_kappa_counts_what_lies_at_the_threshold_as_passed() -> None:
    at = [(0.5, 0.5)] * 20 + [(0.5, 0.0)] * 5 + [(0.0, 0.5)] * 10 + [(0.0, 0.0)] * 15
    found = paired.kappa(at, 0.5)
    assert found is not None
    assert found.value == pytest.approx(0.4)


def test_kappa_of_shares_that_differ_and_its_interval() -> None:
    """Of 10: 6 yes-yes, 1 yes-no, 3 no-no: observed 0.9, by chance 0.7 x 0.6 + 0.3 x 0.4 = 0.54."""
    found = paired.kappa([(1.0, 1.0)] * 6 + [(1.0, 0.0)] + [(0.0, 0.0)] * 3, 0.5)
    assert found is not None
    same = paired.share(9, 10)
    assert found.value == pytest.approx((0.9 - 0.54) / 0.46)
    assert (found.low, found.high) == (
        pytest.approx((same.low - 0.54) / 0.46),
        pytest.approx((same.high - 0.54) / 0.46),
    )


def test_kappa_and_its_interval_stay_within_their_range() -> None:
    against = paired.kappa([(1.0, 0.0), (0.0, 1.0), *[(1.0, 1.0)] * 8], 0.5)
    assert against is not None
    assert (against.value, against.low) == (pytest.approx((0.8 - 0.82) / 0.18), -1.0)
    alike = paired.kappa([(1.0, 1.0), (0.0, 0.0)], 0.5)
    assert alike is not None
    assert (alike.value, alike.high) == (1.0, 1.0)


def test_of_too_few_nothing_is_said() -> None:
    assert paired.kappa([], 0.5) is None
    assert math.isnan(paired.spread([0.5]))
    assert math.isnan(paired.spread([]))
    assert math.isnan(paired.discrimination([(0.1, 0.9)]))
    assert paired.spread([0.2, 0.4]) == pytest.approx(0.2 / math.sqrt(2))
    assert paired.discrimination([(0.2, 0.2), (0.8, 0.8)]) == 1.0


@pytest.mark.parametrize(
    ("pairs", "value", "low", "high"),
    [
        ([(0.5, 0.5), (0.5, 0.5), (0.5, 0.5)], 0.0, 0.0, 0.0),
        ([(0.5, 0.6), (0.5, 0.6), (0.5, 0.6), (0.5, 0.6)], 0.1, 0.1, 0.1),
        ([(0.0, 1.0), (0.0, 1.0), (1.0, 0.0)], 1 / 3, -1.0, 1.0),
        ([(1.0, 0.0), (1.0, 0.0), (0.0, 1.0)], -1 / 3, -1.0, 1.0),
    ],
)
def test_a_difference_and_its_interval_lie_in_their_range(
    pairs: list[paired.Pair], value: float, low: float, high: float
) -> None:
    found = paired.difference(pairs)
    assert found is not None
    assert (found.value, found.low, found.high) == (
        pytest.approx(value),
        pytest.approx(low, abs=1e-12),
        pytest.approx(high),
    )


def test_the_difference_of_three_has_two_degrees_of_freedom() -> None:
    found = paired.difference([(0.5, 0.5), (0.5, 0.51), (0.5, 0.52)])
    assert found is not None
    for half in (found.high - found.value, found.value - found.low):
        assert half == pytest.approx(4.303 * 0.01 / math.sqrt(3), rel=0.01)
