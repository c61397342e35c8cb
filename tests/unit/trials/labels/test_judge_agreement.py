"""Judge agreement: references and invariants."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from pandaeval_collector.analysis.stats.corrected_rate import Labelled
from pandaeval_lab.labels.judge_agreement import JudgeAgreement, agreement


def _table(both: int, judge_only: int, people_only: int, neither: int) -> JudgeAgreement:
    people = np.r_[np.ones(both), np.zeros(judge_only), np.ones(people_only), np.zeros(neither)]
    judge = np.r_[np.ones(both + judge_only), np.zeros(people_only + neither)]
    return agreement(Labelled.of(people, judge), people, 0.5)


def test_kappa_and_rates_equal_a_textbook_example() -> None:
    """Textbook example: 0.4."""
    found = _table(20, 5, 10, 15)
    assert found.kappa.value == pytest.approx(0.4)
    assert (found.n, found.passed, found.failed) == (50, 30, 20)
    assert found.kappa.low is not None
    assert found.kappa.high is not None
    # The large-sample standard error of Fleiss, Cohen and Everitt 1969 is 0.127 for this table.
    assert found.kappa.high - found.kappa.low == pytest.approx(2 * 1.96 * 0.127, rel=0.15)
    assert (found.tpr.value, found.fpr.value) == (pytest.approx(20 / 30), pytest.approx(5 / 20))


def test_auroc_equals_that_of_hanley_and_mcneil() -> None:
    """Hanley and McNeil 1982, table I: 0.893."""
    normal, abnormal = [33, 6, 6, 11, 2], [3, 2, 2, 11, 33]
    judge = np.repeat(np.r_[0:5, 0:5] / 4, [*normal, *abnormal])
    people = np.r_[np.zeros(58), np.ones(51)]
    found = agreement(Labelled.of(people, judge), people, 0.5)
    assert found.auroc.value == pytest.approx(0.893, abs=5e-4)
    assert found.auroc.high is not None
    assert found.auroc.low is not None
    assert (found.auroc.high - found.auroc.low) / 2 / 1.96 == pytest.approx(0.032, abs=0.006)  # published: 0.032


def test_the_suggested_threshold_separates_passed_from_failed_runs() -> None:
    judge = np.r_[np.full(30, 0.62), np.full(10, 0.8), np.full(60, 0.95)]
    people = np.r_[np.zeros(38), np.ones(62)]
    found = agreement(Labelled.of(people, judge), people, 0.5)
    assert found.kappa.value == pytest.approx(0.0)
    assert found.suggested.value == pytest.approx(0.875)


def test_auroc_and_threshold_are_undefined_if_people_pass_all_runs() -> None:
    people, judge = np.ones(20), np.linspace(0.2, 1.0, 20)
    found = agreement(Labelled.of(people, judge), people, 0.5)
    assert (found.auroc.value, found.suggested.value, found.kappa.value) == (None, None, pytest.approx(0.0))
    assert found.fpr.value is None


def test_a_weight_counts_like_repeated_runs() -> None:
    people, judge = np.r_[1.0, 0, 1, 0, 1, 0], np.r_[0.9, 0.8, 0.4, 0.3, 0.7, 0.1]
    times = np.r_[4, 1, 1, 1, 2, 3]
    weighted = agreement(Labelled.of(people, judge, times), people, 0.5)
    repeated = np.repeat(people, times)
    plain = agreement(Labelled.of(repeated, np.repeat(judge, times)), repeated, 0.5)
    for name in ("kappa", "auroc", "suggested"):
        assert getattr(weighted, name).value == pytest.approx(getattr(plain, name).value), name


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.floats(0, 1)), min_size=1, max_size=40), st.floats(0, 1))
def test_all_values_lie_in_their_ranges_and_intervals(runs: list[tuple[bool, float]], threshold: float) -> None:
    people = np.asarray([float(passed) for passed, _ in runs])
    found = agreement(Labelled.of(people, [score for _, score in runs]), people, threshold)
    for each, least in ((found.kappa, -1.0), (found.auroc, 0.0), (found.tpr, 0.0)):
        if each.value is not None:
            assert least - 1e-9 <= each.value <= 1.0 + 1e-9
            assert each.low is None or each.low <= each.value <= (each.high or 1.0) + 1e-9


@pytest.mark.parametrize("present", [0.123, 0.21, 0.3, 0.777])
def test_rates_use_the_current_threshold(present: float) -> None:
    judge = np.linspace(0.0, 1.0, 500)
    people = (judge > 0.6).astype(float)
    found = agreement(Labelled.of(people, judge), people, present)
    assert found.tpr.value == pytest.approx(np.mean(judge[people == 1] >= present))
    assert found.fpr.value == pytest.approx(np.mean(judge[people == 0] >= present))
    assert found.suggested.value == pytest.approx(0.6, abs=0.005)
    assert found.threshold == present


def test_a_score_at_the_threshold_passes() -> None:
    people, judge = np.array([0.0, 1.0, 1.0, 1.0]), np.array([0.1, 0.2, 0.5, 0.50009])
    found = agreement(Labelled.of(people, judge), people, 0.5)
    assert found.tpr.value == pytest.approx(2 / 3)


def test_of_equally_good_thresholds_the_nearest_to_the_current_is_suggested() -> None:
    people, judge = np.array([0.0, 1.0, 0.0, 1.0]), np.array([0.2, 0.4, 0.6, 0.8])
    assert agreement(Labelled.of(people, judge), people, 0.9).suggested.value == 0.7
    assert agreement(Labelled.of(people, judge), people, 0.1).suggested.value == 0.3


def test_the_same_labels_have_the_same_intervals() -> None:
    people, judge = np.r_[np.zeros(20), np.ones(20)], np.linspace(0.0, 1.0, 40) ** 2
    first, second = (agreement(Labelled.of(people, judge), people, 0.5) for _ in range(2))
    assert first == second


def test_agreement_without_labels_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"^nothing to compare$"):
        agreement(Labelled.of([], []), np.array([]), 0.5)


def test_a_judge_without_errors_still_has_wide_intervals() -> None:
    people = np.r_[np.zeros(10), np.ones(30)]
    found = agreement(Labelled.of(people, people), people, 0.5)
    for each, value in ((found.kappa, 1.0), (found.auroc, 1.0), (found.tpr, 1.0), (found.fpr, 0.0)):
        assert each.value == pytest.approx(value)
        assert each.low is not None
        assert each.high is not None
        assert each.high - each.low > 0.1
    assert found.fpr.high == pytest.approx(0.34, abs=0.02)


def test_repeated_runs_of_a_session_do_not_narrow_the_intervals() -> None:
    draw = np.random.default_rng(4)
    people = (draw.random(40) < 0.6).astype(float)
    judge = np.where(draw.random(40) < 0.8, people, 1 - people)
    once = agreement(Labelled.of(people, judge), people, 0.5)
    often = np.repeat(people, 5)
    five = agreement(Labelled.of(often, np.repeat(judge, 5), None, np.repeat(np.arange(40), 5).tolist()), often, 0.5)
    for name in ("kappa", "auroc"):
        alone, repeated = getattr(once, name), getattr(five, name)
        assert repeated.value == pytest.approx(alone.value)
        assert repeated.high - repeated.low == pytest.approx(alone.high - alone.low, rel=0.1), name


def test_auroc_has_no_interval_with_one_failed_run() -> None:
    people = np.r_[0.0, np.ones(20)]
    found = agreement(Labelled.of(people, np.linspace(0, 1, 21)), people, 0.5)
    assert (found.auroc.value, found.auroc.low, found.auroc.high) == (1.0, None, None)
