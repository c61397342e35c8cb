"""The judge of a replay."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any, TypeVar

from pandaeval_collector.base.result import Result
from pandaeval_collector.base.telemetry import Telemetry
from pandaeval_collector.jobs.attempts import Attempts
from pandaeval_collector.jobs.outcome import Patience, RecordBudgets
from pandaeval_collector.jobs.runner import SLOTS, Runner
from pandaeval_collector.jobs.setup import StoredMemory, client_of, open_caller
from pandaeval_collector.judge.call import Caller, JudgeConfig
from pandaeval_collector.judge.client import JudgeClient
from pandaeval_collector.judge.known_models import Price
from pandaeval_collector.pipeline.line.decision import Conclusion
from pandaeval_collector.pipeline.line.line import Line
from pandaeval_collector.scoring.evaluator import Evaluator, JudgeSettings
from pandaeval_collector.store import Store, StoreAccess

T = TypeVar("T")
_PATIENCE = Patience(attempts=3, first=1.0, longest=5.0, interactive=True)


class OwnJudge:
    """A judge with its own process, to be closed. Raises :class:`pandaeval_collector.jobs.NoJudgeError`."""

    def __init__(self, store: StoreAccess, config: JudgeConfig, environ: Mapping[str, str]) -> None:
        self._process, caller = open_caller(store, config, environ)
        self.complete, self.close = caller.complete, self._process.close
        self.record_budget = self._process.record_budget

    async def prices(self) -> Mapping[str, Price]:
        """Start the process, and return known prices by model. Raises ``CallFailedError``."""
        await self._process.start()
        return self._process.prices


def hasty(config: JudgeConfig) -> JudgeConfig:
    """Return a configuration with short rests after provider failures."""
    return replace(config, cooldown=3.0)


def capped(config: JudgeConfig, usd: float | None = None) -> JudgeConfig:
    given = config.daily_usd
    most = given if usd is None else max(0.0, usd if given is None else min(usd, given))
    return replace(config, daily_usd=most)


class ReplayJudge:
    """Owns an event loop for a judge and, without ``caller``, its process.

    A context manager, on a thread without another loop.
    """

    def __init__(
        self,
        store: Store,
        evaluator: Evaluator,
        config: JudgeConfig,
        environ: Mapping[str, str] | None = None,
        *,
        caller: Caller | None = None,
        telemetry: Telemetry | None = None,
        on_judged: Callable[[int, int], None] = lambda done, total: None,
    ) -> None:
        """``store``: the questions.

        ``environ``: secrets. ``on_judged`` gets the number of finished and of all judgements.
        """
        self._store, self._evaluator, self._config, self._environ = store, evaluator, config, environ or {}
        self._given, self._telemetry, self.on_judged = caller, telemetry or Telemetry(), on_judged
        self._loop = asyncio.Runner()
        self._asked = 0

    def __enter__(self) -> ReplayJudge:
        return self

    def __exit__(self, *_: object) -> None:
        with self._loop:
            if "_own" in self.__dict__:
                self._loop.run(self._own.close())

    @property
    def cost_usd(self) -> float:
        """The cost so far, if a limit is set. The store must be open."""
        return self._store.spending.spent(self._store.spending.today(time.time()))

    def answers(self, line: Line) -> list[Result]:
        """Run the stored jobs, and return the results that ``line`` makes."""
        return self._loop.run(self._answers(line)) if self._store.jobs.waiting() else []

    @property
    def settings(self) -> JudgeSettings:
        settings = self._evaluator.settings.judge
        assert settings is not None, "these metrics ask a judge"
        return settings

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._loop.run(work)

    def client(self) -> JudgeClient:
        return client_of(self._given or self._own, self.settings, StoredMemory(self._store, self._telemetry))

    @cached_property
    def _own(self) -> OwnJudge:
        return OwnJudge(self._store, hasty(self._config), self._environ)

    async def _answers(self, line: Line) -> list[Result]:
        results: list[Result] = []
        turn = asyncio.Lock()

        async def file(name: str, *answers: Any) -> None:
            async with turn:
                decision: Conclusion = getattr(line, name)(*answers)
                await asyncio.wrap_future(self._store.commit(decision.changes))
                results.extend(decision.results)

        jobs = self._store.jobs
        self._asked += jobs.waiting()
        client = self.client()
        attempts = Attempts(
            self._store,
            line.scores,
            self._evaluator,
            client,
            file,
            self._telemetry,
            _PATIENCE,
            budgets=RecordBudgets(None if self._given else self._own.record_budget),
        )
        runner = Runner(self._store, attempts, SLOTS * self._config.concurrency)
        await runner.drain(lambda: self.on_judged(self._asked - jobs.waiting(), self._asked))
        return results
