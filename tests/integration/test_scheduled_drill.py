"""A running collector makes drills over the runs that it keeps, tells what was noticed, and stops in midst of one."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from typer.testing import CliRunner

from pandaeval_collector.cli._app import app
from support.collector import CollectorProcess
from support.drilled import requests
from support.senders import GrpcDoor

pytestmark = pytest.mark.slow
COUNT = 1
SCHEDULE = {"PANDAEVAL_DRILL__SCHEDULE": "0 0 29 2 *", "PANDAEVAL_DRILL__COPIES": "1"}
MISSED = json.dumps({"at": 0.0, "good": 1, "runs": 1, "faults": {}, "untouched": {}})


def filled(folder: Path) -> CollectorProcess:
    """A collector that was stopped with some good runs in its store."""
    collector = CollectorProcess(folder)
    with collector.start(), closing(GrpcDoor(collector.grpc)) as door:
        for each in requests(COUNT):
            assert door.send(ExportTraceServiceRequest.FromString(each.data)).acknowledged
        collector.until(
            lambda: collector.counts()["traces", "decided", "root_ended"] >= 2 * COUNT, "done with all traces"
        )
        collector.stop()
    return collector


def test_a_drill_that_was_missed_is_made_and_told(tmp_path: Path) -> None:
    collector = filled(tmp_path)
    (collector.data / "drill.json").write_text(MISSED)
    with collector.start(**SCHEDULE):
        collector.until(lambda: collector.counts()["drills", "ended", ""] == 1, "done with the drill")
        noticed = {
            (labels["pandaeval_fault"], labels["gen_ai_evaluation_name"]): value
            for labels, value in collector.series("drill_noticed")
        }
        copies = {labels["pandaeval_fault"]: value for labels, value in collector.series("drill_copies")}
        flagged = collector.series("drill_flagged")
        assert collector.gauge("accounting_residual") == 0
    assert noticed["empty_answer", "any"] == noticed["empty_answer", "response"] == 1.0
    assert noticed["empty_answer", "tool_loop"] == 0.0
    assert (copies["empty_answer"], copies["wrong_handover"]) == (1, 0)
    assert ("wrong_handover", "any") not in noticed
    assert {labels["gen_ai_evaluation_name"] for labels, _ in flagged} >= {"response", "grounding"}
    assert {value for _, value in flagged} == {0.0}
    kept = collector.data / "drill.json"
    assert kept.stat().st_mode & 0o077 == 0
    assert not any(each["examples"] for each in json.loads(kept.read_text())["faults"].values())
    again = ["drill", "--store", str(collector.data), "--n", "1", "--baseline", str(kept), "--faults", "empty_answer"]
    assert CliRunner().invoke(app, again).exit_code == 0
    with collector.start(**SCHEDULE):  # the last one is shown at once, and no other is due
        assert {labels["pandaeval_fault"]: value for labels, value in collector.series("drill_copies")} == copies
        assert not collector.counts()["drills", "ended", ""]
        assert collector.stop() == 0


def test_a_collector_stops_in_the_midst_of_a_drill(tmp_path: Path) -> None:
    collector = filled(tmp_path)
    (collector.data / "drill.json").write_text(MISSED)
    with collector.start(**SCHEDULE):
        assert collector.stop() == 0
    assert (collector.data / "drill.json").read_text() == MISSED
    assert "drill failed" not in collector.log()
