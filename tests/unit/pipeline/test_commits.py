"""A decision is made while the one before is being committed: on what that one changes, and again if it fails."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
import threading
from collections.abc import AsyncIterator, Sequence
from concurrent.futures import Future
from pathlib import Path

import pandaeval_collector.pipeline.deciding as deciding_module
import pytest
from pandaeval_collector.line.line import Decision, Line
from pandaeval_collector.store import ResultRow, WriteSet
from support.doors import until
from support.line import RunningLine, as_file, in_session
from support.made_traces import Composer, MadeTrace

from pandaeval_otel.assembly import CloseRules

QUIET = 11.0


class Held:
    """Commits of a line that wait for the test; the next is let through by :meth:`go`."""

    def __init__(self, line: RunningLine, monkeypatch: pytest.MonkeyPatch) -> None:
        self._commit = line.store.commit
        self.waiting: list[tuple[WriteSet, Future[list[ResultRow]]]] = []
        self.filed: list[int] = []
        """Traces of each batch that was filed."""
        self.all = True
        monkeypatch.setattr(line.store, "commit", self._hold)
        file = Line.file

        def watched(of: Line, due: Sequence[object], *more: object) -> Decision:
            self.filed.append(len(due))
            return file(of, due, *more)  # type: ignore[arg-type]

        monkeypatch.setattr(Line, "file", watched)

    async def until_filed(self, batches: int) -> None:
        await until(lambda: len(self.filed) >= batches and bool(self.waiting))

    def go(self, error: Exception | None = None) -> None:
        changes, told = self.waiting.pop(0)
        if error is None:
            told.set_result(self._commit(changes).result(10))
        else:
            told.set_exception(error)

    def let_all_through(self) -> None:
        self.all = False
        while self.waiting:
            self.go()

    def _hold(self, changes: WriteSet) -> Future[list[ResultRow]]:
        if not self.all:
            return self._commit(changes)
        self.waiting.append((changes, Future()))
        return self.waiting[-1][1]


def made(number: int) -> list[MadeTrace]:
    composer = Composer(4)
    return [in_session(composer.trace(4), "s") for _ in range(number)]


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deciding_module, "_BATCH", 3)


@contextlib.asynccontextmanager
async def second_of(
    batches: int, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[tuple[RunningLine, Held, list[MadeTrace]]]:
    """A line with batches of three traces; the second is being committed. (Nothing is begun beside the first: it is a
    time to look for sessions that are over.)"""
    traces = made(3 * batches)
    async with RunningLine(folder) as line:
        held = Held(line, monkeypatch)
        try:
            for trace in traces:
                await line.send(trace)
            line.now += QUIET
            await held.until_filed(1)
            held.go()
            await held.until_filed(3)
            yield line, held, traces
        finally:
            held.let_all_through()


async def test_the_next_is_decided_meanwhile_and_committed_afterwards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with second_of(4, tmp_path, monkeypatch) as (line, held, traces):
        assert len(held.waiting) == 1
        assert line.pipeline.open_traces == 9
        assert {each["trace_id"] for each in line.results()} <= {trace.trace_id.hex() for trace in traces[:3]}
        held.go()
        await held.until_filed(4)
        assert line.pipeline.open_traces == 6
        assert {each["trace_id"] for each in line.results()} <= {trace.trace_id.hex() for trace in traces[:6]}
        held.let_all_through()
        await line.settle()
        assert held.filed == [3, 3, 3, 3]
        assert line.standing() == as_file(traces)
        assert {each["revision"] for each in line.results()} == {1}


async def test_what_rested_on_one_that_failed_is_decided_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with second_of(3, tmp_path, monkeypatch) as (line, held, traces):
        held.go(sqlite3.DatabaseError("database disk image is malformed"))
        await held.until_filed(4)
        held.let_all_through()
        await line.settle()
        assert held.filed == [3, 3, 3, 3, 1, 1, 1]
        assert line.standing() == as_file(traces)
        assert line.telemetry.total("pandaeval.traces", "failed") == 0
        assert line.telemetry.total("pandaeval.store.errors", "left") == 0


async def test_one_whose_caller_is_gone_is_committed_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with RunningLine(tmp_path) as line:
        held = Held(line, monkeypatch)
        first = asyncio.create_task(line.pipeline.commit(lambda: Decision(WriteSet(touched={"a"}))))
        await until(lambda: bool(held.waiting))
        first.cancel()
        second = asyncio.create_task(line.pipeline.commit(lambda: Decision(WriteSet(touched={"b"}))))
        await asyncio.sleep(0.05)
        assert len(held.waiting) == 1
        held.let_all_through()
        await second
        assert set(line.store.open_sessions()) == {"a", "b"}


async def test_what_becomes_due_during_a_decision_is_in_the_next_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that is taken before the decision is made would only wait, and leave the others to the one after it."""
    traces, due_at = made(5), CloseRules().quiet + 0.05
    gate = threading.Event()
    async with RunningLine(tmp_path) as line:
        for trace in traces:
            await line.send(trace)
            line.now += 0.1
        held = Held(line, monkeypatch)
        file = Line.file

        def third_waits(of: Line, due: Sequence[object], *more: object) -> Decision:
            if len(held.filed) == 2:
                gate.wait(10)
            return file(of, due, *more)  # type: ignore[arg-type]

        monkeypatch.setattr(Line, "file", third_waits)
        line.now = due_at
        await held.until_filed(1)
        held.go()  # beside the first nothing is begun: it is a time to look for sessions that are over
        await until(lambda: line.pipeline.open_traces == 4)
        line.now = due_at + 0.1
        await held.until_filed(2)
        line.now = due_at + 0.2  # the third is being decided while the second is committed
        await asyncio.sleep(0.1)
        line.now = due_at + 0.3
        held.go()
        await asyncio.sleep(0.1)  # now the fourth could be taken
        line.now = due_at + 0.4
        held.all = False
        gate.set()
        await line.settle()
        assert held.filed == [1, 1, 1, 2]
        assert line.standing() == as_file(traces)
