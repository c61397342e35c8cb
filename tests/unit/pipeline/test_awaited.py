"""Sessions that wait for judges: scored once when the answers are there, and not forever."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from pathlib import Path

from pandaeval_collector.base.telemetry import Telemetry
from pandaeval_collector.jobs import Attempts, Patience, Runner
from pandaeval_collector.pipeline.judge_wait import Awaited
from pandaeval_collector.pipeline.line.line import Line
from pandaeval_collector.pipeline.pipeline import Pipeline
from pandaeval_collector.pipeline.timing import Timing
from pandaeval_collector.scoring.evaluator import Evaluator, EvaluatorSettings, JudgeSettings
from pandaeval_collector.store import Store
from pandaeval_otel.assembly import DueSession
from pandaeval_otel.model import Trigger
from support.doors import until
from support.embedder import WordEmbedder
from support.judged import ScriptedConfidence
from support.line import in_session
from support.made_traces import Composer

A, B = DueSession("a", Trigger.IDLE), DueSession("b", Trigger.EXPLICIT)


class Pending:
    """Sessions in which a judge has yet to be asked; counts how often that was looked up."""

    def __init__(self, *ids: str) -> None:
        self.ids, self.looks = set(ids), 0

    def __call__(self, of: Collection[str]) -> set[str]:
        self.looks += 1
        return self.ids & set(of)


def test_who_waits_for_nothing_is_ready_at_once() -> None:
    assert Awaited(Pending(), 60.0).ready([A, B], 0.0) == [A, B]


def test_a_session_is_ready_when_its_judges_have_answered() -> None:
    pending = Pending("a")
    awaited = Awaited(pending, 60.0)
    assert awaited.ready([A, B], 0.0) == [B]
    assert ("a" in awaited, "b" in awaited, len(awaited)) == (True, False, 1)
    assert awaited.ready([], 10.0) == []
    pending.ids.clear()
    assert awaited.ready([], 20.0) == [A]
    assert awaited.ready([], 30.0) == ()


def test_it_is_not_looked_up_all_the_time() -> None:
    pending = Pending("a")
    awaited = Awaited(pending, 60.0)
    for tick in range(100):
        awaited.ready([A] if not tick else [], tick * 0.05)
    assert pending.looks <= 11


def test_no_session_waits_forever() -> None:
    awaited = Awaited(Pending("a"), 60.0)
    awaited.ready([A], 0.0)
    assert awaited.ready([A], 59.0) == [], "being over once more does not make it wait anew"
    assert awaited.ready([], 60.0) == [A]


def test_a_session_that_goes_on_was_not_over() -> None:
    awaited = Awaited(Pending("a"), 60.0)
    awaited.ready([A], 0.0)
    awaited.goes_on("a")
    assert not awaited
    awaited.ready([A], 100.0)
    assert awaited.ready([], 150.0) == [], "and waits for its full time when it is over again"


def test_without_a_wait_nothing_is_looked_up() -> None:
    pending = Pending("a")
    assert Awaited(pending, 0.0).ready([A], 0.0) == [A]
    assert not pending.looks


def test_at_the_end_all_are_let_go() -> None:
    awaited = Awaited(Pending("a"), 60.0)
    awaited.ready([A], 0.0)
    assert awaited.take_all(Trigger.SHUTDOWN) == [DueSession("a", Trigger.SHUTDOWN)]
    assert not awaited


async def test_a_session_is_scored_once_though_its_judge_is_slow(tmp_path: Path) -> None:
    store = Store(tmp_path, "off")
    settings = EvaluatorSettings({"trace.confidence", "session.agent_consistency"}, judge=JudgeSettings("m", delay=0.0))
    evaluator = Evaluator(WordEmbedder(), settings)
    line = Line(store, evaluator)
    clock = [0.0]
    pipeline = Pipeline(store, line, Timing(upkeep=1e9, judge_wait=600.0), clock=lambda: clock[0])
    caller = ScriptedConfidence()
    runner = Runner(store, Attempts(store, line, evaluator, caller, pipeline.commit, Telemetry(), Patience()))
    await pipeline.start()
    composer = Composer(5)
    made = [in_session(composer.trace(), "s") for _ in range(6)]
    for each in made:
        await pipeline.traces(each.request().SerializeToString())
    clock[0] += 300.0
    await until(lambda: not pipeline.open_traces)
    clock[0] += 1000.0
    before = pipeline.rounds
    await until(lambda: pipeline.rounds > before + 2)
    assert pipeline.open_sessions == 1
    assert not [row for row in store.results_after(0) if row.metric == "session.agent_consistency"]
    await runner.start()
    await until(lambda: not store.jobs.waiting())
    clock[0] += 1.0
    await until(lambda: not pipeline.open_sessions)
    await runner.stop()
    await pipeline.stop()
    scored = [row for row in store.results_after(0) if row.metric == "session.agent_consistency"]
    store.close()
    assert len(scored) == 1
    assert b'"outcome":"scored"' in scored[0].body
    assert asyncio.all_tasks() == {asyncio.current_task()}
