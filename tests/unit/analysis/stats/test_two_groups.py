"""Fisher's exact test and Newcombe's interval for two shares, compared with references."""

from __future__ import annotations

from fractions import Fraction
from math import comb

import pytest

from pandaeval_collector.analysis.stats.two_groups import fisher, share_difference


def counted(hits: int, n: int, other_hits: int, other_n: int) -> float:
    """Return the p-value from integer counts of the ways to each table."""
    total = hits + other_hits
    ways = [comb(n, at) * comb(other_n, total - at) for at in range(total + 1)]
    return float(Fraction(sum(each for each in ways if each <= ways[hits]), sum(ways)))


@pytest.mark.parametrize(("n", "other_n"), [(1, 1), (3, 7), (8, 8), (12, 5)])
def test_the_p_value_of_every_small_table_is_exact(n: int, other_n: int) -> None:
    for hits in range(n + 1):
        for other_hits in range(other_n + 1):
            table = (hits, n, other_hits, other_n)
            assert fisher(*table) == pytest.approx(counted(*table), rel=1e-9)


@pytest.mark.parametrize("table", [(480, 800, 560, 700), (9, 900, 24, 900), (0, 500, 250, 500)])
def test_the_p_value_of_large_tables_is_exact(table: tuple[int, int, int, int]) -> None:
    assert fisher(*table) == pytest.approx(counted(*table), rel=1e-6, abs=1e-290)


def test_the_p_value_matches_the_lady_tasting_tea_experiment() -> None:
    assert fisher(3, 4, 1, 4) == pytest.approx(34 / 70)


def test_the_interval_matches_newcombes_example() -> None:
    """56 of 70 against 48 of 80: Newcombe (1998), method 10."""
    found = share_difference(48, 80, 56, 70)
    assert found is not None
    assert (found.value, found.low, found.high) == pytest.approx((0.2, 0.0524, 0.3339), abs=5e-5)
    assert found.p == pytest.approx(counted(48, 80, 56, 70))


def test_a_group_without_observations_gives_no_difference() -> None:
    assert share_difference(0, 0, 1, 2) is None
    assert share_difference(1, 2, 0, 0) is None
