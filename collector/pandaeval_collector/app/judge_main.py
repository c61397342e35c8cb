"""The judge's process: ``python -m pandaeval_collector.app.judge_main``.

It packs traces, asks a model and reads what that says. It reads the store itself; what has to be written, and where its
answers go, it asks of the front. It holds nothing that matters, so it may be killed at any time: the next one runs the
jobs that it had leased.
"""

from __future__ import annotations

import asyncio
import logging
import math
import os
import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pandaeval_collector.base.result import Result
from pandaeval_collector.base.runtime.calls import Handlers, Peer
from pandaeval_collector.base.runtime.garbage import expect_imports
from pandaeval_collector.base.runtime.serving import serve_together
from pandaeval_collector.base.telemetry import Telemetry
from pandaeval_collector.config import Config
from pandaeval_collector.jobs.attempts import Attempts
from pandaeval_collector.jobs.checks import open_checks
from pandaeval_collector.jobs.outcome import RecordBudgets
from pandaeval_collector.jobs.runner import SLOTS, Runner
from pandaeval_collector.jobs.setup import Desks, StoredMemory, open_caller
from pandaeval_collector.jobs.shadow import open_shadow
from pandaeval_collector.judge.call import ModelAnswer, ModelCall
from pandaeval_collector.judge.known import Price
from pandaeval_collector.pipeline.line.decision import Judgement
from pandaeval_collector.pipeline.line.session_scores import SessionScores
from pandaeval_collector.runs.settings import judge as judge_of
from pandaeval_collector.runs.settings import live_evaluator
from pandaeval_collector.store.clock import StoreClock
from pandaeval_collector.store.live_groups import LiveGroups
from pandaeval_collector.store.store import JUDGE_WRITES, AskedStore

_log = logging.getLogger(__name__)

RELAY_SECONDS = 2.0
"""How often the front is told what was counted here, and asks how long a question may wait."""


class FiledByFront:
    """Implements :class:`pandaeval_collector.jobs.attempts.Filing`: the front has the line file answers."""

    def __init__(self, front: Peer) -> None:
        self._front = front

    async def judged(self, judgement: Judgement) -> None:
        await self._front.ask("judged", pickle.dumps([judgement], pickle.HIGHEST_PROTOCOL))

    async def shadowed(self, result: Result, run: int) -> None:
        await self._front.ask("shadowed", pickle.dumps(result, pickle.HIGHEST_PROTOCOL), run)


class JudgeServer:
    """Runs the judge's jobs, and answers the front. On one event loop."""

    def __init__(self, config: Config, clock: StoreClock, front: Peer) -> None:
        configured = judge_of(config, live=True)
        assert configured is not None, "a judge is configured"
        self._front, self._configured, self._telemetry = front, configured, Telemetry()
        self._evaluator = live_evaluator(config)
        self._store = AskedStore(Path(config.store.path), clock, front, JUDGE_WRITES)
        self._process, self._caller = open_caller(self._store, configured, os.environ)
        self._longest_wait = math.inf
        self._running: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Starts to run jobs. What keeps it from that ends the process, and the front starts another."""
        self._running.append(asyncio.create_task(self._run(), name="pandaeval-judge"))

    async def prices(self, _: Any) -> Mapping[str, Price]:
        """Returns the price of each model whose price is known."""
        await self._process.start()
        return self._process.prices

    async def complete(self, _: Any, call: ModelCall) -> ModelAnswer:
        """Asks a model, within the limits."""
        return await self._caller.complete(call)

    def share(self, part: float) -> None:
        """Uses only this part, 0..1, of the limits."""
        self._caller.share(part)

    async def _run(self) -> None:
        try:
            await (await self._runner()).start()
            while True:
                self._longest_wait = await self._front.ask("longest_wait")
                await asyncio.sleep(RELAY_SECONDS)
                self._front.tell("measured", self._telemetry.relay())
        except Exception:  # noqa: BLE001
            _log.exception("the judge cannot go on; it is started again")
            os._exit(1)

    async def _runner(self) -> Runner:
        store, configured, telemetry, evaluator = self._store, self._configured, self._telemetry, self._evaluator
        desks, memory = Desks(self._caller, evaluator.settings.judge), StoredMemory(store, telemetry)
        shadow = await open_shadow(
            store, desks, memory, evaluator, telemetry, configured.shadow, configured.shadow_share
        )
        attempts = Attempts(
            store,
            SessionScores(self._store.reads, evaluator),
            evaluator,
            self._caller,
            FiledByFront(self._front),
            telemetry,
            over_budget=configured.over_budget,
            checks=open_checks(configured, store, desks, telemetry),
            budgets=RecordBudgets(self._process.record_budget),
            shadow=shadow,
            failures=LiveGroups(evaluator.embedder, self._store.reads.failure_groups()),
        )
        return Runner(store, attempts, SLOTS * configured.limits.concurrency, lambda: self._longest_wait)


async def _open(setup: tuple[Config, StoreClock], front: Peer) -> Handlers:
    server = JudgeServer(*setup, front)
    server.start()
    return {"prices": server.prices, "complete": server.complete, "share": server.share}


if __name__ == "__main__":
    expect_imports()
    serve_together(_open, nice=10)
