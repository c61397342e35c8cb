"""What can be done with runs: asked for, tried dry, looked at, cancelled, retried, compared, scheduled."""

from __future__ import annotations

import asyncio
import random
import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pandaeval_collector.base.errors import UserError
from pandaeval_collector.base.runtime.cron import is_cron, next_time
from pandaeval_collector.base.runtime.every import Every
from pandaeval_collector.base.telemetry import Telemetry
from pandaeval_collector.config import Config
from pandaeval_collector.judge.known_models import Price
from pandaeval_collector.runs.engine import Emit, Engine, run_setup
from pandaeval_collector.runs.process import CallCount, LiveJudge, RunProcess, judge_of_run
from pandaeval_collector.runs.settings import judge as judge_of
from pandaeval_collector.runs.spec import Chosen, RunSpec, check, check_asked, choose, config_of
from pandaeval_collector.store import Store
from pandaeval_collector.store.runs import FullError, RunRow
from pandaeval_collector.store.schedules import ScheduleRow

# What a run would do, before it does: how many traces, how many calls of judges, what they would cost.
MOST = 200
"""Traces that are read and packed at most; the others are assumed to be like them."""
_SEED = 20


@dataclass(frozen=True, slots=True)
class CostEstimate:
    """What a run would do and cost. ``counted``: how many traces the calls were counted for; ``remembered``: questions
    with a stored answer, which cost nothing; ``cost_usd``: ``None`` where a price is unknown."""

    traces: int
    sessions: int
    counted: int
    calls: int
    prompt_tokens: int
    completion_tokens: int
    remembered: int
    cost_usd: float | None
    models: dict[str, Any] = field(default_factory=dict)


def some(chosen: Sequence[Chosen]) -> list[tuple[int, int]]:
    """Returns a sample of about 200 of the chosen traces, in whole sessions; the same sample each time."""
    groups: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for no, session in chosen:
        groups.setdefault((session, 0) if session else (0, no), []).append((no, session))
    order = sorted(groups)
    if len(chosen) > MOST:
        random.Random(_SEED).shuffle(order)
    taken: list[tuple[int, int]] = []
    for key in order:
        if taken and len(taken) + len(groups[key]) > MOST:
            break
        taken += groups[key]
    return taken


def extrapolated(chosen: Sequence[Chosen], counted: CallCount, of: int, prices: Mapping[str, Price]) -> CostEstimate:
    """Estimates the whole run from the calls ``counted`` for a sample of ``of`` traces."""
    times = len(chosen) / of if of else 0.0
    cost, models = 0.0, {}
    for model, (calls, into, out) in counted.models.items():
        price = prices.get(model)
        cost += times * (into * price[0] + out * price[1]) if price is not None else float("nan")
        models[model] = {"calls": round(calls * times), "tokens": round((into + out) * times)}
    return CostEstimate(
        traces=len(chosen),
        sessions=len({session for _, session in chosen if session}),
        counted=of,
        calls=round(counted.calls * times),
        prompt_tokens=round(counted.prompt_tokens * times),
        completion_tokens=round(counted.completion_tokens * times),
        remembered=round(counted.remembered * times),
        cost_usd=None if cost != cost else round(cost, 6),
        models=models,
    )


# Fires schedules: each at its times, once for all that were missed, and never while its last run is under way.
_TICK_S = 1.0


def check_cron(text: str) -> None:
    """Raises ``UserError`` for a text that is no cron expression of five fields."""
    if not is_cron(text):
        raise UserError(f"{text!r} is no cron expression: minute hour day month weekday, in UTC, as in '0 3 * * *'")


async def fire_due(store: Store, now: float) -> list[RunRow]:
    """Queues a run for each schedule whose time has come and whose last run has ended, about the traces that were
    decided since that; returns the runs. ``now``: Unix seconds."""
    schedules, fired = store.schedules, list[RunRow]()

    def due() -> list[ScheduleRow]:
        timed = [(each, next_time(each.cron, each.fired_at)) for each in schedules.all() if not each.paused]
        ready = [each for each, at in timed if at is not None and at <= now]
        return [each for each in ready if (newest := schedules.newest_run(each.id)) is None or newest.ended]

    for schedule in await asyncio.to_thread(due):
        until = store.clock.calendar()
        body = replace(RunSpec.from_json(schedule.body), decided=(schedule.seen, until)).to_json()
        run = await asyncio.wrap_future(schedules.fire(schedule.id, body, now, until))
        fired += [] if run is None else [run]
    return fired


_MOST_ESTIMATES = 8
"""Estimates that may run or wait at the same time. Each reads all traces."""


class Runs:
    """Manages the runs and schedules of one store. On one event loop."""

    def __init__(
        self,
        store: Store,
        config: Config,
        environ: Mapping[str, str],
        telemetry: Telemetry,
        live: LiveJudge | None = None,
        emit: Emit | None = None,
    ) -> None:
        """``emit``: for runs that export their results."""
        self.store, self.config, self._environ, self._live = store, config, environ, live
        self.engine = Engine(store, config, environ, live, telemetry, emit)
        self._telemetry = telemetry
        self._ticking: Every | None = None
        self._trying, self._estimates = asyncio.Semaphore(1), 0

    async def start(self) -> None:
        """Continues queued runs, and starts to fire schedules."""
        await self.engine.start()
        self._ticking = Every(_TICK_S, self._tick, "pandaeval-schedules", grace=0.0)

    async def stop(self) -> None:
        """Stops schedules and the run under way, which the next start continues."""
        if self._ticking is not None:
            await self._ticking.stop()
        await self.engine.stop()

    async def _tick(self) -> None:
        for _ in await fire_due(self.store, time.time()):
            self._telemetry.add("pandaeval.runs", "scheduled")
            self.engine.wake()

    async def submit(self, spec: RunSpec, key: str | None = None) -> tuple[RunRow, bool]:
        """Queues a run; returns it and whether it is new (:meth:`pandaeval_collector.store.runs.RunTable.create`).
        Raises ``UserError`` for a run that cannot be executed."""
        self._check(spec)
        created = await asyncio.wrap_future(self.store.runs.create(spec.to_json(), key))
        self.engine.wake()
        return created

    async def cancel(self, run_id: str) -> bool:
        """Cancels a run and keeps the results it has; returns ``False`` if there was nothing to cancel."""
        done = await asyncio.wrap_future(self.store.runs.cancel(run_id))
        if done:
            self.engine.cancelled(run_id)
        return bool(done)

    async def retry(self, run_id: str) -> bool:
        """Queues an ended run again for its failed and unscored traces; returns ``False`` if there are none."""
        done = await asyncio.wrap_future(self.store.runs.retry(run_id))
        self.engine.wake()
        return done

    async def schedule(self, cron: str, spec: RunSpec) -> ScheduleRow:
        """Adds a schedule. Raises ``UserError`` for a bad cron expression or run."""
        check_cron(cron)
        self._check(spec)
        return await asyncio.wrap_future(self.store.schedules.add(cron, spec.to_json(), time.time()))

    async def dry(self, spec: RunSpec) -> CostEstimate:
        """Estimates what a run would do without asking a model, one at a time. Raises ``UserError``."""
        self._check(spec, dry=True)
        if self._estimates >= _MOST_ESTIMATES:
            raise FullError("too many estimates are being made: come back in some seconds")
        self._estimates += 1
        try:
            async with self._trying:
                chosen = await asyncio.to_thread(self._all_chosen, spec)
                config = config_of(self.config, spec)
                if judge_of(config) is None:
                    return extrapolated(chosen, CallCount(), len(chosen), {})
                return await self._counted(config, spec, chosen)
        finally:
            self._estimates -= 1

    def _all_chosen(self, spec: RunSpec) -> list[Chosen]:
        upto, after = 1 << 62, 0
        found: list[Chosen] = []
        while after < upto:
            page, after = choose(self.store, spec, after, upto)
            found += page
        return found

    def _check(self, spec: RunSpec, dry: bool = False) -> None:
        check(self.config, spec)
        check_asked(self.config, spec, dry)

    async def _counted(self, config: Config, spec: RunSpec, chosen: Sequence[Chosen]) -> CostEstimate:
        items = some(chosen)
        run_id = f"dry-{secrets.token_hex(4)}"
        setup = run_setup(self.store, config, run_id, spec, self.engine.folder, counting=True)
        process = RunProcess(setup, self._environ, None, self.store, 1)
        async with judge_of_run(self.store, self._environ, self._live, judge_of(config)) as judge:
            assert judge is not None, "these metrics ask a judge"
            prices = await judge.prices()
            try:
                scored = await process.score(items) if items else None
            finally:
                await process.close()
            counted = (scored.counted if scored else None) or CallCount()
            return extrapolated(chosen, counted, len(items), prices)
