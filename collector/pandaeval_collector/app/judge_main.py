"""The judge process: ``python -m pandaeval_collector.app.judge_main``.

It reads the store directly and sends writes to the main process. Its successor runs the leased jobs.
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

from pandaeval_collector.base.runtime.garbage import expect_imports
from pandaeval_collector.base.runtime.peer import Handlers, Peer
from pandaeval_collector.base.runtime.serving import serve_together
from pandaeval_collector.base.telemetry import Telemetry
from pandaeval_collector.config import Config
from pandaeval_collector.jobs.attempts import Attempts
from pandaeval_collector.jobs.outcome import RecordBudgets
from pandaeval_collector.jobs.runner import SLOTS, Runner
from pandaeval_collector.jobs.setup import StoredMemory, client_of, open_caller
from pandaeval_collector.judge.call import ModelAnswer, ModelCall
from pandaeval_collector.judge.known_models import Price
from pandaeval_collector.pipeline.line.session_scores import SessionScores
from pandaeval_collector.runs.settings import evaluator, judge as judge_of
from pandaeval_collector.store.access import FrontWrites, StoreAccess
from pandaeval_collector.store.clock import StoreClock
from pandaeval_collector.store.live_groups import LiveGroups
from pandaeval_collector.store.reader import StoreReader

_log = logging.getLogger(__name__)

RELAY_SECONDS = 2.0
"""Seconds between reports of counters to the main process."""


async def _open(setup: tuple[Config, StoreClock], front: Peer) -> Handlers:
    config, clock = setup
    configured = judge_of(config)
    assert configured is not None, "a judge is configured"
    store = StoreAccess(StoreReader(Path(config.store.path)), FrontWrites(front), clock)
    process, caller = open_caller(store, configured, os.environ)
    telemetry, scorer = Telemetry(), evaluator(config)
    longest_wait = math.inf

    async def file(name: str, answers: Any, *more: Any) -> None:
        await front.ask(name, pickle.dumps(answers, pickle.HIGHEST_PROTOCOL), *more)

    async def runner() -> Runner:
        client = client_of(caller, scorer.settings.judge, StoredMemory(store, telemetry))
        attempts = Attempts(
            store,
            SessionScores(store.reads, scorer),
            scorer,
            client,
            file,
            telemetry,
            budgets=RecordBudgets(process.record_budget),
            failures=LiveGroups(scorer.embedder, store.reads.failure_groups()),
        )
        return Runner(store, attempts, SLOTS * configured.concurrency, lambda: longest_wait)

    async def run() -> None:
        nonlocal longest_wait
        try:
            await (await runner()).start()
            while True:
                longest_wait = await front.ask("longest_wait")
                await asyncio.sleep(RELAY_SECONDS)
                front.tell("measured", telemetry.relay())
        except Exception:  # noqa: BLE001 - the front starts the process again
            _log.exception("the judge process failed; the collector restarts it")
            os._exit(1)

    async def prices(_: Any) -> Mapping[str, Price]:
        await process.start()
        return process.prices

    async def complete(_: Any, call: ModelCall) -> ModelAnswer:
        return await caller.complete(call)

    _running.append(asyncio.create_task(run(), name="pandaeval-judge"))
    return {"prices": prices, "complete": complete, "share": caller.share}


_running: list[asyncio.Task[None]] = []
"""Keeps background tasks alive."""


if __name__ == "__main__":
    expect_imports()
    serve_together(_open, nice=10)
