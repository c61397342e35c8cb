"""What more labels buy."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pandaeval_collector.analysis.stats.learned import drawn_rate, learning_curve


def test_a_rate_is_that_of_all_where_bad_runs_were_likelier_drawn() -> None:
    # Ten bad runs drawn for sure, ten of ninety good ones with a chance of one in nine.
    found = drawn_rate([True] * 10 + [False] * 10, [1.0] * 10 + [1 / 9] * 10)
    assert found.value == pytest.approx(0.1)
    assert found.low < 0.1 < found.high


def test_all_labelled_is_no_estimate() -> None:
    found = drawn_rate([True, False, False, False], [1.0] * 4)
    assert (found.value, found.low, found.high) == (0.25, 0.25, 0.25)


def test_a_sample_without_a_bad_run_is_not_certain() -> None:
    assert drawn_rate([False] * 20, [0.1] * 20).high > 0.04
    assert drawn_rate([], []).n == 0


def test_the_interval_covers_the_rate() -> None:
    draw, covered = random.Random(5), 0
    runs = [(at < 60, 0.6 if at < 90 else 0.2) for at in range(300)]
    for _ in range(300):
        drawn = [(bad, chance) for bad, chance in runs if draw.random() < chance]
        found = drawn_rate([bad for bad, _ in drawn], [chance for _, chance in drawn])
        covered += found.low <= 0.2 <= found.high
    assert covered >= 0.91 * 300


@given(st.lists(st.tuples(st.booleans(), st.floats(0.05, 1.0)), min_size=1, max_size=30))
def test_a_rate_lies_in_its_interval(runs: list[tuple[bool, float]]) -> None:
    found = drawn_rate([bad for bad, _ in runs], [chance for _, chance in runs])
    assert 0.0 <= found.low <= found.value <= found.high <= 1.0


def test_a_curve_ends_at_twice_the_labels() -> None:
    draw = random.Random(3)
    bad = [at % 2 == 0 for at in range(60)]
    rows = [{"spans": 1.0, "told": draw.gauss(1.5 if each else 0.0, 1.0)} for each in bad]
    points = list(learning_curve(rows, bad, [str(at) for at in range(60)]))
    assert [point.labels for point in points] == [20, 40, 60, 80, 120]
    known = {point.labels: point.auroc for point in points}
    assert known[20] is not None
    assert known[20] > 0.6
    assert known[60] is known[120] is None, "nothing is left to try it on"
    assert [point.half_width for point in points] == sorted((point.half_width for point in points), reverse=True)
