"""Exports of a running collector: spans for commands, cases for a suite, and rows."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import orjson
import pytest

from pandaeval_lab.cases.files import read_suite
from support.collector import CollectorProcess
from support.judged_files import send
from support.recent import recent
from support.ungrounded import booking, post

PROGRAM = str(Path(sys.executable).with_name("pandaeval"))
CAPTURES = Path(__file__).parents[1] / "golden" / "captures"


@pytest.fixture(scope="module")
def collector(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CollectorProcess]:
    folder = tmp_path_factory.mktemp("export")
    files = [sorted(CAPTURES.glob(f"*/{name}.otlp.jsonl"))[0] for name in ("good_session", "tool_loop", "crashed")]
    with CollectorProcess(folder / "collector") as running:
        running.start()
        send(running, recent(files, folder / "recent"))
        post(running.http, booking())
        running.until(lambda: "table-for-four" in {each["session_id"] for each in running.results()}, "done with all")
        running.until(running.at_rest, "at rest")
        yield running


def pandaeval(*words: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run([PROGRAM, *words], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done


def test_exported_spans_can_be_evaluated_again(collector: CollectorProcess, tmp_path: Path) -> None:
    file = tmp_path / "failed.pb"
    process = pandaeval(
        "export", "--url", collector.http, "--where", "failed=true", "--format", "otlp", "-o", str(file)
    )
    with httpx.Client(base_url=f"{collector.http}/api/v1", timeout=30) as client:
        failed = client.get("/traces", params={"failed": True, "limit": 500}).json()["items"]
        whole = client.get("/export", params={"failed": True, "format": "otlp"})
        rows = [orjson.loads(line) for line in client.get("/export", params={"failed": True}).content.splitlines()]
    assert failed
    assert f"{len(failed)} trace" in process.stderr
    assert file.read_bytes() == whole.content
    assert {row["trace_id"] for row in rows} == {row["trace_id"] for row in failed}
    results = pandaeval("evaluate", str(file), "--format", "json").stdout.splitlines()
    assert {orjson.loads(line)["trace_id"] for line in results} >= {row["trace_id"] for row in failed}


@pytest.mark.slow
def test_exported_failed_runs_are_valid_cases_of_a_suite(collector: CollectorProcess, tmp_path: Path) -> None:
    file = tmp_path / "cases.yaml"
    process = pandaeval(
        "export", "--url", collector.http, "--where", "failed=true", "--format", "case", "-o", str(file)
    )
    suite = read_suite(file)
    assert len(suite.cases) > 1
    assert f"{len(suite.cases)} cases" in process.stderr
    assert all(case.id.startswith("frozen-") for case in suite.cases)
