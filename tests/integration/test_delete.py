"""``pandaeval delete`` at a running collector, with kills."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from typer.testing import CliRunner, Result

from pandaeval_collector.base.runtime.failpoints import VARIABLE
from pandaeval_collector.cli import app
from support.collector import CollectorProcess
from support.made_traces import Composer
from support.senders import HttpSender

RUNS = 6


@pytest.fixture
def collector(tmp_path: Path) -> Iterator[CollectorProcess]:
    settings = {"PANDAEVAL_LATE__WINDOW": "2s", "PANDAEVAL_SESSION__IDLE": "1s"}
    with CollectorProcess(tmp_path / "data", settings) as running:
        running.start()
        yield running


def send(collector: CollectorProcess) -> list[bytes]:
    composer, door = Composer(7), HttpSender(collector.http)
    requests = [composer.trace().request() for _ in range(RUNS)]
    for request in requests:
        assert door.send(request).acknowledged
    door.close()
    collector.until(lambda: collector.at_rest() and bool(collector.results()), "at rest", 120.0)
    return requests


def traces(collector: CollectorProcess) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = httpx.get(f"{collector.http}/api/v1/traces", timeout=30).json()["items"]
    return found


def delete(collector: CollectorProcess, *options: str, answer: str | None = None) -> Result:
    return CliRunner().invoke(app, ["delete", "--url", str(collector.http), *options], input=answer)


def test_a_deleted_session_stays_deleted_if_its_spans_arrive_late(collector: CollectorProcess) -> None:
    requests = send(collector)
    before = traces(collector)
    session = before[0]["session_id"]
    assert session
    stays = [each for each in before if each["session_id"] != session]
    refused = delete(collector, "--session", session)
    assert (refused.exit_code, traces(collector)) == (2, before), refused.output
    answered = delete(collector, "--session", session, answer="n\n")
    assert (answered.exit_code, traces(collector)) == (0, before), answered.output
    assert "results" in refused.output
    assert "these destinations can keep copies: jsonl" in refused.output
    done = delete(collector, "--session", session, "--yes")
    assert (done.exit_code, traces(collector)) == (0, stays), done.output
    door = HttpSender(collector.http)
    for request in requests:
        answer = door.send(request)
        assert (answer.acknowledged, answer.refused) == (True, ""), "a sender must not retry spans of a deleted session"
    door.close()
    collector.until(collector.at_rest, "at rest", 120.0)
    assert traces(collector) == stays
    data = b"".join(file.read_bytes() for file in collector.folder.rglob("pandaeval.db*"))
    assert session.encode() not in data
    again = delete(collector, "--session", session)
    assert (again.exit_code, again.output) == (0, "no stored data matches\n")
    wrong = delete(collector, "--trace", "zz")
    assert (wrong.exit_code, wrong.output) == (2, "trace: write the whole ID of a trace, 32 hexadecimal digits\n")


def test_a_restart_completes_a_deletion_that_a_kill_interrupted(collector: CollectorProcess) -> None:
    send(collector)
    before = traces(collector)
    trace_id = before[0]["trace_id"]
    collector.stop()
    collector.start(**{VARIABLE: "in_deletion:2"})
    assert delete(collector, "--trace", trace_id, "--yes").exit_code == 2
    collector.until(lambda: not collector.running(), "killed")
    collector.start()
    stays = {each["trace_id"] for each in before} - {trace_id}
    collector.until(lambda: {each["trace_id"] for each in traces(collector)} == stays, "deleted", 60.0)
    assert {each["trace_id"]: each for each in traces(collector)} == {
        each["trace_id"]: each for each in before if each["trace_id"] != trace_id
    }
    collector.until(lambda: bool([*collector.folder.rglob("deletions.jsonl")]), "complete", 60.0)
    collector.stop()
    data = b"".join(file.read_bytes() for file in collector.folder.rglob("pandaeval.db*"))
    assert data
    assert bytes.fromhex(trace_id) not in data
    assert trace_id.encode() not in data


@pytest.mark.parametrize(
    "options",
    [(), ("--user", "a", "--session", "b"), ("--trace", "zz"), ("--before", "yesterday"), ("--user", "a")],
)
def test_delete_with_an_invalid_selector_exits_with_2(options: tuple[str, ...]) -> None:
    found = CliRunner().invoke(app, ["delete", "--url", "http://127.0.0.1:9", *options])
    assert found.exit_code == 2, found.output
