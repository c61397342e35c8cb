"""Who is asked in a run: the judge that judges live, with its limits, or another model under limits like these. What a
day may cost is counted together."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Protocol

from pandaeval_collector.jobs.setup import JudgeConfig, open_caller
from pandaeval_collector.judge.call import Caller
from pandaeval_collector.judge.known import Price
from pandaeval_collector.store import Store


class RunJudge(Caller, Protocol):
    """The judge of a run."""

    async def prices(self) -> Mapping[str, Price]:
        """Starts its process, and returns the price of each model whose price is known. Raises ``CallFailedError``
        where the process does not start."""
        ...


class LiveJudge(RunJudge, Protocol):
    """The judge of a running collector. ``models``: those that it can be asked for."""

    models: frozenset[str]


class OwnJudge:
    """Implements :class:`RunJudge` with a process of its own, to be closed. Raises
    :class:`pandaeval_collector.jobs.NoJudgeError`."""

    def __init__(self, store: Store, config: JudgeConfig, environ: Mapping[str, str]) -> None:
        self._process, caller = open_caller(store, config, environ)
        self.complete, self.close = caller.complete, self._process.close
        self.record_budget = self._process.record_budget

    async def prices(self) -> Mapping[str, Price]:
        await self._process.start()
        return self._process.prices


def hasty(config: JudgeConfig) -> JudgeConfig:
    """Returns a configuration for a judge that somebody waits for: a provider that fails gets a shorter rest than in a
    collector."""
    return replace(config, setup=replace(config.setup, cooldown=3.0))


@asynccontextmanager
async def judge_of_run(
    store: Store, environ: Mapping[str, str], live: LiveJudge | None, judge: JudgeConfig | None
) -> AsyncIterator[RunJudge | None]:
    """Opens the judge of a run, the ``live`` one if it knows all models; ``None`` without a judge. Raises
    :class:`pandaeval_collector.jobs.NoJudgeError`."""
    if judge is None:
        yield None
    elif live is not None and live.models >= set(judge.setup.models):
        yield live
    else:
        own = OwnJudge(store, judge, environ)
        try:
            yield own
        finally:
            await own.close()
