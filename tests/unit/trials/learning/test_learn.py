"""``pandaeval learn``, what it writes, and what scores with it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from pandaeval_collector.analysis.stats.learned import LearnedModel, ProblemModel
from pandaeval_collector.base.errors import UserError
from pandaeval_collector.cli import app
from pandaeval_collector.config import load
from pandaeval_collector.runs.settings import evaluator
from pandaeval_lab.labels.learning import (
    PEOPLE,
    HeldOutFigures,
    LabelledRuns,
    RunVerdict,
    keep,
    labelled_runs,
    of_people,
)
from pandaeval_otel.wire.labels import HumanLabel
from support.learnable import AGENT, METRIC, sessions, write


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, [*map(str, arguments)], env={"COLUMNS": "200"})


@pytest.fixture(scope="module")
def learned(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Result]:
    """The folder with traces, labels and models, and what the command said."""
    folder = tmp_path_factory.mktemp("learned")
    traces, labels = write(folder, list(sessions(120)))
    return folder, run("learn", traces, "--labels", labels, "-o", folder / "models", "--format", "json")


class TestCommand:
    def test_it_learns_what_there_is(self, learned: tuple[Path, Result]) -> None:
        folder, result = learned
        assert result.exit_code == 0, result.output
        told = json.loads(result.stdout)
        assert (told["agent"], told["metric"], told["labels"], told["refusal"]) == (AGENT, METRIC, 120, "")
        assert told["same_length"]["low"] > 0.5
        assert kept(folder / "models").labels == 120

    def test_scores_of_other_runs_follow(self, learned: tuple[Path, Result], tmp_path: Path) -> None:
        folder, _ = learned
        traces, _ = write(tmp_path, list(sessions(20, seed=1)))
        (tmp_path / "c.yaml").write_text(f"learn:\n  folder: {folder / 'models'}\n")
        found = _scores(run("evaluate", traces, "--config", tmp_path / "c.yaml", "--format", "json"), "problem")
        assert len(found) == 20
        version = kept(folder / "models").model.version
        for each in found:
            assert each["metadata"]["learned"]["version"] == version
            assert each["score"] == pytest.approx(1 - each["metadata"]["problem_probability"], abs=1e-4)
            assert each["success"] == (each["score"] >= 0.5)
            assert (each["label"] == "likely_problem") is (each["score"] < 0.5)
        assert any("refusal" in each["reason"] for each in found if each["label"] == "likely_problem")

    def test_another_model_gives_other_ids(self, learned: tuple[Path, Result], tmp_path: Path) -> None:
        folder, _ = learned
        traces, labels = write(tmp_path, list(sessions(60, seed=5)))
        assert run("learn", traces, "--labels", labels, "-o", tmp_path / "models").exit_code == 0
        ids = []
        for models in (folder / "models", tmp_path / "models", folder / "models"):
            (tmp_path / "c.yaml").write_text(f"learn:\n  folder: {models}\n")
            found = run("evaluate", traces, "--config", tmp_path / "c.yaml", "--format", "json")
            ids.append({each["id"] for each in _scores(found, "problem")})
        assert ids[0] == ids[2]
        assert not ids[0] & ids[1]

    def test_without_a_model_nothing_is_said(self, tmp_path: Path) -> None:
        traces, _ = write(tmp_path, list(sessions(3)))
        (tmp_path / "c.yaml").write_text(f"learn:\n  folder: {tmp_path / 'none'}\n")
        result = run("evaluate", traces, "--config", tmp_path / "c.yaml", "--format", "json")
        assert _scores(result, "goal_completion") == _scores(result, "problem") == []
        assert _scores(result, "response") != []

    def test_traces_without_a_session_have_a_model_of_their_own(self, tmp_path: Path) -> None:
        traces, labels = write(tmp_path, list(sessions(60, named=False)), "trace.task_completion")
        (tmp_path / "c.yaml").write_text(f"learn:\n  folder: {tmp_path / 'models'}\n")
        result = run("learn", traces, "--labels", labels, "--config", tmp_path / "c.yaml")
        assert result.exit_code == 0, result.output
        found = run("evaluate", traces, "--config", tmp_path / "c.yaml", "--format", "json")
        assert [each["level"] for each in _scores(found, "problem")] == ["trace"] * 60

    def test_too_few_labels_make_no_model(self, tmp_path: Path) -> None:
        traces, labels = write(tmp_path, list(sessions(20)))
        result = run("learn", traces, "--labels", labels, "-o", tmp_path / "models")
        assert result.exit_code == 1
        assert f"{AGENT}: 20 labels" in result.output
        assert "it takes 40, 8 of either kind" in result.output
        assert not (tmp_path / "models").exists()

    def test_a_dry_run_writes_nothing(self, tmp_path: Path) -> None:
        traces, labels = write(tmp_path, list(sessions(120)))
        result = run("learn", traces, "--labels", labels, "-o", tmp_path / "models", "--dry-run")
        assert (result.exit_code, (tmp_path / "models").exists()) == (0, False)
        assert "would be written" in result.output

    def test_labels_of_other_runs_are_told(self, tmp_path: Path) -> None:
        traces, _ = write(tmp_path, list(sessions(3)))
        (tmp_path / "labels.csv").write_text(f"session_id,metric,label\nother,{METRIC},pass\n")
        result = run("learn", traces, "--labels", tmp_path / "labels.csv")
        assert result.exit_code == 1
        assert "1 verdict, and none about a session" in result.output

    @pytest.mark.parametrize(
        ("arguments", "said"), [(["some.jsonl"], "--labels FILE, or --store FOLDER"), ([], "--labels FILE")]
    )
    def test_what_is_missing_is_named(self, arguments: Sequence[str], said: str) -> None:
        result = run("learn", *arguments)
        assert result.exit_code == 2
        assert said in result.stderr


MODEL = ProblemModel(("refusals",), (0.0,), (1.0,), (2.0,), bias=-1.0, slope=1.0, offset=0.0, rate=0.25)
FIGURES = HeldOutFigures(80, 20, None, None, 0.5, "", 1.0)


def runs(agent: str) -> LabelledRuns:
    return LabelledRuns("session", agent, PEOPLE, METRIC)


def kept(folder: Path) -> LearnedModel:
    """The only model in a folder."""
    [file] = folder.iterdir()
    return LearnedModel.of_json(file.read_text())


USERS = {"a": "ann"}


def facts(**agents: str) -> Callable[[str, str], Sequence[Mapping[str, Any]]]:
    """Runs by id, each of one trace."""
    course = [0] * 21 + [[]]
    return lambda level, unit: [{"agent": agents[unit], "signals": {}, "course": course}] if unit in agents else []


class TestLabelledRuns:
    def test_the_word_of_most_counts(self) -> None:
        said = [("a", True), ("a", False), ("a", False), ("b", True), ("b", False), ("c", True)]
        labels = [HumanLabel(unit, METRIC, None, passed, str(at)) for at, (unit, passed) in enumerate(said)]
        assert [(each.unit, each.bad) for each in of_people(labels)] == [("a", True), ("c", False)]

    @pytest.mark.parametrize(("score", "bad"), [(0.49, True), (0.5, False), (1.0, False)])
    def test_a_score_passes_from_the_middle_on(self, score: float, bad: bool) -> None:
        assert [each.bad for each in of_people([HumanLabel("a", METRIC, score, None)])] == [bad]

    def test_of_each_agent_the_metric_with_most_verdicts_is_learned(self) -> None:
        verdicts = [RunVerdict(unit, METRIC, PEOPLE, True) for unit in "ab"]
        verdicts += [
            RunVerdict("a", "session.helpful", PEOPLE, False),
            RunVerdict("c", "session.helpful", PEOPLE, False),
        ]
        found = labelled_runs(facts(a="one", b="one", c="two"), USERS, verdicts)
        assert [(each.agent, each.metric, each.bad) for each in found] == [
            ("one", METRIC, [True, True]),
            ("two", "session.helpful", [False]),
        ]

    def test_unknown_runs_other_levels_and_other_agents_are_left_out(self) -> None:
        verdicts = [RunVerdict("x", METRIC, PEOPLE, True), RunVerdict("a", "turn.relevance", PEOPLE, True)]
        assert labelled_runs(facts(a="one"), USERS, verdicts) == []
        assert labelled_runs(facts(a="one"), USERS, [RunVerdict("a", METRIC, PEOPLE, True)], agent="two") == []

    def test_runs_of_one_user_are_one_group(self) -> None:
        verdicts = [RunVerdict(unit, METRIC, PEOPLE, True) for unit in "ab"]
        assert labelled_runs(facts(a="one", b="one"), USERS, verdicts)[0].groups == ["ann", "b"]


def test_names_of_agents_cannot_leave_the_folder(tmp_path: Path) -> None:
    assert keep(tmp_path, runs("../../etc/x y"), MODEL, FIGURES).parent == tmp_path
    assert keep(tmp_path, runs(""), MODEL, FIGURES).name == "session-unnamed.json"


def test_a_model_replaces_that_of_its_agent(tmp_path: Path) -> None:
    path = keep(tmp_path / "new", runs(AGENT), replace(MODEL, rate=0.5), FIGURES)
    assert keep(tmp_path / "new", runs(AGENT), MODEL, FIGURES) == path
    assert [file.name for file in path.parent.iterdir()] == [path.name]
    assert LearnedModel.of_json(path.read_text()).model == MODEL


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="cannot be written"):
        keep(tmp_path / "file" / "below", runs(AGENT), MODEL, FIGURES)


def _scores(result: Result, metric: str) -> list[dict[str, Any]]:
    assert result.exit_code == 0, result.output
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    return [row for row in rows if row["metric"] == metric]


def test_runs_are_counted_only_where_somebody_learns(tmp_path: Path) -> None:
    config = load(None, {"PANDAEVAL_LEARN__FOLDER": str(tmp_path)})
    assert not evaluator(config).counts_courses, "nothing was learned"
    assert evaluator(config, learning=True).counts_courses
