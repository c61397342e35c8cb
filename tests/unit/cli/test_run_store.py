"""``pandaeval runs`` in a data directory: over traces of a file, beside a collector, and where one has stopped."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from pandaeval_collector.cli import app
from pandaeval_collector.runs.replay import replay
from pandaeval_collector.scoring.evaluator import Evaluator, EvaluatorSettings
from pandaeval_collector.store import Chunk, Store
from pandaeval_lab.cli import runs
from pandaeval_lab.replay.files import Input, Request
from pandaeval_lab.replay.trace_files import TraceFiles
from support.embedder import WordEmbedder
from support.made_traces import Composer

METRIC = "trace.tool_loop"
TRACES = 6


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["runs", *arguments], env={"COLUMNS": "300"})


def told(*arguments: str) -> list[dict[str, object]]:
    outcome = run(*arguments, "--format", "json")
    assert outcome.exit_code == 0, outcome.output
    return [json.loads(line) for line in outcome.stdout.splitlines()]


@contextmanager
def opened(folder: Path) -> Iterator[Store]:
    """As a collector has it open."""
    store = Store(folder, "off")
    try:
        yield store
    finally:
        store.close()


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of traces: length-delimited protobuf."""
    file, composer = tmp_path_factory.mktemp("source") / "traces.binpb", Composer(7)
    requests = [composer.trace().request().SerializeToString() for _ in range(TRACES)]
    file.write_bytes(b"".join(_delimited(each) for each in requests))
    return file


def _delimited(message: bytes) -> bytes:
    length, head = len(message), bytearray()
    while length > 127:
        head.append(length & 127 | 128)
        length >>= 7
    return bytes([*head, length]) + message


def scores_of_file(file: Path) -> dict[str, float | None]:
    with TraceFiles() as line:
        for request in Input(str(file)).requests():
            assert isinstance(request, Request)
            line.add(request)
        return {
            result.to_dict()["trace_id"]: result.score
            for result in replay(line, Evaluator(WordEmbedder(), EvaluatorSettings(enabled={METRIC})))
        }


def test_runs_over_a_file_are_kept_and_compared(written: Path, tmp_path: Path) -> None:
    store = str(tmp_path / "new")
    start = ("start", "--from", str(written), "--store", store, "--metrics", METRIC)
    first = run(*start)
    assert (first.exit_code, f"read {TRACES} traces" in first.stderr) == (0, True), first.output
    second = run(*start, "--format", "json")
    assert f"{TRACES} were here before" in second.stderr
    one, other = (each["id"] for each in reversed(told("list", "--store", store)))
    assert json.loads(second.stdout) == told("show", str(other), "--store", store)[0]
    assert json.loads(second.stdout)["done"] == TRACES
    results = told("results", str(one), "--store", store)
    assert {each["run_id"] for each in results} == {one}
    assert {each["trace_id"]: each["score"] for each in results} == scores_of_file(written)
    [metric] = told("compare", str(one), str(other), "--store", store)[0]["metrics"]  # type: ignore[misc]
    assert (metric["pairs"], metric["differing"]) == (len(results), 0)

    with opened(Path(store)):
        busy = run("start", "--store", store, "--metrics", METRIC)
        assert (busy.exit_code, "leave --store out" in busy.output) == (2, True)
        assert len(told("list", "--store", store)) == 2, "whoever only looks is let in"


@pytest.mark.slow
def test_a_run_that_was_broken_off_goes_on(written: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = str(tmp_path / "new")

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(runs, "watched", interrupted)
        outcome = run("start", "--from", str(written), "--store", store, "--metrics", METRIC)
    assert (outcome.exit_code, "is cancelled" in outcome.output) == (130, True)
    [begun] = told("list", "--store", store)
    assert (begun["state"], begun["done"]) == ("cancelled", 0)
    [ended] = told("retry", str(begun["id"]), "--store", store)
    assert (ended["state"], ended["done"]) == ("done", TRACES)


def test_what_cannot_be_is_refused(written: Path, tmp_path: Path) -> None:
    asked = ("start", "--metrics", METRIC)
    for options, why in (
        (("--from", str(written)), "name it with --store"),
        (("--store", str(tmp_path / "none")), "there is no store"),
        (("--store", str(tmp_path), "--emit"), "--emit"),
        (("--store", str(tmp_path), "--detach"), "--detach"),
        (("--config", "some.yaml"), "--config goes with --store"),
    ):
        outcome = run(*asked, *options)
        assert (outcome.exit_code, why in outcome.output) == (2, True), outcome.output
    assert not (tmp_path / "none").exists()


def test_the_store_of_a_collector_takes_no_files(written: Path, tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        store.append([Chunk(store.next_chunk_id(), bytes(16), False, 1, 0, b"")]).result()
    outcome = run("start", "--from", str(written), "--store", str(tmp_path), "--metrics", METRIC)
    assert (outcome.exit_code, "data directory of a collector" in outcome.output) == (2, True)
    with opened(tmp_path) as store:
        assert len([*store.reads.open_chunks()]) == 1, "nothing was touched"
