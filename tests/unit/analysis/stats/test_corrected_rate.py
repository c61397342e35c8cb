"""Corrected pass rates: references, invariants and coverage."""

from __future__ import annotations

from statistics import fmean

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from pandaeval_collector.analysis.stats.corrected_rate import Labelled, Scores, corrected_rate, label_rate
from pandaeval_collector.analysis.stats.quantiles import t_quantile, wilson
from support.examples import examples


@pytest.mark.parametrize(("df", "value"), [(6, 2.4469), (10, 2.2281), (30, 2.0423), (49, 2.0096), (1e9, 1.95996)])
def test_t_quantiles_match_published_tables(df: float, value: float) -> None:
    assert t_quantile(df) == pytest.approx(value, abs=0.002)


@pytest.mark.parametrize(("df", "value"), [(10, 2.2281389), (15, 2.1314495), (20, 2.0859634), (30, 2.0422725)])
def test_t_quantiles_are_as_exact_as_a_four_term_expansion(df: float, value: float) -> None:
    assert t_quantile(df) == pytest.approx(value, abs=2 / df**5)


@pytest.mark.parametrize(
    ("passed", "n", "low", "high"), [(8, 10, 0.4902, 0.9433), (0, 20, 0.0, 0.1611), (81, 263, 0.2553, 0.3662)]
)
def test_the_wilson_interval_matches_published_values(passed: int, n: int, low: float, high: float) -> None:
    """81 of 263: Newcombe 1998, table I."""
    assert wilson(passed / n, n, 1.959964) == pytest.approx((low, high), abs=1e-4)


def _population(runs: int, seed: int, passing: float = 0.7) -> tuple[np.ndarray, np.ndarray]:
    draw = np.random.default_rng(seed)
    people = (draw.random(runs) < passing).astype(float)
    judge = np.clip(0.55 + 0.3 * people + draw.normal(0.0, 0.12, runs), 0.0, 1.0)
    return people, judge


def test_the_rate_matches_power_tuned_prediction_powered_inference() -> None:
    """arXiv 2311.01453, section 6."""
    people, judge = _population(40_000, 3)
    n = 4_000
    y, f, others = people[:n], judge[:n], judge[n:]
    ratio = n / len(others)
    power = np.cov(y, f)[0, 1] / (np.var(np.r_[f, others], ddof=1) * (1 + ratio))
    value = y.mean() + power * (others.mean() - f.mean())
    half = 1.959964 * np.sqrt(np.var(y - power * f, ddof=1) / n + power**2 * np.var(others, ddof=1) / len(others))
    found = corrected_rate(Labelled.of(y, f), Scores(float(judge.mean()), len(judge)))
    assert found.method == "corrected"
    assert found.value == pytest.approx(value, abs=3e-4)
    assert found.width / 2 == pytest.approx(half, rel=0.02)


@pytest.mark.parametrize(
    ("n", "value", "low", "high"), [(100, 0.69244, 0.63260, 0.75228), (400, 0.69348, 0.66343, 0.72352)]
)
def test_the_rate_matches_the_ppi_python_package(n: int, value: float, low: float, high: float) -> None:
    """Compares with ppi-python 0.2.3; our interval is wider at these sizes."""
    people, judge = _population(5_000, 3)
    judge = 2.5 * judge - 1.2  # ppi-python allows no power above 1
    found = corrected_rate(Labelled.of(people[:n], judge[:n]), Scores(float(judge.mean()), 5_000))
    assert found.value == pytest.approx(value, abs=5e-4)
    assert 1.0 < found.width / (high - low) < 1.0 + 7 / n


def test_a_lenient_judge_is_corrected_and_still_narrows_the_interval() -> None:
    people, judge = _population(3_000, 5)
    found = corrected_rate(Labelled.of(people[:200], judge[:200]), Scores(float(judge.mean()), len(judge)))
    assert judge.mean() > 0.74  # the uncorrected rate of the judge
    assert found.low < people.mean() < found.high
    assert found.width < 0.75 * label_rate(Labelled.of(people[:200], judge[:200])).width


def test_a_judge_with_constant_scores_gets_no_weight() -> None:
    people, _ = _population(200, 7)
    blind = np.full(200, 0.9)
    found = corrected_rate(Labelled.of(people, blind), Scores(0.9, 5_000))
    assert (found.method, found.power) == ("labels", 0.0)
    assert found.value == pytest.approx(people.mean())


def test_perfect_agreement_does_not_collapse_the_interval() -> None:
    people = np.r_[np.ones(45), np.zeros(15)]
    found = corrected_rate(Labelled.of(people, people), Scores(0.75, 100_000))
    assert found.method == "corrected"
    assert found.width > 0.05


@pytest.mark.parametrize("people", [np.ones(60), np.zeros(60), np.r_[np.ones(57), np.zeros(3)]])
def test_only_the_labels_count_if_nearly_all_labels_are_equal(people: np.ndarray) -> None:
    found = corrected_rate(Labelled.of(people, 0.5 + people / 4), Scores(0.7, 100_000))
    assert found.method == "labels"
    assert 0.0 <= found.low <= found.value <= found.high <= 1.0
    assert found.width > 0.05


def test_repeated_labels_of_a_session_do_not_narrow_the_interval() -> None:
    people, judge = _population(120, 11)
    alone = label_rate(Labelled.of(people, judge))
    doubled = np.repeat(people, 3), np.repeat(judge, 3), np.repeat(np.arange(120), 3)
    again = label_rate(Labelled.of(doubled[0], doubled[1], clusters=list(doubled[2])))
    assert (again.value, again.width) == pytest.approx((alone.value, alone.width))


def test_runs_with_a_higher_chance_of_selection_weigh_less() -> None:
    unsure, sure = np.r_[np.ones(40), np.zeros(40)], np.r_[np.ones(18), np.zeros(2)]
    people, chance = np.r_[unsure, sure], np.r_[np.full(80, 0.4), np.full(20, 0.1)]
    judge = np.r_[np.full(80, 0.5), np.full(20, 0.9)]
    assert label_rate(Labelled.of(people, judge)).value == pytest.approx(0.58)
    assert label_rate(Labelled.of(people, judge, 1 / chance)).value == pytest.approx((0.5 + 0.9) / 2)


unit = st.floats(0.0, 1.0)


@settings(max_examples=examples(150), deadline=None)
@given(st.lists(st.tuples(unit, unit, st.floats(0.02, 1.0)), min_size=2, max_size=60), unit, st.integers(1, 10**6))
def test_the_corrected_interval_is_valid_and_never_wider_than_the_label_interval(
    runs: list[tuple[float, float, float]], mean: float, size: int
) -> None:
    people, judge, chance = zip(*runs, strict=True)
    labelled = Labelled.of(people, judge, [1 / each for each in chance])
    found, alone = corrected_rate(labelled, Scores(mean, size)), label_rate(labelled)
    for each in (found, alone):
        assert 0.0 <= each.low <= each.value + 1e-9
        assert each.value - 1e-9 <= each.high <= 1.0
    assert found.width <= alone.width


def test_a_corrected_rate_needs_two_labels() -> None:
    with pytest.raises(ValueError, match="two labels"):
        corrected_rate(Labelled.of([1.0], [1.0]), Scores(1.0, 1))


@pytest.mark.parametrize(("n", "passing"), [(50, 0.7), (100, 0.85), (300, 0.7)])
def test_the_interval_covers_the_truth_as_often_as_claimed(n: int, passing: float) -> None:
    """500 draws: three standard errors below 0.95 are 0.92."""
    people, judge = _population(50_000, 13, passing)
    draw, truth, held = np.random.default_rng(17), people.mean(), 0
    for _ in range(500):
        at = draw.integers(0, len(people), 1_500)
        found = corrected_rate(Labelled.of(people[at[:n]], judge[at[:n]]), Scores(float(judge[at].mean()), 1_500))
        held += found.low <= truth <= found.high
    assert held / 500 >= 0.92


def _by_the_formulas(people: list[float], judge: list[float], mean: float, runs: float) -> tuple[float, ...]:
    """Return value, interval and power for independent runs of equal weight."""
    n, passed, scored = len(people), fmean(people), fmean(judge)
    around = [each - scored for each in judge]
    power = sum(f * y for f, y in zip(around, people, strict=True)) / sum(f * f for f in around) * n / (n + 4)
    rest = [y - power * f for y, f in zip(people, judge, strict=True)]
    left = sum((each - fmean(rest)) ** 2 for each in rest) / n / (n - 2)
    left += 2 * power**2 * sum(f * f for f in around) / n / (n - 2) * 4 / n
    seen = min(1.0, n / runs)
    variance = left * (1 - seen) + sum((y - passed) ** 2 for y in people) / n / (n - 1) * seen
    value = min(1.0, max(0.0, passed + power * (mean - scored)))
    low, high = wilson(value, value * (1 - value) / variance, t_quantile(n - 1, 0.95))
    return value, low, high, power


JUDGED = [0.9, 0.8, 0.95, 0.7, 0.85, 0.9, 0.75, 0.3, 0.2, 0.4, 0.1, 0.35, 0.25, 0.5, 0.6, 0.9] * 2
SEEN = [1.0] * 7 + [0.0] * 6 + [0.0, 1.0, 1.0]
SEEN *= 2


@pytest.mark.parametrize("runs", [1000.0, 40.0])
def test_the_corrected_rate_of_few_labels_follows_the_formulas(runs: float) -> None:
    found = corrected_rate(Labelled.of(SEEN, JUDGED), Scores(0.5, runs))
    assert (found.method, found.n) == ("corrected", 32)
    assert (found.value, found.low, found.high, found.power) == pytest.approx(_by_the_formulas(SEEN, JUDGED, 0.5, runs))


@pytest.mark.parametrize(("mean", "value"), [(5.0, 1.0), (-5.0, 0.0)])
def test_a_corrected_rate_stays_within_0_and_1(mean: float, value: float) -> None:
    found = corrected_rate(Labelled.of(SEEN, JUDGED), Scores(mean, 1000.0))
    assert 0.0 <= found.low <= found.value == value <= found.high <= 1.0


@pytest.mark.parametrize("passed", [0, 1, 3, 8, 16])
def test_a_rate_from_labels_alone_has_a_wilson_interval_with_t_quantile(passed: int) -> None:
    people = [1.0] * passed + [0.0] * (16 - passed)
    found = label_rate(Labelled.of(people, JUDGED[:16]))
    share = passed / 16
    # The variance is estimated from the draws themselves, so 16 draws count as 15.
    n = 15 if 0 < passed < 16 else 16
    low, high = wilson(share, n, t_quantile(15, 0.95))
    assert (found.value, found.low, found.high) == pytest.approx((share, min(low, share), max(high, share)))
    assert (found.method, found.n, found.power) == ("labels", 16, 0.0)


@pytest.mark.parametrize(("failed", "method"), [(7, "labels"), (8, "corrected"), (24, "corrected"), (25, "labels")])
def test_a_correction_needs_eight_passes_and_eight_failures(failed: int, method: str) -> None:
    people = np.r_[np.zeros(failed), np.ones(32 - failed)]
    judge = 0.3 + people / 2 + np.linspace(0.0, 0.1, 32)
    assert corrected_rate(Labelled.of(people, judge), Scores(0.6, 1e6)).method == method


def test_an_interval_from_two_labels_uses_one_degree_of_freedom() -> None:
    found = label_rate(Labelled.of([0.0, 1.0], [0.5, 0.5]))
    low, high = wilson(0.5, 1.0, t_quantile(1.0))
    assert (found.value, found.low, found.high) == pytest.approx((0.5, low, high))


def test_a_label_rate_needs_two_labels() -> None:
    with pytest.raises(ValueError, match=r"^a rate needs two labels or more$"):
        label_rate(Labelled.of([1.0], [1.0]))
