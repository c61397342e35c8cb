"""Chained conversations without session IDs score alike in files, in any order and after kills."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from typer.testing import CliRunner

from golden.otlp_json import Request, requests, spans
from pandaeval_collector.cli import app
from pandaeval_lab.replay.files import Input
from support.collector import CollectorProcess, open_chunks
from support.kills import differences, standing_results, uninterrupted
from support.senders import HttpSender

CAPTURE = Path(__file__).parents[1] / "golden/captures/openai_responses_openinference/repeated_answer.otlp.jsonl"
TURNS = 4


def inspected() -> list[dict[str, Any]]:
    done = CliRunner().invoke(app, ["inspect", str(CAPTURE), "--format", "json"])
    assert done.exit_code == 0
    return [json.loads(line) for line in done.stdout.splitlines()]


def by_turn() -> list[Request]:
    """Return one request per trace, in start order."""
    given = requests(CAPTURE.read_text())
    found = []
    for trace_id in dict.fromkeys(span.trace_id for span in sorted(spans(given), key=lambda s: s.start_time_unix_nano)):
        request = ExportTraceServiceRequest()
        for each in given:
            for block in getattr(each, "resource_spans", ()):
                for scope in block.scope_spans:
                    if mine := [span for span in scope.spans if span.trace_id == trace_id]:
                        kept = request.resource_spans.add(resource=block.resource)
                        kept.scope_spans.add(scope=scope.scope, spans=mine)
        found.append(request)
    return found


def test_inspect_shows_one_session_for_a_chain_in_a_file() -> None:
    found = inspected()
    assert len(found) == TURNS
    [session] = {trace["session_id"] for trace in found}
    assert session.startswith("resp_")
    assert session in CAPTURE.read_text()
    assert all("session derived from responses" in trace["notes"][-1] for trace in found)


def test_evaluate_scores_the_chain_as_one_session() -> None:
    done = CliRunner().invoke(app, ["evaluate", str(CAPTURE), "--format", "json"])
    results = [json.loads(line) for line in done.stdout.splitlines()]
    [session] = {trace["session_id"] for trace in inspected()}
    assert {each["session_id"] for each in results} == {session}
    assert [each["outcome"] for each in results if each["metric"] == "loop_detection"].count("scored") == TURNS - 1
    [whole] = [each for each in results if each["metric"] == "agent_reliability"]
    assert whole["metadata"]["total_traces_in_session"] == TURNS
    assert whole["metadata"]["rests_on"]["loop_detection"] == TURNS - 1


def decided(collector: CollectorProcess) -> bool:
    with collector.database() as database:
        return not open_chunks(database)


@pytest.fixture
def collector(tmp_path: Path) -> Iterator[CollectorProcess]:
    with CollectorProcess(tmp_path) as process:
        yield process


@pytest.mark.parametrize(
    "order",
    ["shuffled", *(pytest.param(each, marks=pytest.mark.slow) for each in ("forwards", "shuffled, with two workers"))],
)
def test_a_killed_collector_gives_the_results_of_a_file_run_in_any_order(
    collector: CollectorProcess, order: str
) -> None:
    turns = by_turn()
    assert len(turns) == TURNS
    if order.startswith("shuffled"):
        turns = [turns[at] for at in (2, 0, 3, 1)]
    for request in turns:
        collector.start(PANDAEVAL_LINE__WORKERS=str(1 + order.endswith("workers")))
        door = HttpSender(collector.http, False)
        assert door.send(request).acknowledged
        door.close()
        collector.until(lambda: decided(collector), "decided")
        collector.kill()
    collector.start()
    collector.until(collector.at_rest, "at rest", 120)

    expected = uninterrupted(Input(str(CAPTURE)).requests())
    standing = standing_results(collector)
    assert differences({key: standing[key] for key in expected if key in standing}, expected) == []
    with collector.database() as database:
        filed = database.execute(
            "SELECT session_id, count(*) FROM members JOIN sessions ON sessions.no = session GROUP BY 1"
        )
        assert filed.fetchall() == [(inspected()[0]["session_id"], TURNS)]
