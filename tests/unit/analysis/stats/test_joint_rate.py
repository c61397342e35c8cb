"""A rate by several judges at once: held against another implementation, and what must hold whatever comes."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from pandaeval_collector.analysis.stats.corrected_rate import JointRate, Labelled, Scores, corrected_rate, joint_rate

Values = NDArray[np.float64]
RUNS = 600


def _world(seed: int = 5, n: int = RUNS) -> tuple[Values, Values]:
    """What people say, and two judges that see the same through noise of their own."""
    draw = np.random.default_rng(seed)
    seen = draw.normal(size=n)
    judges = np.c_[seen + 0.8 * draw.normal(size=n), seen + 0.8 * draw.normal(size=n)]
    return (seen > -0.5).astype(float), np.round(1 / (1 + np.exp(-judges)), 2)


def _rate(people: Values, judges: Values, n: int) -> JointRate:
    labelled = Labelled.of(people[:n], np.zeros(n))  # type: ignore[arg-type]
    return joint_rate(labelled, judges[:n], judges.mean(0).tolist(), len(people))


def test_it_is_that_of_another_implementation() -> None:
    """glide-py 0.11.0, MultiPPIMeanEstimator, on the same numbers: 0.6818 with a standard error of 0.0379. It takes the
    judges' covariances from all runs and has no interval for shares, so the two are alike, not equal."""
    found = _rate(*_world(), 120)
    assert found.rate.value == pytest.approx(0.6818, abs=0.004)
    assert (found.rate.high - found.rate.low) / 2 / 1.96 == pytest.approx(0.0379, abs=0.003)
    assert found.worth == pytest.approx(162 / 120, abs=0.2)


def test_two_judges_are_worth_more_than_one() -> None:
    people, judges = _world(1, 4000)
    both, one = _rate(people, judges, 400), _rate(people, judges[:, :1], 400)
    assert both.worth > one.worth > 1.2
    assert both.each[0] == pytest.approx(both.worth / _rate(people, judges[:, 1:], 400).worth)


def test_one_judge_alone_is_corrected_as_ever() -> None:
    people, judges = _world()
    alone = corrected_rate(Labelled.of(people[:150], judges[:150, 0]), Scores(float(judges[:, 0].mean()), RUNS))
    found = _rate(people, judges[:, :1], 150).rate
    assert (found.value, found.low, found.high) == pytest.approx((alone.value, alone.low, alone.high))


def test_a_judge_that_says_nothing_new_is_worth_nothing() -> None:
    people, judges = _world(2, 2000)
    copied = np.c_[judges[:, 0], judges[:, 0], np.random.default_rng(3).random(2000)]
    found = _rate(people, copied, 300)
    assert found.each == pytest.approx((1.0, 1.0, 1.0), abs=0.1)
    assert found.worth > 1.2


def test_it_is_never_wider_than_labels_alone() -> None:
    for seed in range(20):
        people, judges = _world(seed, 300)
        found = _rate(people, judges * 0.0 + np.random.default_rng(seed).random((300, 2)), 100)
        assert found.rate.width <= found.alone.width + 1e-9


def test_a_weight_is_as_if_a_run_stood_there_more_than_once() -> None:
    people, judges = _world(6, 130)
    times = np.random.default_rng(7).integers(1, 4, 130)
    means, at = [0.6, 0.55], np.repeat(np.arange(130), times)
    weighed = joint_rate(Labelled.of(people, people, times), judges, means, 900)  # type: ignore[arg-type]
    repeated = Labelled.of(people[at], people[at], None, at.tolist())  # type: ignore[arg-type]
    again = joint_rate(repeated, judges[at], means, 900)
    for one, other in ((weighed.rate, again.rate), (weighed.alone, again.alone)):
        assert (one.value, one.low, one.high, one.power) == pytest.approx(
            (other.value, other.low, other.high, other.power)
        )
    assert weighed.each == pytest.approx(again.each)
    assert (weighed.rate.n, weighed.rate.method) == (130, "corrected")


def test_each_judge_costs_a_degree_of_freedom_and_is_missed_by_what_it_adds() -> None:
    people, judges = _world(8, 120)
    labelled = Labelled.of(people, people)  # type: ignore[arg-type]
    means = [0.6, 0.55]
    found = joint_rate(labelled, judges, means, 700)
    apart = judges - judges.mean(0)
    slopes = np.linalg.solve(apart.T @ apart, apart.T @ people)
    one = Labelled.of(people, judges @ slopes)  # type: ignore[arg-type]
    both = corrected_rate(one, Scores(float(means @ slopes), 700), judges=2)
    assert (found.rate.value, found.rate.low, found.rate.high) == pytest.approx((both.value, both.low, both.high))
    assert found.worth == pytest.approx((found.alone.width / both.width) ** 2)
    for judge in range(2):
        left = corrected_rate(Labelled.of(people, judges[:, 1 - judge]), Scores(means[1 - judge], 700))  # type: ignore[arg-type]
        assert found.each[judge] == pytest.approx((left.width / both.width) ** 2)


def test_few_labels_are_refused() -> None:
    with pytest.raises(ValueError, match=r"^several judges take 100 labels, and there are 99$"):
        _rate(*_world(), 99)
    assert _rate(*_world(), 100).rate.n == 100
