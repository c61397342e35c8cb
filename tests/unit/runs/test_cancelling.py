"""Cancelling runs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pandaeval_collector.base.runtime import calls
from pandaeval_collector.runs.manager import EvaluationRuns
from pandaeval_collector.runs.spec import RunSpec
from pandaeval_collector.store import Store
from pandaeval_collector.store.runs import RunRow
from support.evaluation_runs import evaluation_runs
from support.line import RunningPipeline
from support.made_traces import Composer

TRACES = 24


async def _until(runs: EvaluationRuns, run: RunRow, holds: Callable[[RunRow], object]) -> RunRow:
    for _ in range(3000):
        now = runs.store.runs.find(run.id)
        assert now is not None
        if holds(now):
            return now
        await asyncio.sleep(0.02)
    raise AssertionError(now)


def test_a_cancelled_run_can_neither_begin_nor_end(tmp_path: Path) -> None:
    store = Store(tmp_path, "off")
    run = store.runs.create(RunSpec(("trace.tool_loop",)).to_json()).result()
    store.runs.plan(run.no, [(1, 0)], run.upto, False).result()
    assert store.runs.begin(run.no).result() == store.runs.begin(run.no).result() == 1, "a restart resumes the run"
    assert store.runs.cancel(run.id).result()
    assert not store.runs.begin(run.no).result()
    assert not store.runs.end(run.no).result()
    store.close()


async def test_a_run_can_be_cancelled_while_its_process_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    starting, begun, go = calls.start_with, asyncio.Event(), asyncio.Event()

    async def held(*arguments: Any) -> Any:
        begun.set()
        await go.wait()
        return await starting(*arguments)

    async with RunningPipeline(tmp_path / "live") as line:
        composer = Composer(11)
        for _ in range(TRACES):
            await line.send(composer.trace())
        await line.settle()
        monkeypatch.setattr(calls, "start_with", held)
        runs = evaluation_runs(line.store)
        await runs.start()
        run = await runs.submit(RunSpec(("trace.tool_loop",)))
        await begun.wait()
        assert await runs.cancel(run.id)
        following = await runs.submit(RunSpec(("trace.tool_loop",)))  # not blocked by the cancelled process
        begun.clear()
        await begun.wait()
        go.set()
        assert (await _until(runs, following, lambda now: now.ended)).done == TRACES
        cancelled = runs.store.runs.find(run.id)
        assert cancelled is not None
        assert (cancelled.state, cancelled.done, cancelled.error) == ("cancelled", 0, "")
        await runs.stop()
