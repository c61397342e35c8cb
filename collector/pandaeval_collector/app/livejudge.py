"""The judge of a running collector: the process that asks the model, the jobs that it runs, and what checks it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack

from pandaeval_collector.base.telemetry import Telemetry
from pandaeval_collector.config import Config, secret
from pandaeval_collector.exporters.delivery.emitter import Emitter
from pandaeval_collector.jobs import (
    SLOTS,
    Attempts,
    Desks,
    Limits,
    RecordBudgets,
    Runner,
    StoredMemory,
    open_caller,
    open_checks,
    open_shadow,
)
from pandaeval_collector.pipeline.line.decision import Commit
from pandaeval_collector.pipeline.line.line import Line
from pandaeval_collector.runs.judges import LiveJudge
from pandaeval_collector.runs.settings import judge
from pandaeval_collector.scoring.evaluator import Evaluator
from pandaeval_collector.store import Store
from pandaeval_collector.store.failures.live import LiveGroups


class LiveJudging:
    """Builds the judge that the configuration names and starts it; ``parts`` stop what was started. One event loop."""

    def __init__(
        self,
        config: Config,
        environ: Mapping[str, str],
        telemetry: Telemetry,
        parts: AsyncExitStack,
        store: Store,
        scorer: Evaluator,
    ) -> None:
        """``environ``: holds the judge's secrets."""
        self._config, self._environ, self._telemetry, self._parts = config, environ, telemetry, parts
        self._store, self._scorer = store, scorer

    async def start(
        self, line: Line, commit: Commit, emitter: Emitter, failures: LiveGroups, longest_wait: Callable[[], float]
    ) -> LiveJudge | None:
        """Starts the judge; ``None`` if none is configured. ``commit``: commits decisions of ``line``; ``emitter``:
        sends the shadow's results; ``failures``: the groups that judged failures are filed under; ``longest_wait``:
        seconds after which a question is given up."""
        configured = judge(self._config, live=True)
        if configured is None:
            await asyncio.wrap_future(self._store.runs.stand(None, b""))
            return None
        secret(self._config.judge.api_key_env, self._environ)
        process, caller = open_caller(self._store, configured, self._environ)
        self._parts.push_async_callback(process.close)
        desks = Desks(caller, self._scorer.settings.judge)
        memory, beside = StoredMemory(self._store, self._telemetry), (configured.shadow, configured.shadow_share)
        shadow = await open_shadow(self._store, desks, memory, self._scorer, emitter.shadow, self._telemetry, *beside)
        attempts = Attempts(
            self._store,
            line,
            self._scorer,
            caller,
            commit,
            self._telemetry,
            over_budget=configured.over_budget,
            checks=open_checks(configured, self._store, desks, self._telemetry),
            budgets=RecordBudgets(process.record_budget),
            shadow=shadow,
            failures=failures,
        )
        runner = Runner(self._store, attempts, SLOTS * configured.limits.concurrency, longest_wait)
        await runner.start()
        self._parts.push_async_callback(runner.stop)
        self._publish(configured.limits)
        return LiveJudge(frozenset(configured.setup.models), process, caller)

    def _publish(self, limits: Limits) -> None:
        """Registers gauges of the queue, and of the day's budget where there is one."""
        store = self._store
        self._telemetry.gauge("pandaeval.queue.size", store.jobs.waiting, queue="judge")
        if limits.daily_usd is not None:
            self._telemetry.gauge("pandaeval.judge.budget.limit", lambda: limits.daily_usd or 0.0)
            self._telemetry.gauge(
                "pandaeval.judge.budget.spent", lambda: store.spending.spent(store.spending.today(time.time()))
            )
