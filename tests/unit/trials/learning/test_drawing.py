"""``pandaeval labels next --learn``: sessions drawn for a problem score, with known chances."""

from __future__ import annotations

import contextlib
import csv
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from pandaeval_collector.cli import app
from pandaeval_collector.config import load
from pandaeval_collector.receivers.files import Input
from pandaeval_collector.runs.filerun import FileRun
from pandaeval_collector.runs.settings import learning_evaluator
from pandaeval_collector.store import Store
from pandaeval_collector.trials.learning import FOLDER, PROBLEM, sessions_to_label
from support.learnable import AGENT, METRIC, sessions, write

MADE = {each.id: each for each in sessions(100)}


def run(data: Path, *arguments: str | Path) -> Result:
    environment = {"PANDAEVAL_DATA": str(data), "COLUMNS": "200"}
    outcome = CliRunner().invoke(app, [*map(str, arguments)], env=environment)
    assert outcome.exit_code == 0, outcome.output
    return outcome


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with sessions, and no judge and no label."""
    folder = tmp_path_factory.mktemp("drawn")
    traces, _ = write(folder, [*MADE.values()])
    with (
        contextlib.closing(Store(folder / "data")) as store,
        FileRun(learning_evaluator(load(None, {})), store=store) as filed,
    ):
        for request in Input(str(traces)).requests():
            filed.add(request)
        for _ in filed.results():
            pass
    return folder / "data"


def test_drawn_labelled_learned_and_drawn_again(data: Path, tmp_path: Path) -> None:
    first = run(data, "labels", "next", "--learn", "--n", "70", "-o", tmp_path / "a.csv")
    assert "70 of 100 sessions without a label, 0 with one (session.problem)" in first.output
    rows = _rows(tmp_path / "a.csv")
    assert {row["metric"] for row in rows} == {PROBLEM}
    [chance] = {round(float(row["probability"]), 6) for row in rows}
    assert 0.5 < chance < 0.9, "nothing is learned: every session has the same"

    for row in rows:
        row["label"] = "fail" if MADE[row["session_id"]].bad else "pass"
    with (tmp_path / "a.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    assert "70 new" in run(data, "labels", "import", tmp_path / "a.csv").output
    run(data, "learn", "--store", data)

    again = run(data, "labels", "next", "--learn", "--n", "20", "-o", tmp_path / "b.csv")
    later = _rows(tmp_path / "b.csv")
    assert not {row["session_id"] for row in later} & {row["session_id"] for row in rows}
    counted = {row["probability"] for row in later if row["probability"]}
    assert len(counted) <= 1 < len(later), "all that count have one chance"
    assert any(not row["probability"] for row in later), "what the model is unsure of bends no rate"
    assert f"{AGENT}: bad in 0." in again.output
    assert "What labels buy" in again.output
    assert "foretold" in again.output


def test_what_the_model_is_unsure_of_is_wanted(data: Path) -> None:
    with contextlib.closing(Store(data)) as store:
        connection = store.people.reader()
        waiting = sessions_to_label(connection, METRIC, AGENT, data / FOLDER)
        assert len(waiting) == len(MADE)
        assert not any(labelled for _, labelled in waiting), "the labels are about another metric"
        assert all(row.score == 0.5 for row, _ in sessions_to_label(connection, METRIC, "", data / "none"))
        assert sessions_to_label(connection, METRIC, "another agent", data / FOLDER) == []


def test_a_metric_of_traces_is_refused(data: Path) -> None:
    environment = {"PANDAEVAL_DATA": str(data)}
    outcome = CliRunner().invoke(app, ["labels", "next", "--learn", "--metric", "trace.coherence"], env=environment)
    assert outcome.exit_code == 2


def _rows(file: Path) -> list[dict[str, str]]:
    with file.open(newline="") as lines:
        return [*csv.DictReader(lines)]
