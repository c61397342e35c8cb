"""The interval of paired differences."""

from __future__ import annotations

import numpy as np
import pytest

from pandaeval_collector.analysis.stats.paired import paired_difference
from pandaeval_collector.analysis.stats.quantiles import means


def test_no_values_give_no_difference_and_one_cluster_gives_no_interval() -> None:
    assert paired_difference([], []) is None
    one = paired_difference([0.5, 0.7], [1, 1])
    assert one is not None
    assert (one.n, one.clusters, one.low, one.high) == (2, 1, None, None)
    assert one.mean == pytest.approx(0.6)


def test_the_interval_covers_the_mean_as_often_as_claimed() -> None:
    chance = np.random.default_rng(5)
    covered = 0
    for _ in range(200):
        found = paired_difference([*chance.normal(0.1, 0.3, 60)], [*range(60)])
        assert found is not None
        assert found.low is not None
        assert found.high is not None
        covered += found.low <= 0.1 <= found.high
    assert 0.88 <= covered / 200 <= 0.99


def test_traces_of_one_session_are_not_treated_as_independent() -> None:
    chance = np.random.default_rng(6)
    sessions = np.repeat(np.arange(30), 20)
    values = chance.normal(0.0, 0.3, 30)[sessions]
    by_session, as_if_free = (paired_difference([*values], clusters) for clusters in ([*sessions], [*range(600)]))
    assert by_session is not None
    assert as_if_free is not None
    assert by_session.mean == pytest.approx(as_if_free.mean)
    assert by_session.high is not None
    assert by_session.low is not None
    assert as_if_free.high is not None
    assert as_if_free.low is not None
    assert by_session.high - by_session.low > 3 * (as_if_free.high - as_if_free.low)


def test_the_interval_comes_from_resampled_clusters() -> None:
    values, clusters = [0.1, 0.5, -0.2, 0.4, 0.9, 0.3], [7, 7, 3, 9, 9, 9]
    drawn = means(np.array([-0.2, 0.6, 1.6]), np.array([1.0, 2.0, 3.0]))
    found = paired_difference(values, clusters)
    assert found is not None
    assert (found.n, found.clusters, found.mean) == (6, 3, pytest.approx(2.0 / 6))
    assert (found.low, found.high) == pytest.approx(tuple(np.percentile(drawn, [2.5, 97.5])))
    assert paired_difference(values, clusters) == found


def test_another_seed_draws_other_samples() -> None:
    values = [*np.linspace(0.0, 1.0, 40) ** 3]
    plain, first, second = (paired_difference(values, range(40), *seed) for seed in ((), (0,), (1,)))
    assert plain == first != second
    assert second is not None
    drawn = means(np.array(values), np.ones(40), 1)
    assert (second.low, second.high) == pytest.approx(tuple(np.percentile(drawn, [2.5, 97.5])))


@pytest.mark.parametrize(("clusters", "known"), [([1, 1], False), ([1, 2], True)])
def test_an_interval_needs_two_clusters(clusters: list[int], known: bool) -> None:
    found = paired_difference([0.0, 1.0], clusters)
    assert found is not None
    assert found.clusters == 1 + known
    assert (found.low, found.high) == ((0.0, 1.0) if known else (None, None))
