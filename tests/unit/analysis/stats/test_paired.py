"""Differences of paired verdicts, and shares, with intervals."""

from __future__ import annotations

import math

import pytest

from pandaeval_collector.analysis.stats import paired


def test_a_paired_difference_has_a_t_interval() -> None:
    found = paired.difference([(0.5, 0.6), (0.5, 0.7), (0.5, 0.8), (0.5, 0.5), (0.5, 0.4)])
    assert found is not None
    assert math.isclose(found.value, 0.1)
    assert found.high - found.value == pytest.approx(2.776 * 0.158114 / math.sqrt(5), rel=0.01)
    assert paired.difference([(0.1, 0.2)] * 2) is None, "two pairs are too few"


@pytest.mark.parametrize(
    ("hits", "n", "low", "high"), [(0, 10, 0.0, 0.278), (10, 10, 0.722, 1.0), (5, 10, 0.237, 0.763)]
)
def test_a_share_has_a_wilson_interval(hits: int, n: int, low: float, high: float) -> None:
    found = paired.share(hits, n)
    assert (found.low, found.high) == (pytest.approx(low, abs=1e-3), pytest.approx(high, abs=1e-3))


@pytest.mark.parametrize(
    ("pairs", "value", "low", "high"),
    [
        ([(0.5, 0.5), (0.5, 0.5), (0.5, 0.5)], 0.0, 0.0, 0.0),
        ([(0.5, 0.6), (0.5, 0.6), (0.5, 0.6), (0.5, 0.6)], 0.1, 0.1, 0.1),
        ([(0.0, 1.0), (0.0, 1.0), (1.0, 0.0)], 1 / 3, -1.0, 1.0),
        ([(1.0, 0.0), (1.0, 0.0), (0.0, 1.0)], -1 / 3, -1.0, 1.0),
    ],
)
def test_a_difference_and_its_interval_stay_within_minus_1_and_1(
    pairs: list[tuple[float, float]], value: float, low: float, high: float
) -> None:
    found = paired.difference(pairs)
    assert found is not None
    assert (found.value, found.low, found.high) == (
        pytest.approx(value),
        pytest.approx(low, abs=1e-12),
        pytest.approx(high),
    )


def test_a_difference_of_three_pairs_has_two_degrees_of_freedom() -> None:
    found = paired.difference([(0.5, 0.5), (0.5, 0.51), (0.5, 0.52)])
    assert found is not None
    for half in (found.high - found.value, found.value - found.low):
        assert half == pytest.approx(4.303 * 0.01 / math.sqrt(3), rel=0.01)
