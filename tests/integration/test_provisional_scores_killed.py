"""Kills around interim session scores."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from support.collector import CollectorProcess
from support.made_traces import Composer
from support.senders import GrpcSender

SETTINGS = {"PANDAEVAL_SESSION__INTERIM": "500ms", "PANDAEVAL_SESSION__IDLE": "4s"}


@pytest.mark.slow
@pytest.mark.parametrize("point", ["after_decide", "after_decision_commit"])
def test_interim_and_final_session_scores_are_written_once_after_a_kill(tmp_path: Path, point: str) -> None:
    composer = Composer(1, sessions=1)
    trace = next(made for made in iter(lambda: composer.trace(4), None) if made.session is not None)
    with CollectorProcess(tmp_path, SETTINGS) as collector:
        collector.start(PANDAEVAL_FAIL_POINT=f"{point}:2")  # decision 1 scores the trace
        door = GrpcSender(collector.grpc)
        assert door.send(trace.request()).acknowledged
        door.close()
        assert collector.wait(60) == -9
        collector.start()
        collector.until(lambda: any(each["trigger"] == "idle" for each in collector.results()), "the session closed")
        collector.until(collector.at_rest, "at rest")
        counts = Counter(each["id"] for each in collector.results())
        of_session = [each for each in collector.results() if each["level"] == "session"]
        residual = collector.gauge("accounting_residual")
        with collector.database() as database:
            query = "SELECT sum(count) FROM series WHERE name = 'pandaeval.evaluations'"
            (evaluated,) = database.execute(query).fetchone()
    final = [each["metric"] for each in of_session if each["final"]]
    interim = [each["metric"] for each in of_session if not each["final"]]
    assert "agent_reliability" in final
    assert "agent_reliability" in interim
    assert max(counts.values()) == 1
    assert len(final) == len(set(final))
    assert len(interim) == len(set(interim))
    assert evaluated == len(counts) - len(interim)
    assert residual == 0
