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
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import Any, cast

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
from pandaeval_collector.store import Store, StoreReader
from pandaeval_collector.store.clock import StoreClock
from pandaeval_collector.store.failures.live import LiveGroups
from pandaeval_collector.store.jobs import Jobs
from pandaeval_collector.store.judging import Spending, Verdicts

_log = logging.getLogger(__name__)

RELAY_SECONDS = 2.0
"""How often the front is told what was counted here, and asks how long a question may wait."""


class AskedOfFront:
    """The tables of one subject: what is read is read here, and what writes is asked of the front, by its name."""

    def __init__(self, name: str, reads: Any, writes: frozenset[str], write: Callable[..., Future[Any]]) -> None:
        self._name, self._reads, self._writes, self._write = name, reads, writes, write

    def __getattr__(self, name: str) -> Any:
        if name not in self._writes:
            return getattr(self._reads, name)
        return lambda *arguments, **options: self._write(f"{self._name}.{name}", *arguments, **options)


class JudgeStore:
    """The store as the judge's process has it: stands in for :class:`Store` where jobs use one."""

    def __init__(self, path: Path, clock: StoreClock, front: Peer) -> None:
        self.path, self.clock, self.reads = path, clock, StoreReader(path)
        self._front, self._loop = front, asyncio.get_running_loop()
        reader = self.reads.connection
        writer = cast(Any, None)  # nothing is written here
        self.jobs = AskedOfFront(
            "jobs",
            Jobs(writer, reader, clock),
            frozenset({"lease", "lease_old", "put_back", "release_all"}),
            self._write,
        )
        self.spending = AskedOfFront(
            "spending", Spending(writer, reader), frozenset({"reserve", "settle", "settle_all"}), self._write
        )
        self.verdicts = AskedOfFront("verdicts", Verdicts(writer, reader, clock), frozenset({"keep"}), self._write)
        self.runs = AskedOfFront("runs", None, frozenset({"stand"}), self._write)

    def get(self, key: str) -> str | None:
        return self.reads.get(key)

    def put(self, key: str, value: str) -> Future[Any]:
        return self._write("put", key, value)

    def _write(self, name: str, *arguments: Any, **options: Any) -> Future[Any]:
        return asyncio.run_coroutine_threadsafe(self._front.ask("write", name, arguments, options), self._loop)


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
        store = JudgeStore(Path(config.store.path), clock, front)
        self._store, self._reads = cast(Store, store), store.reads
        self._process, self._caller = open_caller(self._store, configured, os.environ)
        self._longest_wait = math.inf
        self._running: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Starts to run jobs. What keeps it from that ends the process, and the front starts another."""
        self._running.append(asyncio.create_task(self._run(), name="pandaeval-judge"))

    async def models(self, _: Any) -> frozenset[str]:
        """Returns the models that it can be asked for."""
        return frozenset(self._configured.setup.models)

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
            SessionScores(self._reads, evaluator),
            evaluator,
            self._caller,
            FiledByFront(self._front),
            telemetry,
            over_budget=configured.over_budget,
            checks=open_checks(configured, store, desks, telemetry),
            budgets=RecordBudgets(self._process.record_budget),
            shadow=shadow,
            failures=LiveGroups(evaluator.embedder, self._reads.failure_groups()),
        )
        return Runner(store, attempts, SLOTS * configured.limits.concurrency, lambda: self._longest_wait)


async def _open(setup: tuple[Config, StoreClock], front: Peer) -> Handlers:
    server = JudgeServer(*setup, front)
    server.start()
    return {
        "models": server.models,
        "prices": server.prices,
        "complete": server.complete,
        "share": server.share,
    }


if __name__ == "__main__":
    expect_imports()
    serve_together(_open, nice=10)
