"""Proof of improved judging."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from pandaeval_collector.analysis.stats.corrected_rate import Labelled, label_rate
from pandaeval_lab.alignment.align import VerdictChange, verdict_change


def change(better: int, worse: int, alike: int = 50) -> VerdictChange:
    before = [False] * better + [True] * worse + [True] * alike
    after = [True] * better + [False] * worse + [True] * alike
    found = verdict_change(before, after, range(len(before)))
    return found


@pytest.mark.parametrize(
    ("better", "worse", "proven"),
    [(0, 0, False), (1, 0, False), (6, 0, False), (7, 0, True), (12, 3, True), (8, 3, False), (0, 20, False)],
)
def test_an_improvement_is_proven_only_by_enough_changed_verdicts(better: int, worse: int, proven: bool) -> None:
    assert change(better, worse).proven is proven


def test_the_gain_is_a_share_of_all_runs() -> None:
    found = change(20, 5, 75)
    assert (found.n, found.before, found.after) == (100, 80, 95)
    assert found.gain == pytest.approx(0.15)
    assert found.low is not None
    assert found.high is not None
    assert 0 < found.low < 0.15 < found.high < 0.25


def test_runs_of_one_session_are_weaker_proof_than_separate_runs() -> None:
    before, after = [False] * 12, [True] * 12
    alone = verdict_change(before, after, range(12))
    together = verdict_change(before, after, [at // 6 for at in range(12)])
    assert alone is not None
    assert together is not None
    assert (alone.proven, together.proven) == (True, False)


@pytest.mark.parametrize(("better", "worse"), [(1, 1), (2, 0), (9, 4)])
def test_the_interval_comes_from_the_rate_among_changed_verdicts(better: int, worse: int) -> None:
    found, changed_verdicts = change(better, worse, 20), [1.0] * better + [0.0] * worse
    rate = label_rate(Labelled.of(changed_verdicts, changed_verdicts))
    of = len(changed_verdicts) / (20 + len(changed_verdicts))
    assert (found.low, found.high) == pytest.approx(((2 * rate.low - 1) * of, (2 * rate.high - 1) * of))
    assert found.n == 20 + len(changed_verdicts)


def test_one_changed_verdict_gives_no_interval() -> None:
    assert change(1, 0, 3) == VerdictChange(4, 3, 4, None, None)
    assert change(0, 0, 2) == VerdictChange(2, 2, 2, None, None)


@given(st.lists(st.tuples(st.booleans(), st.booleans(), st.integers(0, 9)), min_size=1, max_size=60))
def test_the_gain_always_lies_in_its_interval(runs: list[tuple[bool, bool, int]]) -> None:
    before, after, clusters = zip(*runs, strict=True)
    found = verdict_change(before, after, clusters)
    if found.low is not None and found.high is not None:
        assert -1 - 1e-9 <= found.low <= found.gain + 1e-9
        assert found.gain - 1e-9 <= found.high <= 1 + 1e-9
