"""pass@k and pass^k against references and invariants."""

from __future__ import annotations

import itertools
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from pandaeval_collector.analysis.stats import quantiles
from pandaeval_collector.analysis.stats.pass_k import MODES
from pandaeval_collector.analysis.stats.quantiles import RESAMPLES, beta_quantile, means
from pandaeval_collector.stats import assessment, pass_at_k, pass_pow_k
from pandaeval_lab.passk.figures import bounds, interval, suite

VECTORS = Path(__file__).parents[4].parent / "shared" / "vectors" / "pass_at_k.json"


def near(expected: Any, by: float = 1e-9) -> Any:
    return pytest.approx(expected, rel=0, abs=by)


@pytest.mark.skipif(not VECTORS.exists(), reason="the shared vectors are not here")
def test_shared_vectors() -> None:
    for case in json.loads(VECTORS.read_text()):
        of = case["n"], case["c"], case["k"]
        for name, estimate in (("pass_at_k", pass_at_k), ("pass_pow_k", pass_pow_k)):
            for mode in MODES:
                found, expected = estimate(*of, mode=mode), case[mode][name]
                assert found.value == (None if expected is None else near(expected)), (of, name, mode)
            assert (found.ci_low, found.ci_high) == near(tuple(case["bayesian"][f"{name}_ci"]), 1e-6), (of, name)


class TestPlugIn:
    def test_uses_the_observed_rate_and_has_no_interval(self) -> None:
        assert pass_at_k(4, 3, 2).value == near(1 - 0.25**2)
        assert pass_pow_k(4, 3, 2).value == near(0.75**2)
        assert (pass_at_k(4, 3, 2).ci_low, pass_at_k(4, 3, 2).ci_high, pass_at_k(4, 3, 2).median) == (None, None, None)


class TestUnbiased:
    def test_is_the_share_of_passing_groups_of_k_trials(self) -> None:
        trials = [True, True, True, False, False]
        groups = list(itertools.combinations(trials, 2))
        assert pass_at_k(5, 3, 2, "unbiased").value == near(sum(map(any, groups)) / len(groups))
        assert pass_pow_k(5, 3, 2, "unbiased").value == near(sum(map(all, groups)) / len(groups))

    def test_is_unknown_with_fewer_trials_than_k(self) -> None:
        assert pass_at_k(2, 2, 3, "unbiased").value is None
        assert pass_pow_k(2, 2, 3, "unbiased").value is None


class TestBayesian:
    def test_median_lies_in_the_interval_and_the_mean_may_not(self) -> None:
        found = pass_pow_k(2, 0, 10, "bayesian")
        assert found.ci_low is not None
        assert found.ci_high is not None
        assert found.median is not None
        assert found.value is not None
        assert found.ci_low < found.median < found.ci_high
        assert pass_pow_k(2, 0, 50, "bayesian").value > pass_pow_k(2, 0, 50, "bayesian").ci_high  # type: ignore[operator]

    def test_is_the_rule_of_succession_if_k_is_1(self) -> None:
        assert pass_at_k(8, 8, 1, "bayesian").value == near(9 / 10)
        assert pass_pow_k(8, 8, 1, "bayesian").value == near(9 / 10)


@pytest.mark.parametrize("mode", MODES)
def test_without_trials_there_is_no_value(mode: Any) -> None:
    for estimate in (pass_at_k, pass_pow_k):
        found = estimate(0, 0, 1, mode)
        assert (found.value, found.ci_low, found.ci_high, found.median) == (None, None, None, None)


@pytest.mark.parametrize(("n", "c", "k", "mode"), [(2, 3, 1, "plug_in"), (2, -1, 1, "plug_in"), (2, 1, 0, "plug_in")])
def test_impossible_counts_are_rejected(n: int, c: int, k: int, mode: Any) -> None:
    with pytest.raises(ValueError):
        pass_at_k(n, c, k, mode)


def test_the_error_names_an_unknown_mode() -> None:
    with pytest.raises(ValueError, match="frequentist"):
        pass_pow_k(3, 1, 1, "frequentist")  # type: ignore[arg-type]


def test_undetermined_trials_give_lower_and_upper_bounds() -> None:
    at, power = bounds(3, 2, 1, 2)
    assert at == near((pass_at_k(4, 2, 2, "unbiased").value, pass_at_k(4, 3, 2, "unbiased").value))
    assert power == near((1 / 6, 1 / 2))


class TestSuite:
    CASES = ((4, 4), (4, 2), (4, 0))

    def test_is_the_mean_over_cases(self) -> None:
        found = suite(pass_pow_k, self.CASES, 2)
        assert found.value == found.mean == near((1 + 1 / 6 + 0) / 3)
        assert (found.cases, found.of, found.method) == (3, 3, "wilson")

    def test_has_a_mean_but_no_value_if_a_case_has_too_few_trials(self) -> None:
        found = suite(pass_at_k, [*self.CASES, (1, 1)], 2)
        assert found.value is None
        assert found.mean == near((1 + 5 / 6 + 0) / 3)
        assert (found.cases, found.of) == (3, 4)

    def test_is_empty_without_a_case_with_enough_trials(self) -> None:
        for cases in ((), ((1, 1),)):
            found = suite(pass_at_k, cases, 2)
            assert (found.value, found.mean, found.ci_low, found.ci_high, found.cases) == (None, None, None, None, 0)
            assert (found.of, found.method) == (len(cases), "")

    def test_has_the_interval_of_its_mean(self) -> None:
        found = suite(pass_at_k, self.CASES, 2)
        values = [suite(pass_at_k, [case], 2).mean for case in self.CASES]
        assert (found.ci_low, found.ci_high, found.method) == interval([each for each in values if each is not None])

    def test_the_bootstrap_interval_spans_the_quantiles_of_the_samples(self) -> None:
        values = np.linspace(0.0, 1.0, 60) ** 3
        drawn = means(values, np.ones(60))
        assert interval([*values])[:2] == near(tuple(np.quantile(drawn, [0.025, 0.975])))
        assert interval([*values], seed=0) == interval([*values]) != interval([*values], seed=1)

    def test_the_interval_is_wilson_below_50_cases_and_bootstrap_from_50_on(self) -> None:
        values = [0.25, 0.75] * 25
        few, many = interval(values[:49]), interval(values)
        assert (few[2], many[2]) == ("wilson", "bootstrap")
        assert many[0] == near(0.5 - 1.96 * 0.25 / 50**0.5, 0.02)
        assert few[0] < many[0] < 0.5 < many[1] < few[1]
        assert interval(values) == many

    def test_many_equal_cases_get_a_wilson_interval(self) -> None:
        low, high, method = interval([1.0] * 60)
        assert (high, method) == (near(1.0), "wilson")
        assert low < 0.95


@pytest.mark.parametrize(
    ("at", "power", "expected"),
    [
        (0.96, 0.71, "reliable"),
        (0.96, 0.49, "inconsistent"),
        (0.96, 0.6, None),
        (0.95, 0.9, None),
        (0.8, 0.1, None),
        (0.69, 0.69, "needs_improvement"),
        (0.7, 0.7, None),
        (None, None, None),
    ],
)
def test_the_assessment_is_none_between_its_bands(at: float | None, power: float | None, expected: str | None) -> None:
    assert assessment(at, power) == expected


@given(st.integers(1, 400), st.integers(1, 400), st.floats(0.001, 0.999))
def test_a_beta_quantile_has_the_given_share_below_it(successes: int, failures: int, share: float) -> None:
    at, trials = beta_quantile(successes, failures, share), successes + failures - 1
    below = sum(math.comb(trials, c) * at**c * (1.0 - at) ** (trials - c) for c in range(successes, trials + 1))
    assert below == pytest.approx(share, rel=1e-9, abs=1e-11)


@pytest.mark.parametrize(("successes", "failures", "share"), [(20, 2400, 0.9987), (3600, 29, 0.47), (2400, 20, 0.0013)])
def test_a_beta_quantile_is_found_if_a_newton_step_leaves_the_density(
    successes: int, failures: int, share: float
) -> None:
    at, trials = beta_quantile(successes, failures, share), successes + failures - 1
    chances = (
        math.lgamma(trials + 1) - math.lgamma(c + 1) - math.lgamma(trials - c + 1) + c * math.log(at)
        + (trials - c) * math.log1p(-at)
        for c in range(successes, trials + 1)
    )  # fmt: skip
    assert math.fsum(map(math.exp, chances)) == pytest.approx(share, rel=1e-8)


@pytest.mark.parametrize(("successes", "failures", "share"), [(9, 4, 0.025), (9, 4, 0.5), (40, 1, 0.5), (2, 2, 0.1)])
def test_a_beta_quantile_needs_at_most_30_newton_steps(
    successes: float, failures: float, share: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps, below = [], quantiles._beta_below
    monkeypatch.setattr(quantiles, "_beta_below", lambda *of: steps.append(of[2]) or below(*of))
    beta_quantile(successes, failures, share)
    assert len(steps) <= 30


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_beta_quantiles_of_shares_0_and_1_are_0_and_1(share: float) -> None:
    assert beta_quantile(3.0, 2.0, share) == share


@pytest.mark.parametrize(
    ("successes", "failures", "share", "quantile"),
    [
        (1.0, 1.0, 0.0, 0.0),
        (1.0, 1.0, 1.0, 1.0),
        (1.0, 1.0, 0.25, 0.25),
        (3.0, 1.0, 0.5, 0.5 ** (1 / 3)),
        (0.5, 0.5, 0.5, 0.5),
    ],
)
def test_beta_quantiles_match_known_values(successes: float, failures: float, share: float, quantile: float) -> None:
    assert beta_quantile(successes, failures, share) == near(quantile)


@pytest.mark.parametrize(
    ("successes", "failures", "share"),
    [(0.0, 1.0, 0.5), (1.0, 0.0, 0.5), (-1.0, 1.0, 0.5), (1.0, 1.0, -0.1), (1.0, 1.0, 1.1), (math.nan, 1.0, 0.5)],
)
def test_invalid_beta_parameters_are_rejected(successes: float, failures: float, share: float) -> None:
    with pytest.raises(ValueError, match=r"^no Beta\("):
        beta_quantile(successes, failures, share)


def test_the_bayesian_interval_leaves_out_2_5_percent_on_each_side() -> None:
    found = pass_pow_k(2, 2, 1, "bayesian")  # Beta(3, 1): the share below x is x^3
    assert (found.ci_low, found.median, found.ci_high) == near(tuple(share ** (1 / 3) for share in (0.025, 0.5, 0.975)))


def test_unbiased_pass_pow_k_is_known_up_to_k_equal_to_the_trials() -> None:
    assert pass_pow_k(3, 3, 3, "unbiased").value == 1.0
    assert pass_pow_k(3, 2, 3, "unbiased").value == 0.0
    assert pass_pow_k(3, 3, 4, "unbiased").value is None


@pytest.mark.parametrize("groups", [1, 2, 60, 2001, 3000])
def test_means_draws_2000_samples_for_any_number_of_groups(groups: int) -> None:
    sums, sizes = np.arange(groups, dtype=float), np.full(groups, 2.0)
    drawn = means(sums, sizes)
    assert drawn.shape == (RESAMPLES,) == (2000,)
    assert np.array_equal(drawn, means(sums, sizes, 0))
    assert abs(drawn.mean() - sums.mean() / 2.0) <= 5 * sums.std() / 2.0 / (groups * 2000) ** 0.5
    assert groups < 60 or not np.array_equal(drawn, means(sums, sizes, 1))
