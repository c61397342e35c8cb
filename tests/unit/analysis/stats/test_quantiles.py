"""Student's quantiles and Wilson's interval."""

from __future__ import annotations

from fractions import Fraction
from statistics import NormalDist

import pytest

from pandaeval_collector.analysis.stats.quantiles import normal_quantile, t_quantile, wilson

EXPANSION = (
    (4, {3: 1, 1: 1}),
    (96, {5: 5, 3: 16, 1: 3}),
    (384, {7: 3, 5: 19, 3: 17, 1: -15}),
    (92160, {9: 79, 7: 776, 5: 1482, 3: -1920, 1: -945}),
)
"""Abramowitz and Stegun 26.7.5: divisors and factors of each term."""


@pytest.mark.parametrize("level", [0.5, 0.8, 0.95, 0.99])
@pytest.mark.parametrize("df", [5.0, 6.0, 17.5, 400.0])
def test_the_t_quantile_matches_the_expansion_around_the_normal_quantile(level: float, df: float) -> None:
    z = Fraction(NormalDist().inv_cdf(0.5 + level / 2))
    terms = (
        sum(factor * z**power for power, factor in powers.items()) / divisor / Fraction(df) ** at
        for at, (divisor, powers) in enumerate(EXPANSION, 1)
    )
    assert t_quantile(df, level) == pytest.approx(float(z + sum(terms)), rel=1e-13)


def test_degrees_of_freedom_have_a_minimum_of_five_unless_least_is_set() -> None:
    assert t_quantile(4.0) == t_quantile(-1.0) == t_quantile(5.0) > t_quantile(5.1)
    assert t_quantile(2.0, least=3.0) == t_quantile(3.0, least=2.0) > t_quantile(5.0)
    assert t_quantile(8.0) == t_quantile(8.0, 0.95) > t_quantile(8.0, 0.9)


def test_the_normal_quantile_is_two_sided() -> None:
    assert normal_quantile() == normal_quantile(0.95) == pytest.approx(1.959963984540054)
    assert normal_quantile(0.8) == pytest.approx(1.2815515655446004)


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.97, 1.0])
@pytest.mark.parametrize("n", [1.0, 7.5, 300.0])
@pytest.mark.parametrize("quantile", [1.0, 1.96])
def test_wilson_limits_are_quantile_standard_errors_from_the_share(share: float, n: float, quantile: float) -> None:
    low, high = wilson(share, n, quantile)
    assert 0.0 <= low <= share <= high + 1e-12 <= 1.0 + 1e-12
    for end in (low, high):
        assert (share - end) ** 2 == pytest.approx(quantile**2 * end * (1 - end) / n, abs=1e-12)
    assert low < share or share == 0.0
    assert high > share or share == 1.0


@pytest.mark.parametrize(("share", "taken"), [(-0.25, 0.0), (1.25, 1.0)])
def test_wilson_clamps_a_share_outside_0_to_1(share: float, taken: float) -> None:
    assert wilson(share, 10, 1.96) == wilson(taken, 10, 1.96)


def test_rounding_never_moves_wilson_limits_outside_0_to_1() -> None:
    for n in range(1, 400):
        (least, _), (_, most) = wilson(0.0, n, 1.96), wilson(1.0, n, 1.96)
        assert least >= 0.0
        assert most <= 1.0
