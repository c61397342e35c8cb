"""Only configured thresholds fail a run, and silence never passes."""

from __future__ import annotations

from pandaeval_collector.cli._gates import missed

KEY = "trace.coherence"


def test_the_mean_counts() -> None:
    outcomes = {(KEY, "scored", ""): 4}
    assert missed({KEY: 0.5}, 0.2, outcomes, {KEY: 0.5 - 1e-12}) == []
    assert "below" in missed({KEY: 0.5}, 0.2, outcomes, {KEY: 0.49})[0]


def test_defaults_never_fail() -> None:
    assert missed({}, 0.2, {(KEY, "scored", ""): 4}, {KEY: 0.0}) == []


def test_zero_is_a_threshold() -> None:
    assert missed({KEY: 0.0}, 0.2, {(KEY, "unscored", "judge_failed"): 1}, {})


def test_nothing_scored_fails_unless_all_is_assumed_or_not_applicable() -> None:
    assert missed({KEY: 0.5}, 0.2, {(KEY, "unscored", "no_content"): 3}, {})
    assert missed({KEY: 0.5}, 0.2, {(KEY, "assumed", ""): 3}, {}) == []
    assert missed({KEY: 0.5}, 0.2, {}, {}) == []


def test_too_many_unscored_fail() -> None:
    outcomes = {(KEY, "scored", ""): 7, (KEY, "unscored", "judge_failed"): 3}
    assert "unscored" in missed({KEY: 0.5}, 0.2, outcomes, {KEY: 0.9})[0]
    assert missed({KEY: 0.5}, 0.3, outcomes, {KEY: 0.9}) == []
