"""Where a cheap judge's verdict may stand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pandaeval_collector.analysis.stats.corrected_rate import cascade_rule


def test_a_judge_that_always_agrees_decides_everything() -> None:
    rule = cascade_rule([0.9] * 60 + [0.1] * 40, [True] * 60 + [False] * 40, 0.5)
    assert rule is not None
    assert (rule.asked, rule.agreed, rule.n) == (0.0, 1.0, 100)
    assert rule.decides(0.9)
    assert rule.decides(0.1)


def test_the_strong_judge_is_asked_where_the_cheap_one_errs() -> None:
    """It errs in half of what it scores 0.6, and nowhere else."""
    scores = [0.9] * 60 + [0.1] * 40 + [0.6] * 40
    rule = cascade_rule(scores, [True] * 60 + [False] * 40 + [True, False] * 20, 0.5)
    assert rule is not None
    assert (rule.asked, rule.agreed) == (pytest.approx(40 / 140), 1.0)
    assert not rule.decides(0.6)


def test_few_runs_promise_nothing() -> None:
    """45 runs without a difference are the least for .95 with nine in ten sure: .95 to the 45th is .0994."""
    assert cascade_rule([0.9] * 44, [True] * 44, 0.5) is None
    assert cascade_rule([0.9] * 45, [True] * 45, 0.5) is not None


def test_a_judge_that_is_sure_and_wrong_decides_nothing() -> None:
    assert cascade_rule([1.0] * 100, [True] * 80 + [False] * 20, 0.5) is None


@given(
    st.lists(st.tuples(st.sampled_from([0.0, 0.2, 0.4, 0.5, 0.7, 1.0]), st.booleans()), min_size=1, max_size=200),
    st.sampled_from([0.3, 0.5, 0.7]),
)
def test_whatever_comes_the_runs_it_was_found_by_keep_the_promise(
    runs: list[tuple[float, bool]], threshold: float
) -> None:
    scores, passed = zip(*runs, strict=True)
    rule = cascade_rule(scores, passed, threshold)
    if rule is None:
        return
    stands = np.asarray([rule.decides(score) for score in scores])
    differs = np.asarray([(score >= threshold) != good for score, good in runs])
    assert rule.agreed == pytest.approx(1 - (stands & differs).mean())
    assert rule.agreed >= 0.95
    assert rule.asked == pytest.approx(1 - stands.mean())
    assert rule.low <= threshold <= rule.high
