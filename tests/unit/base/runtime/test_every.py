"""Repeated work: intervals, wake-ups and a last round."""

from __future__ import annotations

import asyncio
import math
import sqlite3
from collections.abc import Callable

import pytest

from pandaeval_collector.base.runtime import every as every_module
from pandaeval_collector.base.runtime.every import Every
from support.receivers import until


class Rounds:
    """Counts rounds; raises or waits on demand."""

    def __init__(self, *raised: Exception | None, wait: float | None = None, takes: float = 0.0) -> None:
        self.number, self.ended = 0, 0
        self._raised, self._wait, self._takes = [*raised], wait, takes

    async def work(self) -> float | None:
        self.number += 1
        await asyncio.sleep(self._takes)
        error = self._raised.pop(0) if self._raised else None
        if error is not None:
            raise error
        self.ended += 1
        return self._wait


async def test_work_starts_at_once_and_repeats_after_the_interval_or_returned_seconds() -> None:
    often, seldom, asked = Rounds(), Rounds(), Rounds(wait=0.001)
    running = [Every(0.001, often.work, "a"), Every(60.0, seldom.work, "b"), Every(60.0, asked.work, "c")]
    await until(lambda: often.number > 3 and asked.number > 3)
    assert seldom.number == 1
    running[1].ring()
    await until(lambda: seldom.number == 2)
    for each in running:
        await each.stop()
    assert seldom.number == 2


async def test_a_failed_round_is_logged_and_tried_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(every_module, "_FAILED_S", 0.01)
    rounds = Rounds(sqlite3.OperationalError("the disk is full"), KeyError("odd"))
    running = Every(0.0, rounds.work, "tidying")
    await until(lambda: rounds.ended > 0)
    await running.stop()
    known, odd = caplog.records
    assert known.message == "tidying: the disk is full; trying again"
    assert not known.exc_info
    assert odd.exc_info


@pytest.mark.parametrize(("last", "rounds_at_the_end"), [(False, 1), (True, 2)])
async def test_a_stop_waits_for_the_round_and_runs_a_last_round_if_configured(
    last: bool, rounds_at_the_end: int
) -> None:
    rounds = Rounds(takes=0.05, wait=math.inf)
    running = Every(60.0, rounds.work, "a", last=last)
    await until(lambda: rounds.number == 1)
    await running.stop()
    assert (rounds.number, rounds.ended) == (rounds_at_the_end, rounds_at_the_end)


@pytest.mark.parametrize("grace", [0.0, 0.02])
async def test_a_stop_cancels_a_round_after_the_grace_period(grace: float) -> None:
    rounds = Rounds(takes=1000.0)
    running = Every(60.0, rounds.work, "a", last=True, grace=grace)
    await until(lambda: rounds.number == 1)
    await running.stop()
    assert (rounds.number, rounds.ended) == (1, 0)


def test_an_infinite_interval_waits_for_a_ring_on_every_event_loop() -> None:
    async def rings() -> int:
        rounds = Rounds()
        running = Every(math.inf, rounds.work, "a")
        await until(lambda: rounds.number == 1)
        running.ring()
        await until(lambda: rounds.number == 2)
        await running.stop()
        return rounds.number

    loops: list[Callable[[], asyncio.AbstractEventLoop]] = [asyncio.new_event_loop]
    loops.append(pytest.importorskip("uvloop").new_event_loop)
    for new_loop in loops:
        with asyncio.Runner(loop_factory=new_loop) as runner:
            assert runner.run(rings()) == 2
