"""A file that is scored by further processes: the same results in the same order, and none of them is left behind."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from pandaeval_collector.analysis.embedding import load
from pandaeval_collector.base.errors import UserError
from pandaeval_collector.base.runtime import failpoints
from pandaeval_collector.cli import app
from pandaeval_collector.runs import replay as replaying
from pandaeval_collector.runs.replay import replay
from pandaeval_collector.scoring.evaluator import Evaluator
from pandaeval_lab.cli import evaluate
from pandaeval_lab.replay.files import Input
from pandaeval_lab.replay.fileworkers import FileSetup, FileWorkers
from pandaeval_lab.replay.trace_files import TraceFiles

_CAPTURES = sorted((Path(__file__).parents[2] / "golden" / "captures").rglob("good*.otlp.jsonl"))[:4]
_EMBEDDER = load("embedded")


@pytest.fixture(autouse=True)
def _small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluate, "FEW", 0)
    monkeypatch.setattr(replaying, "BATCH", 2)


def _run(workers: int, pids: list[int] | None = None, environ: Mapping[str, str] = os.environ) -> Iterator[Any]:
    scorer = Evaluator(_EMBEDDER)

    with TraceFiles() as files, ExitStack() as own:
        for file in _CAPTURES:
            for request in Input(str(file)).requests():
                files.add(request)
        pool = None
        if workers:
            setup = FileSetup(files.store.path, "embedded", scorer.settings)
            pool = own.enter_context(FileWorkers(workers, setup, environ))
            if pids is not None:
                pids.extend(process.pid for process in pool._processes if process.pid is not None)
        yield from replay(files, scorer, ahead=pool and pool.understood)


def _told(results: Iterator[Any]) -> list[dict[str, Any]]:
    return [{**each.to_dict(), "duration_ms": 0, "time": ""} for each in results]


def _is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_two_processes_say_what_one_says_in_the_same_order_and_end() -> None:
    pids: list[int] = []
    assert _told(_run(2, pids)) == _told(_run(0))
    assert len(pids) == 2
    assert not any(map(_is_running, pids))


def test_whoever_stops_in_the_middle_leaves_no_process_behind() -> None:
    pids: list[int] = []
    results = _run(1, pids)
    next(results)
    assert all(map(_is_running, pids))
    results.close()  # type: ignore[attr-defined]
    assert not any(map(_is_running, pids))


def test_a_process_that_dies_is_named_and_ends_the_run() -> None:
    environ = {**os.environ, failpoints.VARIABLE: "in_worker:1:kill"}
    with pytest.raises(UserError, match=r"ended before it answered \(process \d+, signal 9\); nothing more"):
        _told(_run(1, environ=environ))


def test_the_command_takes_their_number() -> None:
    done = CliRunner().invoke(app, ["evaluate", str(_CAPTURES[0]), "--workers", "1", "--format", "json"])
    alone = CliRunner().invoke(app, ["evaluate", str(_CAPTURES[0]), "--workers", "0", "--format", "json"])
    assert done.exit_code == alone.exit_code == 0
    assert done.stdout.count("\n") == alone.stdout.count("\n") > 0
