"""The conditional logit that tells which step broke a run."""

from __future__ import annotations

import json
import math
import random
from dataclasses import asdict, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pandaeval_collector.analysis.stats import blame_model
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


MODEL = BlameModel(
    names=("fails", "late", "long"), means=(0.5, 2.0, 1.0), scales=(0.5, 4.0, 2.0), weights=(1.5, -0.5, 0.25), sure=0.6
)


def _mixed() -> list[BlameRun]:
    """Runs of several lengths, weights and numbers of breaking steps; ``seldom`` is in four of them, ``often`` in 5."""
    draw, runs = random.Random(5), []
    for at in range(24):
        rows = [{"fails": float(draw.random() < 0.4), "late": draw.random() * step} for step in range(2 + at % 4)]
        if at < 4:
            rows[0]["seldom"] = 1.0
        if at < 5:
            rows[-1]["often"] = rows[0]["often"] = 2.0
        broke = max(range(len(rows)), key=lambda step: rows[step]["fails"] + draw.random())
        runs.append(BlameRun(rows, frozenset({broke, 0} if at % 3 == 0 else {broke}), 1.0 + at % 2))
    return runs


class TestModel:
    def test_a_step_weighs_the_sum_of_its_standard_features(self) -> None:
        rows = [{"fails": 1.0, "late": 6.0, "other": 9.0}, {}, {"long": 3.0}]
        weighs = [1.5 - 0.5 - 0.125, -1.5 + 0.25 - 0.125, -1.5 + 0.25 + 0.25]
        total = sum(map(math.exp, weighs))
        assert MODEL.probabilities(rows) == pytest.approx([math.exp(each) / total for each in weighs])
        assert {type(each) for each in MODEL.probabilities(rows)} == {float}

    def test_weights_that_are_far_apart_or_large_are_no_trouble(self) -> None:
        model = BlameModel(("a",), (0.0,), (1.0,), (1.0,))
        assert model.probabilities([{"a": 5000.0}, {"a": 5000.0}, {"a": -5000.0}]) == [0.5, 0.5, 0.0]

    @pytest.mark.parametrize(
        ("row", "reasons"),
        [
            ({}, []),
            ({"fails": 1.0, "late": 1.0, "long": 4.0}, ["fails", "long"]),
            ({"fails": 0.1, "late": -16.0, "long": 1.0}, ["late", "fails", "long"]),
            ({"long": 0.8}, []),
            ({"long": 0.81}, ["long"]),
        ],
    )
    def test_reasons_speak_for_a_step_the_weightiest_first(self, row: dict[str, float], reasons: list[str]) -> None:
        assert MODEL.reasons(row) == reasons

    def test_of_equal_reasons_the_last_by_name_comes_first(self) -> None:
        model = BlameModel(("a", "b"), (0.0, 0.0), (1.0, 1.0), (1.0, 1.0))
        assert model.reasons({"a": 1.0, "b": 1.0}) == ["b", "a"]

    def test_whole_numbers_are_read_as_any(self) -> None:
        held = {"names": ["a"], "means": [0], "scales": [2], "weights": [1], "sure": 0, "source": "by hand"}
        read = BlameModel.of_json(json.dumps(held))
        assert read == BlameModel(("a",), (0.0,), (2.0,), (1.0,), 0.0, "by hand")
        assert read.to_json() == json.dumps({**asdict(read)}, indent=1) + "\n"
        assert type(read.sure) is type(read.means[0]) is float

    def test_by_itself_no_step_is_named(self) -> None:
        """Until somebody says from which probability on."""
        model = fitted(RUNS, 1.0)
        assert (model.sure, model.source) == (1.0, "")
        assert BlameRun([{}], frozenset({0})).weight == 1.0


class TestFit:
    def test_features_are_those_of_five_runs_and_standardised(self) -> None:
        runs = _mixed()
        model = fitted(runs, 1.0)
        assert model.names == ("fails", "late", "often")
        table = np.array([[row.get(name, 0.0) for name in model.names] for run in runs for row in run.rows])
        assert model.means == tuple(round(each, 6) for each in table.mean(axis=0).tolist())
        assert model.scales == tuple(round(each, 6) for each in table.std(axis=0).tolist())

    def test_what_never_differs_is_left_as_it_is(self) -> None:
        model = fitted([BlameRun([{"same": 3.0, "fails": 1.0}, {"same": 3.0}], frozenset({0}))] * 6, 1.0)
        assert (model.names, model.means, model.scales) == (("fails", "same"), (0.5, 3.0), (0.5, 1.0))
        assert model.weights[1] == 0.0

    @pytest.mark.parametrize("penalty", [0.3, 5.0])
    def test_the_slope_of_the_penalised_likelihood_is_level_where_it_ends(self, penalty: float) -> None:
        runs, h = _mixed(), 1e-3
        model = fitted(runs, penalty)

        def loss(weights: list[float]) -> float:
            found = penalty / 2 * sum(each**2 for each in weights)
            for run in runs:
                chances = replace(model, weights=tuple(weights)).probabilities(run.rows)
                found -= run.weight * math.log(sum(chances[at] for at in run.broke))
            return found

        for at in range(3):
            less, more = ([each + step * (place == at) for place, each in enumerate(model.weights)] for step in (-h, h))
            assert (loss(more) - loss(less)) / (2 * h) == pytest.approx(0.0, abs=5e-4)
        assert abs(model.weights[0]) > 0.1

    def test_the_loss_is_the_penalty_and_what_was_not_foretold(self) -> None:
        runs = _mixed()
        tables = [np.array([[row["fails"], row["late"]] for row in run.rows]) for run in runs]
        weights = np.array([0.5, -1.25])
        expected = 3.0 / 2 * (0.25 + 1.5625)
        for run, table in zip(runs, tables, strict=True):
            weighs = [math.exp(0.5 * fails - 1.25 * late) for fails, late in table]
            expected -= run.weight * math.log(sum(weighs[at] for at in run.broke) / sum(weighs))
        assert blame_model._loss(tables, runs, 3.0, weights) == pytest.approx(expected)

    def test_a_run_that_can_hardly_be_lowers_no_fit_to_nothing(self) -> None:
        tables, runs = [np.array([[0.0], [5000.0]])], [BlameRun([{}, {}], frozenset({0}))]
        assert blame_model._loss(tables, runs, 0.0, np.array([1.0])) == pytest.approx(300 * math.log(10))

    def test_steps_that_lead_too_far_are_halved(self) -> None:
        """The fifth whole step of Newton's would make this fit more than twice as bad."""
        often, once = np.array([[0.0, -5.0], [0.0, -1.0], [0.0, 0.0]]), np.array([[1.0, -1.0], [16.0, 6.0], [2.0, 3.0]])
        runs, h = [BlameRun([{}] * 3, frozenset({2}), 10.0), BlameRun([{}] * 3, frozenset({0}))], 1e-4
        weights = blame_model._fit([often, once], runs, 0.01)
        for move in np.eye(2) * h:
            more, less = (blame_model._loss([often, once], runs, 0.01, weights + each) for each in (move, -move))
            assert (more - less) / (2 * h) == pytest.approx(0.0, abs=1e-3)

    def test_of_runs_too_few_to_have_a_feature_in_common_every_step_is_as_likely(self) -> None:
        model = fitted(RUNS[:1], 1.0)
        assert (model.names, model.weights) == ((), ())
        assert model.probabilities([{"fails": 1.0}, {}]) == [0.5, 0.5]
