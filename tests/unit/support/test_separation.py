"""Separation figures against references."""

from __future__ import annotations

from math import isnan, sqrt
from statistics import fmean, variance

import pytest

from lab.bench._labelled_runs import Scored
from lab.bench._separation import auroc, auroc_within, thirds
from lab.bench.labelled import rows, share


def test_auroc_counts_ordered_pairs_and_half_of_the_ties() -> None:
    assert auroc([1.0, 1.0], [0.0]).value == 1.0
    assert auroc([0.0], [1.0, 1.0]).value == 0.0
    assert auroc([0.5, 1.0], [0.5, 0.0]).value == pytest.approx(0.875)


def test_the_auroc_interval_equals_that_of_delong() -> None:
    found = auroc([0.5, 1.0], [0.5, 0.0])  # placements: good .75, 1; bad .75, 1: variance 2 x .03125 / 2
    assert found.low == pytest.approx(0.875 - 1.959964 * 0.03125**0.5)
    assert found.high == 1.0


def test_stratified_auroc_ignores_differences_between_strata() -> None:
    good, bad = [3.0, 3.0], [0.0]
    more_good, more_bad = [10.0], [9.0, 11.0]
    assert auroc(good + more_good, bad + more_bad).value < 0.7
    assert auroc_within([(good, bad), (more_good, more_bad)]).value == pytest.approx((2 * 1.0 + 2 * 0.5) / 4)
    assert str(auroc_within([([1.0], [])])) == "–"


def test_a_share_has_a_wilson_interval() -> None:
    found = share(8, 10)
    assert (round(found.low, 4), round(found.high, 4)) == (0.4902, 0.9433)
    assert str(share(0, 0)) == "–"


def test_thirds_keep_equal_lengths_together() -> None:
    assert thirds([1, 2, 3, 4, 5, 6]) == [0, 0, 1, 1, 2, 2]
    assert thirds([7, 7, 7]) == [0, 0, 0]


@pytest.mark.parametrize(
    ("good", "bad"),
    [
        ([0.9, 0.8, 0.4, 0.4, 0.7, 0.65, 0.3, 0.55], [0.1, 0.4, 0.5, 0.2, 0.65, 0.35]),
        ([0.6, 0.2, 0.4], [0.5, 0.4, 0.7, 0.1, 0.3, 0.45, 0.65]),
    ],
)
def test_auroc_variance_equals_that_of_the_placements(good: list[float], bad: list[float]) -> None:
    def before(one: float, other: float) -> float:
        return float(one > other) + float(one == other) / 2

    of_good = [fmean(before(one, other) for other in bad) for one in good]
    of_bad = [fmean(before(one, other) for one in good) for other in bad]
    half = 1.959963984540054 * sqrt(variance(of_good) / len(good) + variance(of_bad) / len(bad))
    found = auroc(good, bad)
    assert (found.value, found.n) == (pytest.approx(fmean(of_good)), len(good) + len(bad))
    assert (found.low, found.high) == pytest.approx((max(0, found.value - half), min(1, found.value + half)))


def test_a_single_unit_of_a_kind_gets_the_maximum_variance() -> None:
    """The maximum is a quarter."""
    for good, bad in (([1.0], [0.0] * 5), ([1.0] * 5, [0.0])):
        found = auroc(good, bad)
        assert (found.value, found.low, found.high) == (1.0, pytest.approx(1 - 1.959963984540054 / 2), 1.0)
    assert (auroc([0.0], [1.0, 1.0]).low, auroc([0.0], [1.0, 1.0]).high) == (0.0, pytest.approx(1.959963984540054 / 2))


def test_figures_without_a_pair_are_a_dash() -> None:
    for found in (auroc([], [1.0]), auroc([1.0], []), auroc([], []), auroc_within([]), share(0, 0)):
        assert (str(found), found.n) == ("–", 0)
        assert isnan(found.value)
    assert str(share(8, 10)) == "0.80 [0.49, 0.94]"


def test_strata_are_weighted_by_their_pairs() -> None:
    one, other = ([0.9, 0.8, 0.3, 0.6], [0.5, 0.1]), ([0.4, 0.7], [0.6, 0.2, 0.4, 0.1, 0.5])
    first, second, found = auroc(*one), auroc(*other), auroc_within([one, ([1.0], []), other, ([], [0.0, 0.0])])
    assert found.n == 13, "units without a pair do not count"
    assert found.value == pytest.approx((first.value * 8 + second.value * 10) / 18)
    half = sqrt(sum((w / 18 * (each.value - each.low)) ** 2 for w, each in ((8, first), (10, second))))
    assert found.low == pytest.approx(found.value - half)
    assert found.high == pytest.approx(min(1.0, found.value + half))


@pytest.mark.parametrize(
    ("hits", "of", "low", "high"),
    [(0, 20, 0.0, 0.1611), (20, 20, 0.8389, 1.0), (81, 263, 0.2553, 0.3662), (1, 1, 0.2065, 1.0), (0, 1, 0.0, 0.7935)],
)
def test_the_interval_of_a_share_stays_within_0_and_1(hits: int, of: int, low: float, high: float) -> None:
    found = share(hits, of)
    assert (found.value, found.n) == (hits / of, of)
    assert (found.low, found.high) == pytest.approx((low, high), abs=5e-5)
    assert 0.0 <= found.low <= found.high <= 1.0


def test_thirds_are_of_equal_size_as_far_as_ties_allow() -> None:
    found = thirds([*range(1001)])
    assert [found.count(part) for part in range(3)] == [334, 333, 334]
    assert found == sorted(found)
    assert thirds([]) == []
    assert thirds([1.0, 1.0, 1.0, 1.0, 5.0, 9.0]) == [0, 0, 0, 0, 2, 2]


def test_a_row_counts_the_units_that_a_metric_failed() -> None:
    units = [
        Scored(True, {"m": 1.0}, {"m": False}, calls=1, spans=3),
        Scored(True, {"m": 0.4}, {"m": True}, calls=2, spans=3),
        Scored(False, {"m": 0.2}, {"m": True}, calls=3, spans=3),
        Scored(False, calls=3, spans=3),
    ]
    by_name = {row.metric: row for row in rows(units, ())}
    row = by_name["m"]
    assert (row.good, row.bad, row.auroc.value) == (2, 1, 1.0)
    assert (row.recall.value, row.precision.value, row.good_failed.value) == (1.0, 0.5, 0.5)
    assert by_name["baseline: fewer calls"].bad == 2, "baselines count every unit"
    assert rows(units, ["calls"])[0].metric.startswith("baseline")
