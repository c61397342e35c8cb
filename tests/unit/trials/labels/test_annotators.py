"""How far people agree with each other."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pandaeval_lab.labels.judge_agreement import annotator_agreement


def test_alpha_is_krippendorffs() -> None:
    """His example of two observers and ten units (Computing Krippendorff's Alpha-Reliability, 2011, A): 0.095."""
    first = [0, 1, 0, 0, 0, 0, 0, 0, 1, 0]
    second = [1, 1, 1, 0, 0, 1, 0, 0, 0, 0]
    found = annotator_agreement([[bool(each) for each in pair] for pair in zip(first, second, strict=True)])
    assert found is not None
    assert (found.runs, found.alike) == (10, 6)
    assert found.alpha == pytest.approx(0.095, abs=5e-4)
    assert found.low is not None
    assert found.high is not None
    assert found.low < 0 < found.high


def test_runs_that_one_person_saw_say_nothing() -> None:
    assert annotator_agreement([[True], [False], []]) is None


def test_where_all_is_passed_nobody_can_tell() -> None:
    found = annotator_agreement([[True, True]] * 20)
    assert found is not None
    assert (found.alike, found.alpha, found.low) == (20, None, None)


def test_people_who_never_differ_are_not_proven_to_agree() -> None:
    found = annotator_agreement([[True, True]] * 10 + [[False, False, False]] * 10)
    assert found is not None
    assert (found.alpha, found.high) == (pytest.approx(1.0), pytest.approx(1.0))
    assert found.low is not None
    assert found.low < 0.95


@given(st.lists(st.lists(st.booleans(), max_size=4), max_size=30))
def test_whatever_comes_alpha_is_at_most_one_and_within_its_interval(verdicts: list[list[bool]]) -> None:
    found = annotator_agreement(verdicts)
    if found is not None and found.alpha is not None:
        assert found.alpha <= 1 + 1e-9
        if found.low is not None and found.high is not None:
            assert found.low <= found.alpha <= found.high + 1e-9
