"""What more labels buy."""

from __future__ import annotations

import random
from math import sqrt
from statistics import fmean

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pandaeval_collector.analysis.stats import learned
from pandaeval_collector.analysis.stats.learned import drawn_rate, learning_curve
from pandaeval_collector.analysis.stats.problem_model import auroc, untested


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


@given(st.lists(st.tuples(st.booleans(), st.sampled_from([0.1, 0.25, 0.5, 1.0])), min_size=1, max_size=30))
def test_each_run_weighs_one_over_its_chance(runs: list[tuple[bool, float]]) -> None:
    """Hájek's ratio, and its variance by linearisation; a sample is never surer than the next run could prove it."""
    total = sum(1 / chance for _, chance in runs)
    rate = sum(bad / chance for bad, chance in runs) / total
    spread = sqrt(sum((1 - chance) / chance**2 * (bad - rate) ** 2 for bad, chance in runs)) / total
    half = max(1.959963984540054 * spread, 1 / (len(runs) + 2) if any(chance < 1 for _, chance in runs) else 0.0)
    found = drawn_rate([bad for bad, _ in runs], [chance for _, chance in runs])
    assert (found.value, found.n) == (pytest.approx(rate), len(runs))
    assert (found.low, found.high) == pytest.approx((max(0.0, rate - half), min(1.0, rate + half)))


@pytest.mark.parametrize(("labels", "bad"), [(50, 0), (50, 50), (50, 10), (1, 1)])
def test_the_rate_is_half_as_uncertain_by_four_times_as_many_labels(labels: int, bad: int) -> None:
    """Where all are alike one of the next two may not be."""
    rows = [{"spans": 1.0}] * labels
    points = learning_curve(rows, [at < bad for at in range(labels)], [str(at) for at in range(labels)])
    share = bad / labels
    spread = sqrt(max(share * (1 - share), 1 / (labels + 2)))
    for point in points:
        assert point.half_width == pytest.approx(1.959963984540054 * spread / sqrt(point.labels))


@pytest.mark.parametrize(
    ("n", "sizes", "tried"),
    [
        (1, [1, 2], []),
        (10, [10, 20], []),
        (11, [11, 20, 22], []),
        (50, [20, 40, 50, 80, 100], [20, 40]),
        (99, [20, 40, 80, 99, 120, 160, 198], [20, 40]),
        (100, [20, 40, 80, 100, 120, 160, 200], [20, 40, 80]),
        (400, [20, 40, 80, 120, 160, 240, 320, 400, 480, 640, 800], [20, 40, 80, 120, 160, 240, 320]),
    ],
)
def test_a_model_is_tried_that_leaves_a_fifth_of_the_labels(
    n: int, sizes: list[int], tried: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(learned, "_auroc", lambda *_: 0.75)
    points = [*learning_curve([{"spans": 1.0}] * n, [False] * n, [""] * n)]
    assert [point.labels for point in points] == sizes
    assert [point.labels for point in points if point.auroc == 0.75] == tried
    assert all(point.auroc is None for point in points if point.labels not in tried)


@pytest.mark.parametrize("seed", [(), (0,), (4,)])
def test_models_of_a_curve_are_tried_on_groups_that_they_have_not_seen(seed: tuple[int, ...]) -> None:
    draw = random.Random(3)
    bad = [draw.random() < 0.4 for _ in range(60)]
    rows = [{"spans": 1.0, "told": draw.gauss(0.8 if each else 0.0, 1.0)} for each in bad]
    groups = [f"group {at % 25}" for at in range(60)]
    dealt, found = np.random.default_rng(*seed or (0,)), []
    for _ in range(12):
        order = [at for group in dealt.permutation(sorted({*groups})) for at in range(60) if groups[at] == group]
        seen, known = order[:20], {groups[at] for at in order[:20]}
        model = untested([rows[at] for at in seen], [bad[at] for at in seen], [groups[at] for at in seen])
        rest = [at for at in range(60) if groups[at] not in known]
        good, failed = ([-model.score(rows[at]) for at in rest if bad[at] is kind] for kind in (False, True))
        found.append(auroc(good, failed).value)
    (point,) = [each for each in learning_curve(rows, bad, groups, *seed) if each.labels == 20]
    assert point.auroc == pytest.approx(fmean(found))


def test_where_either_side_has_one_kind_alone_nothing_is_tried() -> None:
    """The one bad run is either among the labels or among the others."""
    rows = [{"spans": float(at)} for at in range(50)]
    groups = [str(at) for at in range(50)]
    assert [point.auroc for point in learning_curve(rows, [at < 1 for at in range(50)], groups)] == [None] * 5
    assert [point.auroc for point in learning_curve(rows, [at > 0 for at in range(50)], groups)] == [None] * 5
