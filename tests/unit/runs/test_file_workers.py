"""A file that is scored by further processes: the same results in the same order, and none of them is left behind."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, nullcontext
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from pandaeval_collector.analysis.embedding import load
from pandaeval_collector.base.runtime import failpoints
from pandaeval_collector.base.time_limit import TRACE_SECONDS
from pandaeval_collector.cli import app
from pandaeval_collector.scoring.evaluator import Evaluator, EvaluatorSettings
from pandaeval_lab.cli import evaluate
from pandaeval_lab.replay import fileworkers
from pandaeval_lab.replay import replay as replaying
from pandaeval_lab.replay.files import Input
from pandaeval_lab.replay.fileworkers import FileSetup, FileWorkers
from pandaeval_lab.replay.replay import replay
from pandaeval_lab.replay.trace_files import TraceFiles

_CAPTURES = sorted((Path(__file__).parents[2] / "golden" / "captures").rglob("good*.otlp.jsonl"))[:4]
_EMBEDDER = load("embedded")


@pytest.fixture(autouse=True)
def _small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replaying, "BATCH", 2)


def _run(
    workers: int,
    pids: list[int] | None = None,
    environ: Mapping[str, str] = os.environ,
    trace_timeout: float = TRACE_SECONDS,
) -> Iterator[Any]:
    scorer = Evaluator(_EMBEDDER, EvaluatorSettings(trace_timeout=trace_timeout))

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


def test_a_process_that_dies_costs_nothing() -> None:
    environ = {**os.environ, failpoints.VARIABLE: "in_worker:1:kill"}
    assert _told(_run(1, environ=environ)) == _told(_run(0))


@pytest.mark.parametrize(
    ("how", "why", "kind"), [("", "metric_error", "worker_ended"), (":delay=300", "timeout", "worker_hung")]
)
def test_a_trace_over_which_every_process_ends_costs_its_own_results(
    how: str, why: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fileworkers, "PATIENCE_SECONDS", 3.0)
    without = _told(_run(0))
    deadly = next(each["trace_id"] for each in without if each["level"] == "trace")
    environ = {**os.environ, failpoints.VARIABLE: f"over_trace={deadly}:1{how}"}
    found = _told(_run(1, environ=environ, trace_timeout=2.0))
    aside = [each for each in found if each["trace_id"] == deadly]
    assert {(each["outcome"], each["why"]) for each in aside if each["level"] == "trace"} == {("unscored", why)}
    assert kind in aside[0]["reason"]
    assert "over reading or filing it" in aside[0]["reason"]
    of_others = [each for each in without if each["trace_id"] != deadly and each["level"] != "session"]
    assert [each for each in found if each["trace_id"] != deadly and each["level"] != "session"] == of_others


def test_the_command_has_small_files_read_by_as_many_as_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """A search that cannot be interrupted then ends a process, and not the patience of whoever waits."""
    numbers: list[int] = []

    def started(number: int, setup: FileSetup, environ: Mapping[str, str]) -> FileWorkers:
        numbers.append(number)
        return FileWorkers(number, setup, environ)

    monkeypatch.setattr(evaluate, "FileWorkers", started)
    command = ["evaluate", str(_CAPTURES[0]), "--format", "json"]
    alone, done = (CliRunner().invoke(app, [*command, *more]) for more in ([], ["--workers", "2"]))
    assert done.exit_code == alone.exit_code == 0
    assert done.stdout.count("\n") == alone.stdout.count("\n") > 0
    assert numbers == [2]


def test_large_files_have_a_process_on_a_single_core(monkeypatch: pytest.MonkeyPatch) -> None:
    numbers: list[int] = []
    monkeypatch.setattr(evaluate, "FEW", 1)
    monkeypatch.setattr(evaluate, "usable_cores", lambda: 1)
    monkeypatch.setattr(evaluate, "FileWorkers", lambda number, *_: (numbers.append(number), nullcontext())[1])
    CliRunner().invoke(app, ["evaluate", str(_CAPTURES[0])])
    assert numbers == [1]
