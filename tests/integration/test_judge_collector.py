"""Dead judge jobs are visible and can be retried."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from pandaeval_collector.cli import app
from support.collector import CollectorProcess
from support.judge import FAULTS, Behave, JudgeAnswer, JudgeServer, always, good
from support.made_traces import Composer
from support.senders import HttpSender

KEY = "sk-canary-0123456789abcdef"
REFUSED: Behave = always(JudgeAnswer(status=400))


@pytest.fixture
def judged(tmp_path: Path) -> Iterator[tuple[JudgeServer, CollectorProcess]]:
    with JudgeServer(REFUSED) as server:
        settings = {
            "PANDAEVAL_JUDGE__DETAIL": "all",
            "PANDAEVAL_JUDGE__MODEL": "openai/gpt-4o-mini",
            "PANDAEVAL_JUDGE__API_BASE": server.url,
            "PANDAEVAL_JUDGE__API_KEY_ENV": "CANARY_KEY",
            "PANDAEVAL_JUDGE__DELAY": "0s",
            "PANDAEVAL_METRICS__ENABLED": "[trace.confidence, session.agent_consistency]",
            "CANARY_KEY": KEY,
        }
        with CollectorProcess(tmp_path, settings) as collector:
            yield server, collector.start()


def _send(collector: CollectorProcess, count: int) -> None:
    composer, door = Composer(5), HttpSender(collector.http)
    for _ in range(count):
        assert door.send(composer.trace().request()).acknowledged
    door.close()


def _states(collector: CollectorProcess) -> dict[str, int]:
    with collector.database() as database:
        return dict(database.execute("SELECT state, count(*) FROM jobs GROUP BY state"))


def _jobs(collector: CollectorProcess, *arguments: str) -> str:
    environ = {"PANDAEVAL_DATA": str(collector.data), "COLUMNS": "300"}
    outcome = CliRunner().invoke(app, ["jobs", *arguments], env=environ)
    assert outcome.exit_code == 0, outcome.output
    return outcome.output


def _results(collector: CollectorProcess, metric: str) -> list[dict[str, Any]]:
    return [result for result in collector.results() if result["metric"] == metric]


def test_dead_judge_jobs_can_be_retried_while_the_collector_runs(
    judged: tuple[JudgeServer, CollectorProcess],
) -> None:
    server, collector = judged
    _send(collector, 6)
    collector.until(lambda: set(_states(collector)) == {"dead"} and collector.at_rest(), "given up", 120.0)
    dead = _states(collector)["dead"]
    failed = _results(collector, "confidence")
    assert Counter(each["why"] for each in failed if each["why"] != "no_content") == {"judge_failed": dead}
    assert "insufficient_evidence" in {each["why"] for each in _results(collector, "agent_consistency")}

    with collector.database() as database:
        ids = [id_ for (id_,) in database.execute("SELECT id FROM jobs")]

    server.behave = good
    assert f"{dead} jobs will run again" in _jobs(collector, "retry")
    collector.until(lambda: _states(collector) == {"done": dead} and collector.at_rest(), "judged", 60.0)
    newest = {each["trace_id"]: each for each in _results(collector, "confidence") if each["why"] != "no_content"}
    assert {(each["outcome"], each["score"], each["revision"]) for each in newest.values()} == {("scored", 0.8, 2)}
    assert {each["id"] for each in newest.values()} == set(ids)
    sessions = {each["session_id"]: each["outcome"] for each in _results(collector, "agent_consistency")}
    assert "scored" in sessions.values()

    assert collector.stop() == 0
    held = [path for path in collector.folder.rglob("*") if path.is_file() and KEY.encode() in path.read_bytes()]
    assert not held, "no file may contain the key"


@pytest.mark.slow  # fast variant: tests/unit/pipeline/test_waiting_sessions.py
def test_a_session_is_scored_once_after_the_judge_has_answered(judged: tuple[JudgeServer, CollectorProcess]) -> None:
    server, collector = judged
    server.behave = lambda number, body: JudgeAnswer(
        good(number, body).text, hang_s=2.0
    )  # longer than the session idle time
    _send(collector, 6)
    collector.until(lambda: set(_states(collector)) == {"done"} and collector.at_rest(), "judged", 120.0)
    sessions = _results(collector, "agent_consistency")
    assert sessions
    assert len(sessions) == len({each["session_id"] for each in sessions})
    assert "insufficient_evidence" not in {each["why"] for each in sessions}


@pytest.mark.slow  # waits for a cool-down
def test_jobs_survive_a_bad_key_and_are_judged_after_it_is_fixed(judged: tuple[JudgeServer, CollectorProcess]) -> None:
    server, collector = judged
    server.behave = FAULTS["401"]
    _send(collector, 3)
    collector.until(lambda: len(server.requests) > 0 and "due" in _states(collector), "refused", 120.0)
    server.behave = good
    collector.until(lambda: set(_states(collector)) == {"done"}, "judged", 120.0)
    assert "dead" not in _states(collector)
    assert "judge_failed" not in {each["why"] for each in _results(collector, "confidence")}
