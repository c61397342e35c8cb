"""Decisions commit one after the other."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Sequence
from concurrent.futures import Future
from functools import partial
from pathlib import Path

import pytest

import pandaeval_collector.pipeline.deciding as deciding_module
from pandaeval_collector.pipeline.decision import Decision
from pandaeval_collector.pipeline.line.decision import Conclusion
from pandaeval_collector.pipeline.line.line import Line
from pandaeval_collector.store import ResultRow, WriteSet
from support.line import RunningPipeline, as_file, in_session
from support.made_traces import Composer, MadeTrace
from support.receivers import until

QUIET = 11.0
"""Seconds from a root's end until its trace is due."""


class Held:
    """Commits that wait for :meth:`go`."""

    def __init__(self, line: RunningPipeline, monkeypatch: pytest.MonkeyPatch) -> None:
        self._commit = line.store.commit
        self.waiting: list[tuple[WriteSet, Future[list[ResultRow]]]] = []
        self.filed: list[int] = []
        """Traces of each batch that was filed."""
        self.all = True
        monkeypatch.setattr(line.store, "commit", self._hold)
        file = Line.file

        def watched(of: Line, due: Sequence[object], *more: object) -> Conclusion:
            self.filed.append(len(due))
            return file(of, due, *more)  # type: ignore[arg-type]

        monkeypatch.setattr(Line, "file", watched)

    async def until_filed(self, batches: int) -> None:
        await until(lambda: len(self.filed) >= batches and bool(self.waiting))

    def go(self, error: Exception | None = None) -> None:
        changes, future = self.waiting.pop(0)
        if error is None:
            future.set_result(self._commit(changes).result(10))
        else:
            future.set_exception(error)

    def let_all_through(self) -> None:
        self.all = False
        while self.waiting:
            self.go()

    def _hold(self, changes: WriteSet) -> Future[list[ResultRow]]:
        if not self.all:
            return self._commit(changes)
        self.waiting.append((changes, Future()))
        return self.waiting[-1][1]


async def touching(session_id: str) -> Decision:
    return Decision(WriteSet(touched={session_id}))


def made(number: int) -> list[MadeTrace]:
    composer = Composer(4)
    return [in_session(composer.trace(4), "s") for _ in range(number)]


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deciding_module, "BATCH_TRACES", 3)


async def test_each_batch_is_committed_before_the_next_batch_is_decided(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    traces = made(9)
    async with RunningPipeline(tmp_path) as line:
        held = Held(line, monkeypatch)
        for trace in traces:
            await line.send(trace)
        line.now += QUIET
        for batches in (1, 2, 3):
            await held.until_filed(batches)
            await asyncio.sleep(0.1)  # enough time for another batch
            assert (held.filed, len(held.waiting)) == ([3] * batches, 1)
            assert line.pipeline.open_traces == 9 - 3 * (batches - 1)
            committed = {trace.trace_id.hex() for trace in traces[: 3 * (batches - 1)]}
            assert {each["trace_id"] for each in line.results()} == committed
            held.go()
        held.let_all_through()
        await line.settle()
        assert line.standing() == as_file(traces)
        assert {each["revision"] for each in line.results()} == {1}


async def test_traces_of_a_batch_that_cannot_be_committed_are_decided_one_by_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    traces = made(6)
    async with RunningPipeline(tmp_path) as line:
        held = Held(line, monkeypatch)
        for trace in traces:
            await line.send(trace)
        line.now += QUIET
        await held.until_filed(1)
        held.go(sqlite3.DatabaseError("database disk image is malformed"))
        await held.until_filed(2)
        held.let_all_through()
        await line.settle()
        assert held.filed == [3, 1, 1, 1, 3]
        assert line.standing() == as_file(traces)
        assert line.telemetry.total("pandaeval.traces", "failed") == 0
        assert line.telemetry.total("pandaeval.store.errors", "left") == 0


async def test_a_decision_is_committed_even_if_its_caller_is_cancelled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with RunningPipeline(tmp_path) as line:
        held = Held(line, monkeypatch)
        first = asyncio.create_task(line.pipeline.commit(partial(touching, "a")))
        await until(lambda: bool(held.waiting))
        first.cancel()
        second = asyncio.create_task(line.pipeline.commit(partial(touching, "b")))
        await asyncio.sleep(0.05)
        assert len(held.waiting) == 1
        held.let_all_through()
        await second
        assert set(line.store.reads.open_sessions()) == {"a", "b"}


async def test_traces_that_become_due_during_a_commit_are_in_the_next_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    traces = made(3)
    async with RunningPipeline(tmp_path) as line:
        held = Held(line, monkeypatch)
        await line.send(traces[0])
        line.now += QUIET
        await held.until_filed(1)
        for trace in traces[1:]:
            await line.send(trace)
            line.now += QUIET  # they are due at different times
        held.let_all_through()
        await line.settle()
        assert held.filed == [1, 2]
        assert line.standing() == as_file(traces)
