"""What can be done with runs: asked for, tried dry, looked at, cancelled, retried, compared, scheduled."""

from __future__ import annotations

import asyncio
import secrets
import shutil
import time
from collections.abc import Mapping

from pandaeval_collector.base.telemetry import Telemetry
from pandaeval_collector.config import Config
from pandaeval_collector.exporters.delivery.emitter import Emitter
from pandaeval_collector.pipeline.line.decision import Commit
from pandaeval_collector.runs.configure import check, check_asked, config_of
from pandaeval_collector.runs.engine import Engine, run_setup
from pandaeval_collector.runs.estimate import CostEstimate, all_chosen, extrapolated, some
from pandaeval_collector.runs.judges import Judges, LiveJudge
from pandaeval_collector.runs.process import RunProcess, StoredVerdicts
from pandaeval_collector.runs.scheduling import Scheduler, check_cron
from pandaeval_collector.runs.settings import judge as judge_of
from pandaeval_collector.runs.spec import RunSpec
from pandaeval_collector.runs.wire import CallCount, TracesToScore
from pandaeval_collector.store import Store
from pandaeval_collector.store.run_rows import FullError, RunRow, ScheduleRow

_MOST_ESTIMATES = 8
"""Estimates that are made or wait at a time. Each reads all traces."""


class Runs:
    """The runs of one store. On one event loop."""

    def __init__(
        self,
        store: Store,
        config: Config,
        environ: Mapping[str, str],
        telemetry: Telemetry,
        live: LiveJudge | None = None,
        commit: Commit | None = None,
        emitter: Emitter | None = None,
        by_owner: bool = False,
    ) -> None:
        """``commit``, ``emitter``: of the live line, by which results leave where that is asked for; ``by_owner``: runs
        are asked for by the person whose configuration this is, who may name any model and spend without a budget."""
        self._by_owner = by_owner
        self.store, self.config, self._environ = store, config, environ
        self._judges = Judges(store, environ, live)
        self.engine = Engine(store, config, environ, self._judges, telemetry, commit, emitter)
        self._scheduler = Scheduler(store, telemetry, lambda _: self.engine.wake())
        self._trying, self._estimates = asyncio.Semaphore(1), 0

    async def start(self) -> None:
        """Goes on with what is queued, and fires schedules."""
        await self.engine.start()
        self._scheduler.start()

    async def stop(self) -> None:
        """The next start goes on."""
        await self._scheduler.stop()
        await self.engine.stop()

    async def submit(self, spec: RunSpec, key: str | None = None) -> tuple[RunRow, bool]:
        """Queues a run; the run, and whether it is new (see :meth:`pandaeval_collector.store.runs.RunTable.create`).
        Raises ``UserError`` for what cannot be run."""
        self._check(spec)
        created = await asyncio.wrap_future(self.store.runs.create(spec.to_json(), key))
        self.engine.wake()
        return created

    async def cancel(self, run_id: str) -> bool:
        """Whether there was anything to cancel. What is done stays."""
        done = await asyncio.wrap_future(self.store.runs.cancel(run_id))
        if done:
            self.engine.cancelled(run_id)
        return done

    async def retry(self, run_id: str) -> bool:
        """Whether there was anything that failed, or was not come to."""
        done = await asyncio.wrap_future(self.store.runs.retry(run_id))
        self.engine.wake()
        return done

    async def schedule(self, cron: str, spec: RunSpec) -> ScheduleRow:
        """A new schedule. Raises ``UserError``."""
        check_cron(cron)
        self._check(spec)
        return await asyncio.wrap_future(self.store.schedules.add(cron, spec.to_json(), time.time()))

    async def dry(self, spec: RunSpec) -> CostEstimate:
        """What the run would do. Nobody is asked. One at a time, and a few wait. Raises ``UserError``."""
        self._check(spec, dry=True)
        if self._estimates >= _MOST_ESTIMATES:
            raise FullError("too many estimates are being made: come back in some seconds")
        self._estimates += 1
        try:
            async with self._trying:
                chosen = await asyncio.to_thread(all_chosen, self.store, spec)
                config = config_of(self.config, spec)
                if judge_of(config) is None:
                    return extrapolated(chosen, CallCount(), len(chosen), {})
                return await self._counted(config, spec, chosen)
        finally:
            self._estimates -= 1

    def _check(self, spec: RunSpec, dry: bool = False) -> None:
        check(self.config, spec)
        if not self._by_owner:
            check_asked(self.config, spec, dry)

    async def _counted(self, config: Config, spec: RunSpec, chosen: list[tuple[int, int, str]]) -> CostEstimate:
        items = some(chosen)
        run_id = f"dry-{secrets.token_hex(4)}"
        setup = run_setup(self.store, config, run_id, spec, self.engine.folder, counting=True)
        process = RunProcess(setup, self._environ, None, StoredVerdicts(self.store), 1)
        async with self._judges.of(judge_of(config)) as judge:
            assert judge is not None, "these metrics ask a judge"
            await judge.process.start()
            try:
                await process.start()
                scored = await process.score(TracesToScore(items)) if items else None
            finally:
                await process.close()
                await asyncio.to_thread(shutil.rmtree, setup.folder, ignore_errors=True)
            counted = (scored.counted if scored else None) or CallCount()
            return extrapolated(chosen, counted, len(items), judge.process.prices)
