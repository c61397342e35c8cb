"""Drills: planting, scoring, counting, comparison."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from random import Random
from typing import Any

import pytest
from typer.testing import CliRunner

from pandaeval_collector.cli._app import app
from pandaeval_collector.scoring.evaluator import Evaluator, EvaluatorSettings
from pandaeval_lab.drill.drill import Drill, chosen_faults
from pandaeval_lab.drill.edits import Edit
from pandaeval_lab.drill.fault import Fault, Subject, faults
from pandaeval_lab.drill.tally import NoticedShare, Tally, drops
from pandaeval_lab.replay.replay import replay
from pandaeval_lab.replay.trace_files import TraceFiles
from support.drilled import requests
from support.embedder import WordEmbedder

COUNT = 4
NAMES = ["empty_answer", "exact_loop", "invented_identifier", "false_success"]


def drilled(most: int = 50, names: list[str] | None = None, seed: int = 0) -> Tally:
    evaluator = Evaluator(WordEmbedder(), EvaluatorSettings())
    chosen = chosen_faults(names or NAMES, faults())
    with TraceFiles() as files:
        for request in requests(COUNT):
            files.add(request)
        return Drill(files, lambda some, where: replay(some, evaluator, where=where), chosen, most, seed).run()


def test_planted_faults_are_counted_as_noticed_and_blamed_per_metric() -> None:
    tally = drilled()
    assert (tally.runs, tally.good) == (2 * COUNT, 2 * COUNT)
    empty = tally.faults["empty_answer"]
    assert (empty.n, empty.noticed.hits, empty.blamed.hits) == (2 * COUNT, 2 * COUNT, 2 * COUNT)
    assert empty.by_metric["response"] == 2 * COUNT
    loop = tally.faults["exact_loop"]
    assert (loop.n, loop.by_metric["tool_loop"], loop.blamed.hits) == (COUNT, COUNT, COUNT)
    assert loop.refused == {"the run has no call with arguments": COUNT}
    assert tally.faults["false_success"].by_metric["response"] == COUNT
    assert tally.faults["invented_identifier"].n == 2 * COUNT


@pytest.mark.parametrize("error", [ValueError("no"), SystemExit(3)])
def test_a_fault_that_raises_does_not_stop_other_faults(error: BaseException) -> None:
    def raising(subject: Subject, rng: Random) -> Edit:
        raise error

    evaluator = Evaluator(WordEmbedder(), EvaluatorSettings())
    chosen = {"broken": Fault("value", "It raises.", raising), "empty_answer": faults()["empty_answer"]}
    with TraceFiles() as files:
        for request in requests(COUNT):
            files.add(request)
        tally = Drill(files, lambda some, where: replay(some, evaluator, where=where), chosen, 50).run()
    assert (tally.faults["broken"].n, tally.faults["empty_answer"].n) == (0, 2 * COUNT)
    assert dict(tally.faults["broken"].refused) == {f"the fault raised {type(error).__name__}": 2 * COUNT}


def test_untouched_runs_are_not_flagged() -> None:
    assert {share.hits for share in drilled(names=["empty_answer"]).flagged.values()} == {0}


def test_the_number_of_copies_per_fault_is_limited() -> None:
    assert {each.n for each in drilled(most=3).faults.values()} == {3}


def test_the_same_seed_gives_the_same_tally() -> None:
    assert drilled(seed=5).to_dict() == drilled(seed=5).to_dict()


def test_faults_are_chosen_by_name_and_family() -> None:
    assert {*chosen_faults(["value", "crash"], faults())} > {"invented_date", "crash"}
    with pytest.raises(ValueError, match="typo"):
        chosen_faults(["typo"], faults())


def test_a_credible_drop_is_reported_and_a_small_one_is_not() -> None:
    tally = drilled()
    report = tally.to_dict()
    assert drops(report, tally) == []
    before: dict[str, Any] = {"faults": {"exact_loop": {"by_metric": {"response": NoticedShare(60, 60).to_dict()}}}}
    assert [(drop.fault, drop.metric) for drop in drops(before, tally)] == [("exact_loop", "response")]
    before = {"faults": {"exact_loop": {"by_metric": {"response": NoticedShare(1, 4).to_dict()}}}}
    assert drops(before, tally) == []


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("drill") / "traces.pb"
    file.write_bytes(b"".join(len(each.data).to_bytes(4) + each.data for each in requests(2)))
    return file


def run(*arguments: str) -> Any:
    return CliRunner().invoke(app, ["drill", *arguments])


def test_drill_writes_table_and_json_and_fails_below_a_baseline(traces: Path, tmp_path: Path) -> None:
    chosen = (str(traces), "--faults", "empty_answer,invented_url")
    table = run(*chosen)
    assert table.exit_code == 0
    assert "empty_answer" in table.stdout
    assert "not applicable" not in table.stdout
    baseline = tmp_path / "last.json"
    assert run(*chosen, "--format", "json", "-o", str(baseline)).exit_code == 0
    report = json.loads(baseline.read_text())
    assert report["faults"]["empty_answer"]["noticed"]["hits"] == 4
    again = run(*chosen, "--baseline", str(baseline))
    assert again.exit_code == 0
    report["faults"]["empty_answer"]["by_metric"]["grounding"] = NoticedShare(90, 90).to_dict()
    baseline.write_text(json.dumps(report))
    worse = run(*chosen, "--baseline", str(baseline))
    assert worse.exit_code == 1
    assert "grounding noticed 90 of 90 copies of empty_answer, now 0 of 4" in worse.stderr


def test_drill_reads_runs_from_a_store(tmp_path: Path) -> None:
    with TraceFiles() as files:
        for request in requests(2):
            files.add(request)
        assert [*replay(files, Evaluator(WordEmbedder(), EvaluatorSettings()))]
        kept = shutil.copytree(files.store.path, tmp_path / "kept")
    found = run("--store", str(kept), "--faults", "empty_answer", "--format", "json")
    assert found.exit_code == 0
    report = json.loads(found.stdout)
    assert (report["runs"], report["faults"]["empty_answer"]["n"]) == (4, 4)


def refused(*arguments: str) -> str:
    done = run(*arguments)
    assert done.exit_code == 2, done.output
    return " ".join(done.stderr.split())


def test_drill_explains_unusable_arguments_and_exits_with_code_2(traces: Path, tmp_path: Path) -> None:
    assert "--faults nonsense: no fault or family of faults is called nonsense; there are: " in refused(
        str(traces), "--faults", "nonsense"
    )
    source = "name files or the address of a trace store, or a data directory with --store"
    assert source in refused()
    assert source in refused(str(traces), "--store", str(tmp_path))
    assert "no store in " in refused("--store", str(tmp_path))
    baseline = tmp_path / "no.json"
    baseline.write_text("[]")
    assert "not the output of `pandaeval drill --format json`" in refused(str(traces), "--baseline", str(baseline))
