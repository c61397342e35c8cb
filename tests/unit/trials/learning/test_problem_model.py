"""A problem score that is fitted on labels."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pandaeval_collector.analysis.stats.learned import LearnedModel, ProblemModel
from pandaeval_collector.analysis.stats.problem_features import Course, session_features
from pandaeval_lab.labels.learning import (
    LEAST_LABELS,
    LEAST_OF_A_KIND,
    HeldOutFigures,
    LabelledRuns,
    _folds,
    calibration_error,
    keep,
    learn,
)

Rows = tuple[list[Mapping[str, float]], list[bool], list[str]]


def sample(n: int, seed: int = 0, clear: float = 2.0) -> Rows:
    """Sessions of random length: the more refusals, the likelier bad; nothing else matters."""
    draw, rows, bad = np.random.default_rng(seed), [], []
    for _ in range(n):
        turns = int(draw.integers(2, 12))
        refusals = int(draw.binomial(turns, 0.3))
        chance = 1 / (1 + np.exp(-clear * (refusals / turns - 0.3) * 6))
        traces = [Course(spans=3, users=1, answers=1, calls=1, tools=("look_up",))] * (turns - 1)
        rows.append(session_features([*traces, Course(spans=3, users=1, answers=1, refusals=refusals)], []))
        bad.append(bool(draw.random() < chance))
    return rows, bad, [str(at) for at in range(n)]


class TestLearning:
    def test_what_can_be_learned_is(self) -> None:
        model, evidence = learned()
        assert evidence.refusal == ""
        assert evidence.same_length is not None
        assert evidence.same_length.low > 0.6
        rows, bad, _ = sample(300, seed=1)
        chances = np.asarray([model.probability(row) for row in rows])
        assert chances[np.asarray(bad)].mean() > chances[~np.asarray(bad)].mean() + 0.2
        assert calibration_error(chances, np.asarray(bad, dtype=float)) < 0.1

    def test_why_is_told(self) -> None:
        model, (rows, _, _) = learned()[0], sample(300)
        likely = max(rows, key=model.probability)
        assert "many refusals" in model.reasons(likely)
        assert "many refusals" not in model.reasons(min(rows, key=model.probability))

    def test_where_there_is_nothing_to_learn_it_says_so(self) -> None:
        refused = 0
        for seed in range(5):
            rows, bad, groups = sample(48, seed)
            shuffled = [bad[at] for at in np.random.default_rng(seed).permutation(len(bad))]
            refused += bool(learn(rows, shuffled, groups)[1].refusal)
        assert refused == 5

    def test_length_alone_is_nothing_learned(self) -> None:
        draw = np.random.default_rng(0)
        lengths = draw.integers(1, 40, 200)
        rows = [session_features([Course(spans=int(n), users=1, answers=1)], []) for n in lengths]
        bad = [bool(draw.random() < n / 40) for n in lengths]
        assert "equal length" in learn(rows, bad, [str(at) for at in range(200)])[1].refusal

    @pytest.mark.parametrize(
        ("labels", "bad"), [(LEAST_LABELS - 1, 20), (100, LEAST_OF_A_KIND - 1), (100, 101 - LEAST_OF_A_KIND)]
    )
    def test_few_labels_make_no_model(self, labels: int, bad: int) -> None:
        rows, _, groups = sample(labels)
        model, evidence = learn(rows, [at < bad for at in range(labels)], groups)
        assert model is None
        assert f"{labels} labels ({bad} bad): it takes 40, 8 of either kind" in evidence.refusal
        assert (evidence.labels, evidence.bad, evidence.auroc, evidence.same_length) == (labels, bad, None, None)
        assert (evidence.baseline, evidence.baseline_name, evidence.calibration_error) == (0.5, "", 1.0)

    def test_runs_of_one_group_are_never_on_both_sides(self) -> None:
        draw = np.random.default_rng(3)
        groups = [str(draw.integers(0, 30)) for _ in range(200)]
        folds = _folds(groups, draw.random(200) < 0.3, 0)
        assert all(len({folds[at] for at in range(200) if groups[at] == group}) == 1 for group in groups)
        assert max(np.bincount(folds)) <= 2 * min(np.bincount(folds))

    def test_the_same_labels_make_the_same_model(self) -> None:
        assert learn(*sample(40)) == learn(*sample(40))


@cache
def learned() -> tuple[ProblemModel, HeldOutFigures]:
    model, evidence = learn(*sample(300))
    assert model is not None
    return model, evidence


RUNS = LabelledRuns("session", "desk", "people", "session.goal_completion")


class TestFile:
    def test_it_reads_back(self, tmp_path: Path) -> None:
        model, evidence = learned()
        for measured in (evidence, replace(evidence, auroc=None, same_length=None)):
            text = keep(tmp_path, RUNS, model, measured).read_text()
            assert LearnedModel.of_json(text) == LearnedModel.of_json(text.encode())
            figures = measured.labels, measured.auroc, measured.same_length
            about = "session", "desk", "people", "session.goal_completion"
            assert LearnedModel.of_json(text) == LearnedModel(*about, model, *figures)

    def test_it_is_written_for_people_too(self, tmp_path: Path) -> None:
        lines = keep(tmp_path, RUNS, *learned()).read_text().splitlines(keepends=True)
        version = learned()[0].version
        assert lines[:3] == ["{\n", ' "format": 1,\n', f' "version": "{version}",\n']
        assert lines[-1] == "}\n"
        assert re.fullmatch("[0-9a-f]{8}", version)

    def test_one_of_another_version_says_what_to_do(self) -> None:
        with pytest.raises(ValueError, match=r"^it has format 2, and this version reads 1: learn anew$"):
            LearnedModel.of_json('{"format": 2}')
        with pytest.raises(ValueError, match=r"^no model that `pandaeval learn` wrote \('level'\)$"):
            LearnedModel.of_json('{"format": 1}')

    def test_names_are_read_as_texts(self, tmp_path: Path) -> None:
        held = json.loads(keep(tmp_path, RUNS, *learned()).read_text()) | {"agent": 7}
        assert LearnedModel.of_json(json.dumps(held)).agent == "7"

    @pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": 2}', '{"format": 1, "level": "session"}'])
    def test_anything_else_is_refused(self, text: str) -> None:
        with pytest.raises(ValueError):
            LearnedModel.of_json(text)

    def test_the_version_is_that_of_what_probabilities_depend_on(self) -> None:
        model, _ = learned()
        assert replace(model, bias=0.0).version != model.version


@given(
    st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=5),
    st.floats(-50, 50),
    st.floats(0, 10),
    st.floats(-10, 10),
    st.floats(-1e6, 1e6),
)
def test_a_probability_is_one(weights: list[float], bias: float, slope: float, offset: float, value: float) -> None:
    names = tuple(f"f{at}" for at in range(len(weights)))
    ones = (1.0,) * len(weights)
    model = ProblemModel(names, ones, ones, tuple(weights), bias, slope, offset, 0.5)
    assert 0.0 <= model.probability(dict.fromkeys(names, value)) <= 1.0
