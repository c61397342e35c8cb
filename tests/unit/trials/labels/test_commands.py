"""``pandaeval labels`` and ``calibrate``."""

from __future__ import annotations

import csv
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from pandaeval_collector.cli import app
from pandaeval_collector.store import JudgedRow, Store, WriteSet
from support.api import serve_on_port, served
from support.judged_store import JUDGE, METRIC, filled, flattered, unit

HEAD = "trace_id,metric,label\n"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    filled(tmp_path / "data", labelled=0).close()
    return tmp_path / "data"


def run(data: Path, *arguments: str) -> Result:
    return CliRunner().invoke(app, [*arguments], env={"PANDAEVAL_DATA": str(data), "COLUMNS": "200"})


def labels_file(folder: Path, runs: int) -> Path:
    path = folder / "labels.csv"
    passed, _ = flattered(400)
    path.write_text(
        HEAD + "".join(f"{unit(at)},task_completion,{'pass' if passed[at] else 'fail'}\n" for at in range(runs))
    )
    return path


def results_file(folder: Path, runs: int, version: str = "4") -> Path:
    path, lines = folder / "results.jsonl", []
    for at, score in enumerate(flattered(400)[1][:runs]):
        for revision, value in ((1, 0.0), (2, float(score))):
            result: dict[str, Any] = {
                "metric": "task_completion",
                "level": "trace",
                "outcome": "scored",
                "score": value,
            }
            result |= {"trace_id": unit(at), "session_id": None, "threshold": 0.5, "success": value >= 0.5}
            result |= {"revision": revision, "evaluator": {"kind": "llm", "model": JUDGE, "version": version}}
            lines.append(json.dumps(result))
    path.write_text("\n".join(lines) + "\n")
    return path


def test_labels_are_imported_once_and_exported_unchanged(data: Path, tmp_path: Path) -> None:
    path = labels_file(tmp_path, 60)
    first, second = run(data, "labels", "import", str(path)), run(data, "labels", "import", str(path))
    assert (first.exit_code, second.exit_code) == (0, 0)
    assert first.output.startswith("60 new, 0 changed, 0 as before\n")
    assert second.output.startswith("0 new, 0 changed, 60 as before\n")
    assert "Pass rates, corrected by human labels" in second.output
    out = tmp_path / "out.csv"
    assert run(data, "labels", "export", "--out", str(out)).exit_code == 0
    assert run(data, "labels", "import", str(out)).output.startswith("0 new, 0 changed, 60 as before\n")
    assert run(data, "labels", "export").output == out.read_text()


def test_the_rate_is_unknown_with_few_labels(data: Path, tmp_path: Path) -> None:
    assert "no judged run has a label yet" in run(data, "labels", "rates").output
    output = run(data, "labels", "import", str(labels_file(tmp_path, 12))).output
    assert "unknown" in output
    assert "takes 50 drawn labels; 12 that nobody drew serve calibrate alone" in output


def test_a_file_with_an_error_imports_no_label(data: Path, tmp_path: Path) -> None:
    path = labels_file(tmp_path, 5)
    path.write_text(path.read_text() + "abc,task_completion,pass\n")
    found = run(data, "labels", "import", str(path))
    assert found.exit_code == 2
    assert "line 7: 'abc' is no trace id" in found.output
    assert run(data, "labels", "export").output.count("\n") == 1


def test_labels_on_unknown_runs_are_rejected(data: Path, tmp_path: Path) -> None:
    path = labels_file(tmp_path, 5)
    path.write_text(path.read_text() + f"{'e' * 32},task_completion,pass\n")
    found = run(data, "labels", "import", str(path))
    assert found.exit_code == 2
    assert f"1 of 6 labels refer to runs that are not in this store: {'e' * 32}" in found.output
    assert run(data, "labels", "export").output.count("\n") == 1


@pytest.mark.parametrize(
    ("command", "output_text"),
    [
        ("labels export --url URL", f"{unit(2)},,{METRIC}"),
        ("report", "PLACE/data has no scored agent trace yet"),
        ("jobs retry", "a collector runs: add --store PLACE/data"),
    ],
)
def test_commands_find_the_store_of_a_collector_with_a_relative_data_folder(
    tmp_path: Path, command: str, output_text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    filled(Path("data"), labelled=3).close()
    (tmp_path / "other").mkdir()
    with served(Path("data")) as api, serve_on_port(api) as url:
        done = subprocess.run(
            [Path(sys.executable).with_name("pandaeval"), *command.replace("URL", url).split()],
            cwd=tmp_path / "other",
            env=os.environ | {"PANDAEVAL_URL": url, "PANDAEVAL_DATA": "data"},
            capture_output=True,
            text=True,
            check=False,
        )
    assert output_text.replace("PLACE", str(tmp_path)) in done.stdout + done.stderr


@pytest.mark.parametrize("command", [["import", "labels.csv"], ["next"], ["export"], ["rates"]])
def test_a_missing_store_is_an_error(tmp_path: Path, command: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    labels_file(tmp_path, 1)
    found = run(tmp_path / "nowhere", "labels", *command)
    assert found.exit_code == 2
    assert "no store in" in found.output


def test_a_drawn_list_is_exported_and_imported_after_labelling(data: Path, tmp_path: Path) -> None:
    out = tmp_path / "todo.csv"
    drawn = run(data, "labels", "next", "--n", "30", "--out", str(out))
    assert drawn.exit_code == 0
    assert "30 of 400 judged runs without a label, 0 with one (trace.task_completion)" in drawn.output
    assert "pandaeval traces show 0000" in drawn.output
    with out.open() as file:
        rows = list(csv.DictReader(file))
    assert {row["label"] for row in rows} == {""}
    assert all(0 < float(row["probability"]) <= 1 and row["trace_id"] in drawn.output for row in rows)
    for row in rows[:20]:
        row["label"] = "pass"
    with out.open("w") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    taken = run(data, "labels", "import", str(out))
    assert taken.output.startswith("20 new, 0 changed, 0 as before\n10 rows without a label skipped\n")
    assert "380 judged runs without a label, 20 with one" in run(data, "labels", "next").output


def test_the_documented_commands_run_with_several_judged_metrics(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, metrics = Store(tmp_path / "data", "off"), ("correctness", "goal_completion", "user_friction")
    rows = [JudgedRow(name, f"session.{name}", "", "desk", 0.9, True, 0.5, JUDGE, "1", 1.0) for name in metrics]
    store.commit(WriteSet(judged=rows)).result()
    store.close()
    monkeypatch.chdir(tmp_path)
    guide = (Path(__file__).parents[4] / "docs" / "guides" / "labels.md").read_text()
    commands = re.findall(r"^pandaeval (labels .*?)(?: +#.*)?$", guide, re.MULTILINE)
    assert len(commands) == 4
    for command in commands:
        done = run(tmp_path / "data", *command.split())
        assert done.exit_code == 0, done.output
    assert "correctness" in (tmp_path / "todo.csv").read_text()


def test_labels_of_unclear_runs_have_probability_0_and_enter_no_rate(data: Path, tmp_path: Path) -> None:
    out = tmp_path / "unclear.jsonl"
    assert run(data, "labels", "next", "--unclear", "--n", "60", "--out", str(out)).exit_code == 0
    rows = [json.loads(line) | {"label": "pass"} for line in out.read_text().splitlines()]
    assert {row["probability"] for row in rows} == {0}
    out.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    taken = run(data, "labels", "import", str(out))
    assert taken.output.startswith("60 new, 0 changed, 0 as before\n")
    assert "no corrected pass rate: no judged run has a label yet" in run(data, "labels", "rates").output
    exported = tmp_path / "labels.jsonl"
    run(data, "labels", "export", "--out", str(exported))
    assert {json.loads(line)["probability"] for line in exported.read_text().splitlines()} == {0}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--metric", "task_competion"], "--metric task_competion: unknown metric; did you mean task_completion?"),
        (
            ["--metric", "confidence"],
            "--metric confidence: no judged runs; there are those of trace.task",
        ),
        (["--out", "/no/such/folder/x.csv"], "/no/such/folder/x.csv cannot be written: No such file or directory"),
    ],
)
def test_an_invalid_draw_is_an_error(data: Path, arguments: list[str], message: str) -> None:
    found = run(data, "labels", "next", *arguments)
    assert found.exit_code == 2
    assert message in found.output


class TestCalibrate:
    def test_calibrate_gives_the_same_output_from_results_and_from_a_store(self, data: Path, tmp_path: Path) -> None:
        labels = str(labels_file(tmp_path, 150))
        by_file = run(data, "calibrate", labels, "--results", str(results_file(tmp_path, 400)), "--format", "json")
        by_store = run(data, "calibrate", labels, "--store", str(data), "--format", "json")
        assert by_file.exit_code == by_store.exit_code == 0, by_file.output
        assert by_file.output == by_store.output
        (found,) = map(json.loads, by_file.output.splitlines())
        assert (found["metric"], found["judge"], found["version"], found["n"]) == (METRIC, JUDGE, "4", 150)
        figures = found["figures"]
        assert figures["AUROC"]["low"] > 0.85
        assert figures["kappa"]["value"] < 0.5
        assert 0.6 < figures["suggested threshold"]["value"] < 0.85

    def test_the_table_warns_of_few_labels_and_missing_scores(self, data: Path, tmp_path: Path) -> None:
        result = run(data, "calibrate", str(labels_file(tmp_path, 30)), "--results", str(results_file(tmp_path, 20)))
        assert result.exit_code == 0
        assert "20 labels are few" in result.output
        assert "no score for 10 labelled runs" in result.output
        assert "threshold 0.5" in result.output

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ([], "name the scores with either --results FILE or --store FOLDER"),
            (["--results", "no.jsonl"], "no.jsonl cannot be read"),
            (["--results", "labels.csv"], "labels.csv, line 1: no result; `pandaeval evaluate --format json` writes"),
            (["--store", "nowhere"], "no store in nowhere"),
            (["--results", "empty.jsonl"], "none of the 3 labels has a score"),
        ],
    )
    def test_missing_or_invalid_inputs_are_errors(
        self, tmp_path: Path, arguments: list[str], message: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        labels_file(tmp_path, 3)
        (tmp_path / "empty.jsonl").touch()
        found = run(tmp_path, "calibrate", "labels.csv", *arguments)
        assert found.exit_code == 2
        assert message in found.output
