"""A judge in the shadow of the live one: its verdicts on live traffic are a run and series of their own."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import orjson
import pytest

from pandaeval_collector.exporters.delivery.emitter import Emitter
from pandaeval_collector.jobs.attempts import Attempts
from pandaeval_collector.jobs.runner import Runner
from pandaeval_collector.jobs.setup import StoredMemory, desk_of
from pandaeval_collector.jobs.shadow import as_judge, open_shadow
from pandaeval_collector.judge.call import CallFailedError, CallFailure, ModelAnswer, ModelCall
from pandaeval_collector.pipeline.line.line import Line
from pandaeval_collector.runs.compare import compared
from pandaeval_collector.runs.spec import RunSpec
from pandaeval_collector.scoring.evaluator import Evaluator, EvaluatorSettings, JudgeSettings
from pandaeval_collector.scoring.registry import registry
from pandaeval_collector.store.finding import Finder
from pandaeval_collector.store.listed import Wanted
from support.asked import ScriptedCaller
from support.line import RunningLine
from support.line_here import LineHere, filed_through
from support.made_traces import Composer

LIVE, OTHER = "openai/small", "anthropic/large"
SETTINGS = EvaluatorSettings(enabled=["trace.confidence"], judge=JudgeSettings(LIVE, delay=0.0))
TRACES = 6


class _TwoModels(ScriptedCaller):
    """The one in the shadow says something else, or is away."""

    def __init__(self) -> None:
        super().__init__({"confidence": {"reason": "It does not waver.", "confidence": 0.9}})
        self._other = ScriptedCaller({"confidence": {"reason": "It wavers.", "confidence": 0.3}})
        self.asked_of: Counter[str] = Counter()
        self.away = self.broken = False

    async def complete(self, call: ModelCall) -> ModelAnswer:
        self.asked_of[call.model] += 1
        if call.model != OTHER:
            return await super().complete(call)
        if self.broken:
            raise ZeroDivisionError("a bug")
        if self.away:
            raise CallFailedError(CallFailure.UNAVAILABLE, "away")
        return await self._other.complete(call)


@pytest.fixture
async def running(tmp_path: Path) -> AsyncIterator[RunningLine]:
    async with RunningLine(tmp_path, settings=SETTINGS) as line:
        composer = Composer(3)
        for _ in range(TRACES):
            await line.send(composer.trace())
        await line.wait(200.0)
        yield line


async def _judge(
    running: RunningLine,
    caller: _TwoModels,
    model: str | None = OTHER,
    share: float = 1.0,
    judge: EvaluatorSettings = SETTINGS,
) -> None:
    """Runs all jobs as a collector does after its start."""
    store, evaluator = running.store, Evaluator(running.embedder, judge)
    desk = desk_of(caller, judge.judge, StoredMemory(store, running.telemetry))
    shadow = await open_shadow(store, desk, evaluator, running.telemetry, model, share)
    line = LineHere(Line(store.reads, evaluator, Emitter()))
    filing, scores = filed_through(running.pipeline, line), line.line.scores
    attempts = Attempts(store, scores, evaluator, desk, filing, running.telemetry, shadow=shadow)
    await Runner(store, attempts).drain()


def _counted(running: RunningLine, name: str) -> int:
    return sum(int(row.count) for row in running.store.reads.tally.page("otlp", name))


async def test_its_verdicts_are_a_run_that_is_compared_with_the_live_ones(running: RunningLine) -> None:
    caller = _TwoModels()
    await _judge(running, caller)
    assert caller.asked_of == {LIVE: TRACES, OTHER: TRACES}
    [run] = running.store.runs.newest()
    assert (run.state, run.total, run.done, run.calls) == ("standing", TRACES, TRACES, TRACES)
    spec = RunSpec.from_json(run.body)
    assert (spec.model, spec.metrics) == (OTHER, ("trace.confidence",))
    [found] = compared(running.store.runs, run, None)
    assert (found.pairs, found.differing) == (TRACES, TRACES)
    assert found.difference is not None
    assert found.difference.mean == pytest.approx(0.6)
    version = registry(())["trace.confidence"].version
    assert found.versions == ([f"{version} {OTHER}"], [f"{version} {LIVE}"])


async def test_it_touches_no_live_series_and_no_live_result(running: RunningLine) -> None:
    await _judge(running, _TwoModels(), model=None)
    live = _counted(running, "pandaeval.evaluation.score"), _counted(running, "pandaeval.evaluations")
    before = running.store.runs.newest()
    assert (before, _counted(running, "pandaeval.shadow.score")) == ([], 0)
    composer = Composer(4)
    for _ in range(TRACES):
        await running.send(composer.trace())
    await running.wait(200.0)
    await _judge(running, _TwoModels())
    told = running.store.reads.tally.page("otlp", "pandaeval.shadow.score")
    assert sum(row.count for row in told) == TRACES
    assert all(OTHER in row.attributes for row in told)
    assert _counted(running, "pandaeval.evaluation.score") == 2 * live[0] == 2 * TRACES
    assert _counted(running, "pandaeval.evaluations") == 2 * live[1]
    for row in running.store.reads.tally.page("otlp", "pandaeval.evaluation.score"):
        assert OTHER not in row.attributes


async def test_its_results_have_the_ids_that_they_would_have_as_the_judge(running: RunningLine, tmp_path: Path) -> None:
    await _judge(running, _TwoModels())
    bodies, _ = running.store.runs.results(running.store.runs.newest()[0].no)
    async with RunningLine(tmp_path / "other", settings=as_judge(SETTINGS, OTHER)) as other:
        composer = Composer(3)
        for _ in range(TRACES):
            await other.send(composer.trace())
        await other.wait(200.0)
        await _judge(other, _TwoModels(), model=None, judge=as_judge(SETTINGS, OTHER))
        finder = Finder(tmp_path / "other")
        live = {row["id"] for row in finder.results(Wanted()).rows}
        finder.close()
    assert {orjson.loads(body)["id"] for body in bodies} == live
    assert len(live) == TRACES


async def test_a_share_is_of_the_same_sessions_and_costs_no_more(running: RunningLine) -> None:
    caller = _TwoModels()
    await _judge(running, caller, share=0.0)
    assert caller.asked_of == {LIVE: TRACES}
    assert running.store.runs.newest()[0].total == 0


async def test_when_it_is_away_the_live_judge_is_not(running: RunningLine) -> None:
    caller = _TwoModels()
    caller.away = True
    await _judge(running, caller)
    assert running.telemetry.total("pandaeval.judge.shadow", "not_asked") == TRACES
    assert running.telemetry.total("pandaeval.jobs", "done") == TRACES
    assert running.store.runs.newest()[0].done == 0


async def test_when_it_breaks_the_live_verdict_stands_and_is_asked_for_once(running: RunningLine) -> None:
    caller = _TwoModels()
    caller.broken = True
    await _judge(running, caller)
    assert running.telemetry.total("pandaeval.judge.shadow", "failed") == TRACES
    assert running.telemetry.total("pandaeval.jobs", "done") == TRACES
    assert caller.asked_of == {LIVE: TRACES, OTHER: TRACES}
    assert _counted(running, "pandaeval.evaluation.score") == TRACES
    assert running.store.jobs.waiting() == 0


async def test_another_model_ends_its_run_and_the_first_one_goes_on_with_it(running: RunningLine) -> None:
    await _judge(running, _TwoModels())
    for model, states in (("openai/third", ["standing", "done"]), (OTHER, ["done", "standing"]), (None, ["done"] * 2)):
        await _judge(running, _TwoModels(), model=model)
        assert [run.state for run in running.store.runs.newest()] == states
    assert running.store.runs.newest()[1].done == TRACES
