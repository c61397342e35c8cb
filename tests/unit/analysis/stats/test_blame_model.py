"""The conditional logit that tells which step broke a run."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pandaeval_collector.analysis.stats.blame_model import BlameModel, BlameRun, fitted, shipped

RUNS = [BlameRun([{"fails": float(at == place)} for at in range(4)], frozenset({place})) for place in (0, 1, 2, 3) * 5]
rows_ = st.lists(st.dictionaries(st.sampled_from(["fails", "late"]), st.floats(0, 5)), min_size=1, max_size=6)


def test_what_marks_the_breaking_step_weighs_for_it() -> None:
    model = fitted(RUNS, 0.1)
    chances = model.probabilities([{}, {"fails": 1.0}, {}])
    assert chances[1] > 0.8
    assert model.reasons({"fails": 1.0}) == ["fails"]
    assert model.reasons({}) == []


def test_with_one_feature_it_is_the_closed_form() -> None:
    # Of two steps the marked one broke three runs of four: without a penalty the odds are three to one.
    marked = [{"m": 1.0}, {"m": 0.0}]
    runs = [BlameRun(marked, frozenset({int(at % 4 == 0)})) for at in range(40)]
    assert fitted(runs, 1e-9).probabilities(marked) == pytest.approx([0.75, 0.25], abs=1e-4)


def test_a_weight_counts_as_that_many_runs() -> None:
    marked = [{"m": 1.0}, {"m": 0.0}]
    runs = [BlameRun(marked, frozenset({0}), weight=3.0) for _ in range(5)]
    runs += [BlameRun(marked, frozenset({1})) for _ in range(5)]
    assert fitted(runs, 1e-9).probabilities(marked) == pytest.approx([0.75, 0.25], abs=1e-4)


def test_any_of_several_breaking_steps_is_right() -> None:
    rows = [{"m": 1.0}, {"m": 1.0}, {"m": 0.0}]
    model = fitted([BlameRun(rows, frozenset({0, 1}))] * 10, 0.5)
    first, second, third = model.probabilities(rows)
    assert first == pytest.approx(second)
    assert first > third


@given(rows_)
def test_probabilities_add_up_to_one(rows: list[dict[str, float]]) -> None:
    assert math.fsum(fitted(RUNS, 1.0).probabilities(rows)) == pytest.approx(1.0)


@given(rows_)
def test_fewer_candidates_keep_their_odds(rows: list[dict[str, float]]) -> None:
    model = shipped()
    whole, part = model.probabilities([*rows, {"fails": 1.0}]), model.probabilities(rows)
    total = math.fsum(whole[:-1])
    assert [each / total for each in whole[:-1]] == pytest.approx(part, rel=1e-6)


def test_it_is_read_as_it_was_written() -> None:
    model = fitted(RUNS, 1.0)
    assert BlameModel.of_json(model.to_json()) == model
    assert len(model.version) == 8


def test_the_shipped_one_says_what_it_was_fitted_on() -> None:
    model = shipped()
    assert "tests/bench/blame.py --fit" in model.source
    assert "human labels" in model.source
    assert 0.5 < model.sure < 1.0


def test_no_run_is_no_model() -> None:
    with pytest.raises(ValueError, match="no run"):
        fitted([], 1.0)
