"""Sessions that wait for judges, with a limit."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest

from pandaeval_collector.base.telemetry import Telemetry
from pandaeval_collector.jobs.attempts import Attempts
from pandaeval_collector.jobs.outcome import Patience
from pandaeval_collector.jobs.runner import Runner
from pandaeval_collector.jobs.setup import StoredMemory
from pandaeval_collector.judge.client import JudgeClient
from pandaeval_collector.pipeline.line.line import Line
from pandaeval_collector.pipeline.open_sessions import OpenSessions
from pandaeval_collector.pipeline.pipeline import Pipeline
from pandaeval_collector.pipeline.timing import Timing
from pandaeval_collector.scoring.evaluator import Evaluator, EvaluatorSettings, JudgeSettings
from pandaeval_collector.store import Store
from pandaeval_otel.model import Trigger
from support.chained import turn
from support.embedder import WordEmbedder
from support.judged import ScriptedConfidence
from support.line import in_session
from support.line_here import LineHere, filed_through
from support.made_traces import Composer, MadeTrace
from support.receivers import until


class Pending:
    """Sessions with open questions; counts lookups."""

    def __init__(self, *ids: str) -> None:
        self.ids, self.looks = set(ids), 0

    def __call__(self, of: Collection[str]) -> set[str]:
        self.looks += 1
        return self.ids & set(of)


def awaiting(pending: Pending, longest: float = 60.0) -> OpenSessions:
    return OpenSessions(Timing(session_idle=0.0, judge_wait=longest), pending)


def ready(sessions: OpenSessions, over: Collection[str], now: float) -> list[str]:
    """Return the sessions to score at ``now``."""
    for session_id in over:
        sessions.end(session_id, now)
    due, quiet = sessions.take_due(now)
    assert not quiet
    sessions.closed(due)
    return sorted(due)


def test_a_session_without_open_judge_jobs_is_ready_at_once() -> None:
    assert ready(awaiting(Pending()), "ab", 0.0) == ["a", "b"]


def test_a_session_is_ready_when_its_judges_have_answered() -> None:
    pending = Pending("a")
    awaited = awaiting(pending)
    assert ready(awaited, "ab", 0.0) == ["b"]
    assert ("a" in awaited, "b" in awaited, len(awaited)) == (True, False, 1)
    assert ready(awaited, "", 10.0) == []
    pending.ids.clear()
    assert ready(awaited, "", 20.0) == ["a"]
    assert ready(awaited, "", 30.0) == []


def test_open_judge_jobs_are_not_looked_up_at_every_tick() -> None:
    pending = Pending("a")
    awaited = awaiting(pending)
    for tick in range(100):
        ready(awaited, "a" if not tick else "", tick * 0.05)
    assert pending.looks <= 11


def test_a_session_waits_for_judges_only_up_to_the_limit() -> None:
    awaited = awaiting(Pending("a"))
    ready(awaited, "a", 0.0)
    assert ready(awaited, "a", 59.0) == [], "a second end does not restart the wait"
    assert ready(awaited, "", 60.0) == ["a"]


def test_a_session_that_continues_stops_waiting_for_its_judges() -> None:
    awaited = OpenSessions(Timing(judge_wait=60.0), Pending("a"))
    ready(awaited, "a", 0.0)
    awaited.touch("a", 1.0, goes_on=False)
    assert ready(awaited, "", 30.0) == []
    awaited.touch("a", 50.0)
    assert ready(awaited, "", 90.0) == [], "the wait has stopped"
    assert ready(awaited, "a", 100.0) == []
    assert ready(awaited, "", 150.0) == [], "a later end starts a full wait"
    assert ready(awaited, "", 160.0) == ["a"]


def test_without_a_judge_wait_no_judge_jobs_are_looked_up() -> None:
    pending = Pending("a")
    assert ready(awaiting(pending, 0.0), "a", 0.0) == ["a"]
    assert not pending.looks


def test_a_shutdown_closes_all_waiting_sessions() -> None:
    awaited = awaiting(Pending("a"))
    ready(awaited, "a", 0.0)
    assert awaited.take_all(Trigger.SHUTDOWN) == {"a": Trigger.SHUTDOWN}
    assert "a" in awaited, "it is being closed"
    awaited.closed("a")
    assert not awaited


@pytest.mark.parametrize("ended", [False, True])
def test_the_close_trigger_is_explicit_idle_or_max_age(ended: bool) -> None:
    sessions = OpenSessions(Timing(session_idle=10.0, session_max_age=25.0), Pending())
    for now in (0.0, 9.0, 18.0, 24.0):
        assert sessions.take_due(now) == ({}, [])
        sessions.touch("aged", now)
    sessions.touch("idle", 15.0)
    if ended:
        sessions.end("aged", 24.5)
    assert sessions.take_due(25.0) == (
        {"aged": Trigger.EXPLICIT if ended else Trigger.MAX_AGE, "idle": Trigger.IDLE},
        [],
    )


def test_a_session_can_reopen_while_it_is_being_closed() -> None:
    sessions = OpenSessions(Timing(session_idle=10.0), Pending())
    sessions.touch("a", 0.0)
    assert sessions.take_due(10.0)[0] == {"a": Trigger.IDLE}
    sessions.touch("a", 11.0)
    sessions.closed("a")
    assert "a" in sessions
    assert sessions.take_due(20.0)[0] == {}
    assert sessions.take_due(21.0)[0] == {"a": Trigger.IDLE}


@pytest.fixture
async def judged(tmp_path: Path) -> AsyncIterator[Judged]:
    made = Judged(tmp_path)
    await made.pipeline.start()
    yield made
    await made.runner.stop()
    await made.pipeline.stop()
    made.store.close()
    assert asyncio.all_tasks() == {asyncio.current_task()}


class Judged:
    """A pipeline whose sessions wait 600 s for :meth:`answer`."""

    def __init__(self, folder: Path) -> None:
        self.store = Store(folder, "off")
        metrics = {"trace.confidence", "session.agent_consistency"}
        settings = EvaluatorSettings(metrics, judge=JudgeSettings("m", delay=0.0))
        evaluator = Evaluator(WordEmbedder(), settings)
        line = LineHere(Line(self.store.reads, evaluator))
        self._now = 0.0
        self.pipeline = Pipeline(self.store, line, Timing(upkeep=1e9, judge_wait=600.0), clock=lambda: self._now)
        caller = ScriptedConfidence()
        filing = filed_through(self.pipeline, line)
        desk = JudgeClient(caller, StoredMemory(self.store, Telemetry()))
        attempts = Attempts(self.store, line.line.scores, evaluator, desk, filing, Telemetry(), Patience())
        self.runner = Runner(self.store, attempts)

    async def send(self, *traces: MadeTrace) -> None:
        for each in traces:
            await self.pipeline.traces(each.request().SerializeToString())
        self._now += 300.0
        await until(lambda: not self.pipeline.open_traces)

    async def wait(self, seconds: float) -> None:
        self._now += seconds
        before = self.pipeline.rounds
        await until(lambda: self.pipeline.rounds > before + 2)

    async def answer(self) -> None:
        """Answer all questions and wait for session scores."""
        await self.runner.start()
        await until(lambda: not self.store.jobs.waiting())
        await self.wait(1.0)
        while self.pipeline.open_sessions:
            await self.wait(1000.0)

    def consistency(self) -> list[dict[str, Any]]:
        """Return the session's results, oldest first."""
        rows = self.store.reads.results_after(0)
        return [orjson.loads(row.body) for row in rows if row.metric == "session.agent_consistency"]


async def test_a_session_is_scored_once_even_if_its_judge_is_slow(judged: Judged) -> None:
    composer = Composer(5)
    await judged.send(*(in_session(composer.trace(), "s") for _ in range(6)))
    await judged.wait(1000.0)
    assert judged.pipeline.open_sessions == 1
    assert not judged.consistency()
    await judged.answer()
    assert [each["outcome"] for each in judged.consistency()] == ["scored"]


async def test_a_result_of_an_older_revision_does_not_replace_the_judges_answer(judged: Judged) -> None:
    """The root arrives first, the call late."""
    whole = turn(1, session="s")
    await judged.send(replace(whole, spans=whole.spans[-1:]))
    await judged.send(replace(whole, spans=whole.spans[:-1]))
    await judged.wait(1000.0)
    await judged.wait(1000.0)
    assert [each["outcome"] for each in judged.consistency()] == ["unscored"]
    await judged.answer()
    last = judged.consistency()[-1]
    assert (last["outcome"], last["score"]) == ("scored", pytest.approx(0.4))
