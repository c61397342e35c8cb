"""Agreement intervals against plain loops."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from statistics import fmean

import numpy as np
import pytest
from numpy.typing import NDArray

from pandaeval_collector.analysis.stats.corrected_rate import Labelled, label_rate
from pandaeval_collector.analysis.stats.quantiles import t_quantile, wilson
from pandaeval_lab.labels import judge_agreement
from pandaeval_lab.labels.judge_agreement import (
    AgreementEstimate,
    JudgeAgreement,
    agreement,
    jackknifed,
)

Values = NDArray[np.float64]
Run = tuple[float, float, float]
"""Label, judge score and weight."""
Ends = tuple[float | None, float | None, float | None]


def _by_leaving_out(runs: Sequence[Run], sessions: Sequence[int], of: Callable[[Sequence[Run]], float]) -> Ends:
    """Return the session jackknife on Fisher's scale."""
    names, edge = sorted({*sessions}), 1 - 1 / len(runs)
    value, n = of(runs), len(names)
    without = [of([run for run, own in zip(runs, sessions, strict=True) if own != name]) for name in names]
    scaled = [math.atanh(max(-edge, min(edge, each))) for each in without]
    error = math.sqrt((n - 1) / n * sum((each - fmean(scaled)) ** 2 for each in scaled))
    half = t_quantile(n - 2) * max(error, 1 / math.sqrt(len(runs)))
    middle = math.atanh(max(-edge, min(edge, value)))
    return value, min(value, math.tanh(middle - half)), max(value, math.tanh(middle + half))


def _table(runs: Sequence[Run]) -> tuple[float, float, float, float]:
    total = sum(weight for _, _, weight in runs)
    shares = (
        sum(weight for one, other, weight in runs if (one >= 0.5, other >= 0.5) == cell) / total
        for cell in ((True, True), (True, False), (False, True), (False, False))
    )
    both, people, judge, neither = shares
    return both, people, judge, neither


def _kappa(runs: Sequence[Run]) -> float:
    both, people, judge, neither = _table(runs)
    chance = (both + people) * (both + judge) + (judge + neither) * (people + neither)
    return (both + neither - chance) / (1 - chance)


def _near(found: AgreementEstimate | None, expected: Ends) -> None:
    assert found is not None
    for end, each in zip((found.value, found.low, found.high), expected, strict=True):
        assert end == (None if each is None else pytest.approx(each, rel=1e-9))


def _drawn(seed: int, n: int, sessions: int, like: float) -> tuple[list[Run], list[int]]:
    draw = np.random.default_rng(seed)
    people = draw.integers(0, 5, n) / 4
    judge = np.where(draw.random(n) < like, people, draw.integers(0, 5, n) / 4)
    runs = [*zip(people.tolist(), judge.tolist(), draw.integers(1, 5, n).tolist(), strict=True)]
    return runs, [*range(sessions), *draw.integers(0, sessions, n - sessions).tolist()]


def _agreement(runs: Sequence[Run], sessions: Sequence[int]) -> JudgeAgreement:
    people, judge, weights = zip(*runs, strict=True)
    passes = (np.asarray(people) >= 0.5).astype(float)
    return agreement(Labelled.of(people, judge, weights, sessions), passes, 0.5)


class TestJackknife:
    @pytest.mark.parametrize(
        ("seed", "n", "sessions", "like"), [(1, 40, 40, 0.7), (2, 60, 9, 0.5), (3, 90, 30, 0.0), (4, 70, 50, 0.95)]
    )
    def test_kappa_and_its_interval_equal_a_plain_jackknife_over_sessions(
        self, seed: int, n: int, sessions: int, like: float
    ) -> None:
        runs, own = _drawn(seed, n, sessions, like)
        found = _agreement(runs, own)
        _near(found.kappa, _by_leaving_out(runs, own, _kappa))

    @pytest.mark.parametrize("judge", [1.0, 0.0])
    def test_extreme_kappa_values_are_clipped_by_the_number_of_runs(self, judge: float) -> None:
        runs = [(float(at % 2), float(at % 2 == judge), 1.0) for at in range(20)]
        runs[0] = (0.0, 1.0 - runs[0][1], 1.0)
        _near(_agreement(runs, range(20)).kappa, _by_leaving_out(runs, range(20), _kappa))

    def test_an_interval_needs_at_least_three_sessions(self) -> None:
        runs = [(1.0, 1.0, 1.0), (0.0, 0.0, 1.0), (1.0, 0.0, 1.0)] * 3
        own = [at // 3 for at in range(9)]
        _near(_agreement(runs, own).kappa, (0.4, *_without_spread(0.4, 3)))
        _near(_agreement(runs, [at % 2 for at in range(9)]).kappa, (0.4, None, None))

    @pytest.mark.parametrize("size", [1e-9, 1.0, 1e9])
    def test_kappa_is_undefined_at_any_weight_if_people_and_judge_pass_all_runs(self, size: float) -> None:
        draw = np.random.default_rng(6)
        for _ in range(20):
            found = _agreement([(1.0, 1.0, size * each) for each in draw.uniform(0.1, 1.0, 30).tolist()], range(30))
            assert found.kappa == AgreementEstimate(None)

    @pytest.mark.parametrize("value", [1.0, 0.25, -1.0])
    def test_without_variation_the_interval_is_that_of_a_share(self, value: float) -> None:
        found = jackknifed(np.ones((1, 12)), np.arange(12), lambda sums: np.full(sums.shape[1:], value))
        assert found == pytest.approx((value, *_without_spread(value, 12)))

    def test_an_undefined_measure_has_no_value_and_a_sometimes_undefined_one_no_interval(self) -> None:
        nothing = jackknifed(np.ones((1, 5)), np.arange(5), lambda sums: np.full(sums.shape[1:], math.nan))
        assert nothing == (None, None, None)
        seldom = jackknifed(np.ones((1, 5)), np.arange(5), lambda sums: np.where(sums[0] >= 5.0, 0.5, math.nan))
        assert seldom == (0.5, None, None)


def _without_spread(value: float, n: int) -> tuple[float, float]:
    low, high = wilson((value + 1) / 2, n, t_quantile(n - 2))
    return min(value, 2 * low - 1), max(value, 2 * high - 1)


def _auroc(runs: Sequence[Run], sessions: Sequence[int]) -> Ends:
    passed = [weight * (people >= 0.5) for people, _, weight in runs]
    failed = [weight * (people < 0.5) for people, _, weight in runs]
    good, bad = ([each / sum(some) for each in some] for some in (passed, failed))

    def before(at: int, other: int) -> float:
        return float(runs[at][1] > runs[other][1]) + float(runs[at][1] == runs[other][1]) / 2

    every = range(len(runs))
    value = sum(good[at] * bad[other] * before(at, other) for at in every for other in every)
    of_good, of_bad, sizes = {}, {}, [0.0, 0.0]
    for name in {*sessions}:
        own = [at for at in every if sessions[at] == name]
        of_good[name] = sum(good[at] * (sum(bad[o] * before(at, o) for o in every) - value) for at in own)
        of_bad[name] = sum(bad[at] * (sum(good[o] * before(o, at) for o in every) - value) for at in own)
        sizes[0] += sum(good[at] for at in own) ** 2
        sizes[1] += sum(bad[at] for at in own) ** 2
    known = [1 / each for each in sizes]
    variance = sum((of_good[name] + of_bad[name]) ** 2 for name in of_good)
    variance += sum(
        sum(each**2 for each in of.values()) / max(1.0, n - 1) for of, n in zip((of_good, of_bad), known, strict=True)
    )
    n = value * (1 - value) / variance if variance > 1e-9 else min(known)
    low, high = wilson(value, n, t_quantile(min(known) - 1))
    return value, min(value, low), max(value, high)


class TestAuroc:
    @pytest.mark.parametrize(
        ("seed", "n", "sessions", "like"), [(1, 40, 40, 0.7), (2, 60, 20, 0.5), (3, 90, 30, 0.0), (4, 30, 25, 0.97)]
    )
    def test_auroc_variance_comes_from_the_placements_of_sessions(
        self, seed: int, n: int, sessions: int, like: float
    ) -> None:
        runs, own = _drawn(seed, n, sessions, like)
        _near(_agreement(runs, own).auroc, _auroc(runs, own))

    @pytest.mark.parametrize("value", [0.0, 1.0])
    def test_interval_of_a_perfect_order_depends_on_the_number_of_the_rarer_kind(self, value: float) -> None:
        runs = [(float(at < 14), abs(float(at < 14) - 1 + value), 1.0) for at in range(20)]
        low, high = wilson(value, 6, t_quantile(5))
        _near(_agreement(runs, range(20)).auroc, (value, min(low, value), max(high, value)))

    @pytest.mark.parametrize(("sessions", "known"), [([0, 1, *range(2, 20)], True), ([0, 0, *range(1, 19)], False)])
    def test_an_interval_needs_two_sessions_of_the_rarer_kind(self, sessions: list[int], known: bool) -> None:
        runs = [(float(at > 1), at / 20 if at else 0.5, 1.0) for at in range(20)]
        found = _agreement(runs, sessions).auroc
        _near(found, _auroc(runs, sessions) if known else (found.value, None, None))


class TestSuggested:
    def test_of_two_equally_near_thresholds_the_lower_is_suggested(self) -> None:
        judge = np.arange(-31, 64, 2) / 32
        people = np.r_[np.zeros(21), np.ones(3), np.zeros(3), np.ones(21)]
        assert agreement(Labelled.of(people, judge), people, 0.5).suggested.value == 0.3125  # type: ignore[arg-type]

    @pytest.mark.parametrize("people", [np.ones(12), np.zeros(12)])
    def test_no_threshold_is_suggested_if_all_runs_pass_or_all_fail(self, people: Values) -> None:
        found = agreement(Labelled.of(people, np.linspace(0, 1, 12)), people, 0.5)
        assert found.suggested == found.auroc == AgreementEstimate(None)


class TestThresholds:
    @pytest.mark.parametrize(("scores", "cuts"), [(3, 3), (200, 200), (201, 200), (2000, 200)])
    def test_more_than_200_scores_are_cut_at_200_quantiles(self, scores: int, cuts: int) -> None:
        judge = np.arange(scores) / scores
        found = judge_agreement._cuts(judge, 2.0)
        assert len(found) == cuts
        parts = judge if scores <= 200 else np.quantile(judge, np.linspace(0, 1, 200))
        assert found.tolist() == [*np.round((parts[1:] + parts[:-1]) / 2, 4), 2.0]

    def test_true_and_false_positive_rates_use_passed_and_failed_labels(self) -> None:
        runs, own = _drawn(5, 50, 30, 0.6)
        people, judge, weights = zip(*runs, strict=True)
        found = _agreement(runs, own)
        for found_rate, kind in ((found.tpr, True), (found.fpr, False)):
            kept = [place for place in range(50) if (people[place] >= 0.5) is kind]
            over = [float(judge[place] >= 0.5) for place in kept]
            rate = label_rate(
                Labelled.of(over, over, [weights[place] for place in kept], [own[place] for place in kept])
            )
            _near(found_rate, (rate.value, rate.low, rate.high))

    def test_a_rate_from_one_run_has_no_interval(self) -> None:
        people = np.array([0.0, 1.0, 1.0])
        found = agreement(Labelled.of(people, [0.6, 0.9, 0.2]), people, 0.5)
        assert (found.fpr.value, found.fpr.low, found.fpr.high) == (1.0, None, None)
        assert found.tpr.low is not None
