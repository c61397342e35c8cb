"""How a problem score is fitted: the conditions that the fit has to meet, and rows that nobody had seen."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from math import exp, log

import numpy as np
import pytest
from numpy.typing import NDArray

from pandaeval_collector.analysis.stats.learned import LearnedModel
from pandaeval_lab.labels import learning as problem_model
from pandaeval_lab.labels.learning import (
    FOLDS,
    PENALTIES,
    HeldOutFigures,
    Numbers,
    ProblemModel,
    ShareEstimate,
    auroc,
    auroc_within,
    calibration_error,
    fitted,
    learn,
)

Rows = list[Mapping[str, float]]


def _table(n: int = 60, seed: int = 1, clear: float = 1.0) -> tuple[Numbers, Numbers]:
    """Three columns, of which the first tells something, and whether a row is bad."""
    draw = np.random.default_rng(seed)
    table = draw.normal(size=(n, 3))
    return table, (draw.random(n) < 1 / (1 + np.exp(1.0 - clear * table[:, 0]))).astype(float)


def _rows(n: int = 60, seed: int = 1, clear: float = 1.0) -> tuple[Rows, list[bool], list[str]]:
    table, y = _table(n, seed, clear)
    named = zip(table, np.random.default_rng(seed).integers(1, 30, (n, 3)), strict=True)
    rows: Rows = [
        {"spans": float(size[0]), "calls": float(size[1]), "user_turns": float(size[2]), "told": each[0] * 3 + 5}
        for each, size in named
    ]
    return rows, [bool(each) for each in y], [str(at // 2) for at in range(n)]


def _sigmoid(values: Numbers) -> Numbers:
    return np.asarray(1 / (1 + np.exp(-values)))


class TestLogistic:
    @pytest.mark.parametrize("penalty", [0.5, 10.0, 100.0])
    def test_the_slope_of_the_penalised_likelihood_is_level_where_it_ends(self, penalty: float) -> None:
        """The bias is as good as free: the probabilities add up to the bad rows."""
        table, y = _table()
        weights = problem_model._logistic(table, y, penalty)
        left = _sigmoid(weights[0] + table @ weights[1:]) - y
        assert table.T @ left + penalty * weights[1:] == pytest.approx(np.zeros(3), abs=1e-8)
        assert left.sum() + 1e-6 * weights[0] == pytest.approx(0.0, abs=1e-8)
        assert weights[1] > 0.05

    def test_rows_that_are_told_apart_do_not_break_it(self) -> None:
        table = np.linspace(-40.0, 40.0, 20)[:, None]
        weights = problem_model._logistic(table, (table[:, 0] > 0).astype(float), 1e-3)
        assert np.isfinite(weights).all()
        assert weights[1] > 0.1

    @pytest.mark.parametrize(("value", "chance"), [(0.0, 0.5), (1.0, 1 / (1 + exp(-1))), (-2.0, 1 / (1 + exp(2)))])
    def test_the_sigmoid_of_a_value(self, value: float, chance: float) -> None:
        assert problem_model.sigmoid(np.array([value]))[0] == pytest.approx(chance)

    @pytest.mark.parametrize("sign", [-1.0, 1.0])
    def test_beyond_thirty_a_value_is_as_sure_as_at_thirty(self, sign: float) -> None:
        near, at, far, farthest = problem_model.sigmoid(sign * np.array([29.5, 30.0, 31.0, 1e6]))
        assert at == far == farthest == pytest.approx(1 / (1 + exp(-sign * 30)), rel=1e-12)
        assert near != at


class TestPlatt:
    def test_probabilities_are_fitted_to_targets_short_of_0_and_1(self) -> None:
        """Platt's: of 3 bad and 5 good rows 4/5 and 1/7."""
        scores, y = np.array([2.0, 1.0, -0.5, 0.3, -1.0, -2.0, 0.8, -1.5]), np.array([1.0, 1, 1, 0, 0, 0, 0, 0])
        slope, offset = problem_model._platt(scores, y)
        left = _sigmoid(slope * scores + offset) - np.where(y == 1, 4 / 5, 1 / 7)
        assert left.sum() + 1e-6 * offset == pytest.approx(0.0, abs=1e-8)
        assert (left * scores).sum() + 1e-3 * slope == pytest.approx(0.0, abs=1e-8)
        assert slope > 0.2

    def test_a_score_that_tells_the_wrong_way_is_given_no_weight(self) -> None:
        y = np.r_[np.ones(10), np.zeros(10)]
        slope, offset = problem_model._platt(-y, y)
        assert slope == 0.0
        assert type(offset) is float

    def test_each_fold_is_scaled_by_the_others(self) -> None:
        draw = np.random.default_rng(2)
        y = (draw.random(160) < 0.4).astype(float)
        unseen, folds = y + draw.normal(size=160), draw.integers(0, FOLDS, 160)
        found = problem_model._cross_scaled(unseen, y, folds)
        for fold in range(FOLDS):
            out = folds == fold
            slope, offset = problem_model._platt(unseen[~out], y[~out])
            assert found[out] == pytest.approx(_sigmoid(slope * unseen[out] + offset))


class TestFolds:
    def test_they_share_the_rarer_kind_evenly_and_without_it_the_rows(self) -> None:
        y, groups = np.array([1.0] * 19 + [0.0] * 50), [str(at) for at in range(69)]
        for bad in (y, 1.0 - y):
            folds = problem_model._folds(groups, bad, 0)
            assert sorted(np.bincount(folds[:19], minlength=FOLDS)) == [2] * 5 + [3] * 3
        for alike in (np.zeros(69), np.ones(69)):
            assert sorted(np.bincount(problem_model._folds(groups, alike, 0))) == [8] * 3 + [9] * 5

    def test_where_both_kinds_are_half_the_bad_ones_are_shared(self) -> None:
        y = np.array([1.0] * 20 + [0.0] * 20)
        groups = [f"bad {at}" for at in range(20)] + ["good"] * 20
        folds = problem_model._folds(groups, y, 0)
        assert sorted(np.bincount(folds[:20], minlength=FOLDS)) == [2] * 4 + [3] * 4

    def test_the_largest_group_comes_first(self) -> None:
        """Else it would join others: eight groups fill the folds before the smallest is placed."""
        groups = ["small", *(name for name in "abcdefgh" for _ in range(3))]
        folds = problem_model._folds(groups, np.zeros(25), 0)
        assert sorted(np.bincount(folds)) == [3] * 7 + [4]

    def test_the_seed_deals_them_out(self) -> None:
        groups, y = [str(at) for at in range(64)], np.array([1.0, 0.0] * 32)
        first, again, other = (problem_model._folds(groups, y, seed).tolist() for seed in (0, 0, 1))
        assert first == again != other

    def test_equal_groups_are_dealt_in_the_order_of_the_draw(self) -> None:
        groups = [str(at) for at in range(FOLDS)]
        folds = problem_model._folds(groups, np.zeros(FOLDS), 5)
        assert folds[np.random.default_rng(5).permutation(FOLDS)].tolist() == [*range(FOLDS)]
        assert folds.dtype == np.int64


def _best_penalty(table: Numbers, y: Numbers, folds: NDArray[np.int64]) -> float:
    """By the likelihood of each row that was left out."""

    def loss(penalty: float) -> float:
        found = 0.0
        for fold in {*folds.tolist()}:
            out = folds == fold
            weights = problem_model._logistic(table[~out], y[~out], penalty)
            for chance, bad in zip(_sigmoid(weights[0] + table[out] @ weights[1:]), y[out], strict=True):
                found -= log(chance if bad else 1 - chance)
        return found

    return min(PENALTIES, key=loss)


class TestPenalty:
    @pytest.mark.parametrize(
        ("n", "clear", "seed"), [(40, 0.5, 2), (40, 0.5, 9), (40, 0.5, 11), (80, 0.0, 3), (80, 1.0, 0), (80, 4.0, 1)]
    )
    def test_the_one_is_taken_that_foretells_the_left_out_folds_best(self, n: int, clear: float, seed: int) -> None:
        table, y = _table(n, seed, clear)
        folds = np.random.default_rng(seed).integers(0, FOLDS - 1, n)  # the last one is empty
        assert problem_model._penalty(table, y, folds) == _best_penalty(table, y, folds)

    def test_one_row_of_a_kind_is_enough_to_foretell_by(self) -> None:
        table, folds = _table(40, 0)[0], np.arange(40) % FOLDS
        for seed in range(4):
            y = np.zeros(40)
            y[np.argsort(np.random.default_rng(seed).normal(size=40) - table[:, 0])[:2]] = 1.0
            assert problem_model._penalty(table, y, folds) == _best_penalty(table, y, folds)

    def test_one_row_far_from_all_others_does_not_choose_it(self) -> None:
        draw = np.random.default_rng(7)
        table = draw.normal(size=(160, 2))
        y = (table[:, 0] + draw.normal(size=160) * 0.3 > 0).astype(float)
        folds = np.arange(160) % FOLDS
        assert problem_model._penalty(table, y, folds) == 10.0
        for far in (12.0, 16.0, 20.0, 26.0):
            table[0], y[0] = (far, 0.0), 0.0  # of the other kind than its place says
            assert problem_model._penalty(table, y, folds) == 10.0

    def test_both_ends_are_taken_somewhere(self) -> None:
        """What tells much is held back least, what tells nothing most."""
        taken = []
        for clear in (0.0, 6.0):
            table, y = _table(200, 3, clear)
            taken.append(problem_model._penalty(table, y, np.arange(200) % FOLDS))
        assert taken == [100.0, 10.0]

    def test_a_fold_that_leaves_one_kind_alone_is_passed_over(self) -> None:
        table, folds = np.arange(16.0)[:, None] - 7.5, np.repeat(np.arange(8), 2)
        y = np.r_[np.ones(2), np.zeros(14)]
        others = problem_model._penalty(table, y, np.where(folds == 0, 99, folds))
        assert problem_model._penalty(table, y, folds) == others
        for alike in (np.zeros(16), np.ones(16)):
            assert problem_model._penalty(table, alike, folds) == PENALTIES[0], "no fold tells anything"


class TestNames:
    def test_tools_are_features_where_neither_few_nor_nearly_all_runs_call_them(self) -> None:
        counts = {"calls never": 4, "calls some": 5, "calls a lot": 15, "calls nearly always": 16, "calls ever": 20}
        rows: Rows = [
            {"told": 1.0, "spans": 2.0, **{name: 1.0 for name, count in counts.items() if at < count}}
            for at in range(20)
        ]
        assert problem_model._names(rows) == ("told", "spans", "calls a lot", "calls some")

    def test_a_model_without_measures_is_fitted_on_what_is_told_of_the_rows(self) -> None:
        rows, bad, groups = _rows(60)
        rows = [{**row, "same": 7.0} | ({"calls it": 1.0} if at % 3 else {}) for at, row in enumerate(rows)]
        model = fitted(rows, np.array(bad, dtype=float), groups, 0)
        assert model.names == ("spans", "calls", "user_turns", "told", "same", "calls it")
        table = np.array([[row.get(name, 0.0) for name in model.names] for row in rows])
        assert model.means == pytest.approx(table.mean(axis=0))
        scales = table.std(axis=0)
        assert model.scales == pytest.approx([*scales[:4], 1.0, scales[5]]), "what never differs is left as it is"
        assert (model.slope, model.offset, model.rate) == (1.0, 0.0, pytest.approx(np.mean(bad)))
        y, scaled = np.array(bad, dtype=float), (table - model.means) / model.scales
        penalty = problem_model._penalty(scaled, y, problem_model._folds(groups, y, 1))
        assert [model.bias, *model.weights] == pytest.approx(problem_model._logistic(scaled, y, penalty))
        assert {type(each) for each in (model.bias, *model.means, *model.scales, *model.weights)} == {float}
        assert fitted(rows, y, groups, 0) == model

    def test_the_folds_within_are_drawn_by_the_seed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        seeds, folds = [], problem_model._folds
        monkeypatch.setattr(
            problem_model, "_folds", lambda groups, y, seed: seeds.append(seed) or folds(groups, y, seed)
        )
        rows, bad, groups = _rows(60)
        fitted(rows, np.array(bad, dtype=float), groups, 0)
        fitted(rows, np.array(bad, dtype=float), groups, 7)
        assert seeds == [1, 8], "others than those that rows are left out by"


class TestLearning:
    def test_what_is_told_of_a_model_was_measured_on_rows_that_it_had_not_seen(self) -> None:
        rows, bad, groups = _rows(160, 4, 2.0)
        y = np.array(bad, dtype=float)
        for seed in (0, 3):
            folds, unseen = problem_model._folds(groups, y, seed), np.empty(160)
            for fold in range(FOLDS):
                kept = [at for at in range(160) if folds[at] != fold]
                model = fitted([rows[at] for at in kept], y[kept], [groups[at] for at in kept], seed)
                unseen[folds == fold] = [model.score(rows[at]) for at in range(160) if folds[at] == fold]
            found, told = learn(rows, bad, groups, seed)
            assert found is not None
            assert (found.slope, found.offset) == pytest.approx(problem_model._platt(unseen, y))
            whole = fitted(rows, y, groups, seed)
            assert (found.names, found.means, found.scales) == (whole.names, whole.means, whole.scales)
            assert (found.weights, found.bias, found.rate) == (whole.weights, whole.bias, whole.rate)
            assert told.auroc == auroc((-unseen[y == 0]).tolist(), (-unseen[y == 1]).tolist())
            scaled = problem_model._cross_scaled(unseen, y, folds)
            assert told.calibration_error == calibration_error(scaled, y)
            assert (told.labels, told.bad) == (160, sum(bad))
        assert learn(rows, bad, groups) == learn(rows, bad, groups, 0)

    def test_forty_labels_with_eight_of_either_kind_make_a_model(self) -> None:
        rows, _, groups = _rows(40)
        for bad in (8, 32):
            model, told = learn(rows, [at < bad for at in range(40)], groups)
            assert model is not None
            assert (told.labels, told.bad) == (40, bad)

    def test_one_group_of_all_is_left_out_as_a_whole(self) -> None:
        """Eight groups or fewer leave folds empty, which are passed over."""
        rows, bad, _ = _rows(60, 2)
        model, told = learn(rows, bad, [str(at % 3) for at in range(60)])
        assert model is not None
        assert told.auroc is not None
        assert 0.0 <= told.auroc.value <= 1.0


SPANS = [1.0, 2.0, 3.0, 11.0, 12.0, 13.0, 21.0, 22.0, 23.0]
BAD = np.array([0.0, 0, 1, 0, 1, 1, 1, 1, 0])
UNSEEN = np.array([0.1, 0.2, 0.3, 0.35, 0.3, 0.4, 0.5, 0.6, 0.4])


class TestEvidence:
    def test_scores_are_compared_among_units_of_like_length(self) -> None:
        rows: Rows = [{"spans": each, "calls": 30 - each, "user_turns": 1.0} for each in SPANS]
        found = problem_model._evidence(rows, BAD, UNSEEN, np.full(9, 0.5))
        good_and_bad = [([-0.1, -0.2], [-0.3]), ([-0.35], [-0.3, -0.4]), ([-0.4], [-0.5, -0.6])]
        assert found.same_length == auroc_within(good_and_bad)
        assert found.auroc == auroc([-0.1, -0.2, -0.35, -0.4], [-0.3, -0.3, -0.4, -0.5, -0.6])
        assert (found.labels, found.bad, found.calibration_error) == (9, 5, pytest.approx(5 / 9 - 0.5))

    @pytest.mark.parametrize(
        ("calls", "user_turns", "best", "name"),
        [
            ([0.0] * 9, [0.0] * 9, 4 / 6, "spans"),
            ([1.0, 1, 2, 1, 2, 2, 2, 2, 1], [0.0] * 9, 1.0, "calls"),
            ([0.0] * 9, [1.0, 1, 0, 1, 0, 0, 0, 0, 1], 1.0, "user_turns"),
        ],
    )
    def test_the_baseline_is_the_length_that_tells_most_in_either_direction(
        self, calls: list[float], user_turns: list[float], best: float, name: str
    ) -> None:
        rows: Rows = [
            {"spans": spans, "calls": called, "user_turns": turns}
            for spans, called, turns in zip(SPANS, calls, user_turns, strict=True)
        ]
        found = problem_model._evidence(rows, BAD, UNSEEN, np.full(9, 0.5))
        assert (found.baseline, found.baseline_name) == (pytest.approx(best), name)

    @pytest.mark.parametrize(
        ("low", "baseline", "refused"),
        [(0.51, 0.5, False), (0.5, 0.4, True), (0.6, 0.6, True), (0.61, 0.6, False), (0.49, 0.3, True)],
    )
    def test_a_model_is_used_that_is_surely_better_than_length_and_chance(
        self, low: float, baseline: float, refused: bool
    ) -> None:
        same = ShareEstimate(0.7, low, 0.8, 50)
        found = HeldOutFigures(50, 20, same, same, baseline, "calls", 0.1).refusal
        words = (
            f"nothing certain is learned: among runs of equal length it is right in 0.70 [{low:.2f}, 0.80], and calls "
            f"alone in {baseline:.2f}: label more runs"
        )
        assert found == (words if refused else "")


class TestCalibration:
    @pytest.mark.parametrize(("n", "bins"), [(1, 1), (19, 1), (39, 1), (40, 2), (59, 2), (60, 3), (200, 10), (400, 10)])
    def test_it_is_over_bins_of_twenty_and_more_of_which_there_are_ten_at_most(self, n: int, bins: int) -> None:
        chances, y = np.linspace(0.0, 1.0, n), (np.random.default_rng(n).random(n) < 0.3).astype(float)
        parts = np.array_split(np.arange(n), bins)
        expected = sum(abs(chances[part].mean() - y[part].mean()) * len(part) for part in parts) / n
        mixed = np.random.default_rng(1).permutation(n)
        assert calibration_error(chances[mixed], y[mixed]) == pytest.approx(expected)

    def test_equal_probabilities_stay_in_their_order(self) -> None:
        chances, y = np.tile([0.75, 0.25, 0.5], 100), np.tile([0.0, 1.0, 1.0, 0.0, 0.0, 1.0, 1.0, 1.0, 0.0, 0.0], 30)
        y[200:] = 1.0
        order = sorted(range(300), key=lambda at: chances[at])
        parts = np.array_split(np.array(order), 10)
        expected = sum(abs(chances[part].mean() - y[part].mean()) for part in parts) / 10
        assert calibration_error(chances, y) == pytest.approx(expected)


MODEL = ProblemModel(
    names=("spans", "calls refund", "worst response", "user_turns", "calls look_up"),
    means=(2.0, 0.5, 0.75, 1.0, 0.25),
    scales=(2.0, 0.5, 0.25, 1.0, 0.5),
    weights=(0.5, -1.0, -0.25, 0.125, 2.0),
    bias=-0.5,
    slope=2.0,
    offset=0.25,
    rate=0.3,
)


class TestModel:
    def test_a_score_is_the_bias_and_each_weight_times_a_standard_score(self) -> None:
        row = {"spans": 6.0, "calls refund": 1.0, "worst response": 0.5, "user_turns": 3.0}
        assert MODEL._parts(row) == [1.0, -1.0, 0.25, 0.25, -1.0], "what a row has not is 0"
        assert MODEL.score(row) == -1.0
        assert MODEL.probability(row) == pytest.approx(1 / (1 + exp(1.75)))
        assert type(MODEL.probability(row)) is float

    @pytest.mark.parametrize(
        ("row", "reasons"),
        [
            ({}, ("refund was not called", "worst response score low")),
            (
                {"spans": 6.0, "worst response": 0.5, "user_turns": 5.0, "calls look_up": 1.0},
                ("look_up was called", "many steps", "refund was not called"),
            ),
            ({"spans": 2.0, "calls refund": 1.0, "worst response": 1.0, "user_turns": 1.0}, ()),
            ({"calls refund": 1.0, "worst response": 0.75, "user_turns": 1.1}, ()),
            ({"calls refund": 1.0, "worst response": 0.75, "user_turns": 1.25}, ("many user turns",)),
        ],
    )
    def test_three_reasons_at_most_that_speak_for_a_problem_the_weightiest_first(
        self, row: Mapping[str, float], reasons: tuple[str, ...]
    ) -> None:
        assert MODEL.reasons(row) == reasons

    @pytest.mark.parametrize(("value", "reasons"), [(1.0, ()), (1.01, ("it handed over",))])
    def test_what_adds_a_twentieth_or_less_to_the_log_odds_is_no_reason(
        self, value: float, reasons: tuple[str, ...]
    ) -> None:
        model = ProblemModel(("handed_over",), (0.0,), (1.0,), (0.025,), 0.0, 2.0, 0.0, 0.5)
        assert model.reasons({"handed_over": value}) == reasons

    def test_of_equal_reasons_the_last_by_name_comes_first(self) -> None:
        ones = (1.0, 1.0)
        model = ProblemModel(("calls a", "calls b"), (0.0, 0.0), ones, ones, 0.0, 1.0, 0.0, 0.5)
        assert model.reasons({"calls a": 1.0, "calls b": 1.0}) == ("b was called", "a was called")

    def test_it_reads_back(self) -> None:
        held = asdict(MODEL)
        assert _read(held) == MODEL
        whole = {"bias": 1, "names": ["spans"], "means": [1], "scales": [2], "weights": [3]}
        assert _read(held | whole) == ProblemModel(("spans",), (1.0,), (2.0,), (3.0,), 1.0, 2.0, 0.25, 0.3)

    @pytest.mark.parametrize("name", ["names", "means", "scales", "weights", "bias", "slope", "offset", "rate"])
    def test_without_one_of_its_fields_it_is_none(self, name: str) -> None:
        held = asdict(MODEL)
        del held[name]
        with pytest.raises(ValueError, match=name):
            _read(held)


def _read(model: Mapping[str, object]) -> ProblemModel:
    about = {"format": 1, "level": "session", "agent": "desk", "source": "people", "metric": "session.goal_completion"}
    evidence = {"labels": 80, "auroc": None, "same_length": None}
    return LearnedModel.of_json(json.dumps({**about, "model": model, "evidence": evidence})).model
