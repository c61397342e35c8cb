"""Failure rates of two groups."""

from __future__ import annotations

from pandaeval_collector.show.view.rates import compared


def test_the_difference_has_newcombes_interval() -> None:
    """56 of 70 against 48 of 80: Newcombe (1998), method 10."""
    line = compared((48, 80), (56, 70))
    assert line == (
        "a: 48 of 80 runs failed (0.600), b: 56 of 70 (0.800); difference +0.200 (+0.052 to +0.334); b is worse"
    )
    assert "b is better" in compared((56, 70), (48, 80))
    assert not compared((5, 10), (5, 10)).endswith(("worse", "better"))


def test_a_group_without_runs_is_said_to_have_none() -> None:
    assert compared((0, 0), (1, 4)) == "a has 0 runs, b has 4: a comparison needs runs in both"
