"""Who is asked in a run: the judge that judges live, with its limits, or another model under limits like these. What a
day may cost is counted together."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from pandaeval_collector.jobs.setup import JudgeConfig, open_caller
from pandaeval_collector.judge.call import Caller
from pandaeval_collector.judge.client import WorkerProcess
from pandaeval_collector.judge.known import Price
from pandaeval_collector.store import Store

_COOLDOWN_S = 5.0
"""Somebody waits: a provider that fails gets a shorter rest than in a collector."""


class LiveJudge(Caller, Protocol):
    """The judge of a running collector. ``models``: those that it can be asked for."""

    models: frozenset[str]

    async def prices(self) -> Mapping[str, Price]: ...


@dataclass(frozen=True, slots=True)
class RunJudge:
    """The judge of a run. ``prices`` starts its process, and returns the price of each model whose price is known."""

    caller: Caller
    prices: Callable[[], Awaitable[Mapping[str, Price]]]

    @classmethod
    def of(cls, process: WorkerProcess, caller: Caller) -> RunJudge:
        """Makes the judge of a run that has a process of its own."""

        async def prices() -> Mapping[str, Price]:
            await process.start()
            return process.prices

        return cls(caller, prices)


@asynccontextmanager
async def hasty_judge(config: JudgeConfig, environ: Mapping[str, str]) -> AsyncIterator[RunJudge]:
    """Opens a judge on a temporary store, for a command whose user waits. Raises ``CallFailedError`` where its process
    does not start."""
    with tempfile.TemporaryDirectory(prefix="pandaeval-") as folder:
        store = Store(Path(folder), durability="off", max_bytes=1 << 30)
        process, caller = open_caller(
            store, replace(config, setup=replace(config.setup, cooldown=_COOLDOWN_S)), environ
        )
        try:
            await process.start()
            yield RunJudge.of(process, caller)
        finally:
            await process.close()
            await _ended()
            store.close()


async def _ended() -> None:
    """Cancels all other tasks of this event loop, and returns when they have ended."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)


class Judges:
    """Finds the judge of a run. On one event loop."""

    def __init__(self, store: Store, environ: Mapping[str, str], live: LiveJudge | None) -> None:
        self._store, self._environ, self._live = store, environ, live

    @asynccontextmanager
    async def of(self, judge: JudgeConfig | None) -> AsyncIterator[RunJudge | None]:
        """Opens the judge of a run, the live one if it knows all models; ``None`` without a judge. Raises
        :class:`pandaeval_collector.jobs.NoJudgeError`."""
        if judge is None:
            yield None
        elif self._live is not None and self._live.models >= set(judge.setup.models):
            yield RunJudge(self._live, self._live.prices)
        else:
            process, caller = open_caller(self._store, judge, self._environ)
            try:
                yield RunJudge.of(process, caller)
            finally:
                await process.close()
