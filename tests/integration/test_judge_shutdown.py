"""Judge jobs when a collector drains."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.collector import CollectorProcess
from support.judge import JudgeServer
from support.made_traces import Composer
from support.senders import HttpSender


@pytest.mark.slow
def test_judge_jobs_survive_a_shutdown_that_completes_all_traces(tmp_path: Path) -> None:
    with JudgeServer() as server:
        settings = {
            "PANDAEVAL_JUDGE__DETAIL": "all",
            "PANDAEVAL_JUDGE__MODEL": "openai/gpt-4o-mini",
            "PANDAEVAL_JUDGE__API_BASE": server.url,
            "PANDAEVAL_JUDGE__API_KEY_ENV": "PROOF_KEY",
            "PANDAEVAL_JUDGE__DELAY": "1h",
            "PANDAEVAL_METRICS__ENABLED": "[trace.coherence, trace.confidence, session.agent_consistency]",
            "PANDAEVAL_STORE__ON_SHUTDOWN": "decide",
            "PANDAEVAL_CLOSE__QUIET": "10m",
            "PANDAEVAL_CLOSE__IDLE": "10m",
            "PROOF_KEY": "sk-proof",
        }
        with CollectorProcess(tmp_path, settings, fresh=True) as collector:
            collector.start()
            composer, door = Composer(5), HttpSender(collector.http)
            for _ in range(6):
                assert door.send(composer.trace().request()).acknowledged
            door.close()
            assert collector.stop() == 0
            with collector.database() as database:
                jobs = dict(database.execute("SELECT state, count(*) FROM jobs GROUP BY state"))
            assert set(jobs) == {"due"}
            results = [json.loads(line) for line in collector.results_file.read_text().splitlines()]
            assert len({each["trace_id"] for each in results if each["metric"] == "coherence"}) == 6
            assert {each["why"] for each in results if each["metric"] == "confidence"} <= {"no_content"}
            sessions = {each["why"] for each in results if each["metric"] == "agent_consistency"}
            assert "insufficient_evidence" in sessions
            collector.start()
            with collector.database() as database:
                assert dict(database.execute("SELECT state, count(*) FROM jobs GROUP BY state")) == jobs
            assert collector.stop() == 0
        assert not server.requests, "no judge call may happen during the shutdown"
