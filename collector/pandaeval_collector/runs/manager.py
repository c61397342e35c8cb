"""Operations on runs: submit, estimate, cancel and schedule."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pandaeval_collector.base.errors import UserError
from pandaeval_collector.base.runtime.cron import is_cron, next_time
from pandaeval_collector.base.runtime.every import Every
from pandaeval_collector.base.telemetry import Telemetry
from pandaeval_collector.judge.call import CallFailedError
from pandaeval_collector.runs.engine import Engine, RunSurroundings
from pandaeval_collector.runs.spec import Chosen, RunSpec, check, check_asked, choose, judged
from pandaeval_collector.store import StoreAccess
from pandaeval_collector.store.runs import FullError, RunRow
from pandaeval_collector.store.schedules import ScheduleRow

_TICK_S = 1.0
_MOST_ESTIMATES = 8
"""Estimates that may run or wait at the same time. Each reads all traces."""


@dataclass(frozen=True, slots=True)
class CostEstimate:
    """Estimated size and cost of a run.

    ``counted``: traces with counted calls. ``remembered``: cached answers. ``cost_usd``: ``None`` if unknown.
    ``by_detail``: by ``judge.detail``; ``failing`` assumes that half of the verdicts fail.
    """

    traces: int
    sessions: int
    counted: int
    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    remembered: int = 0
    cost_usd: float | None = 0.0
    models: dict[str, Any] = field(default_factory=dict)
    by_detail: dict[str, Any] = field(default_factory=dict)


class EstimateError(Exception):
    """A run could not be estimated."""


def check_cron(text: str) -> None:
    """Raise ``UserError`` unless the text is a cron expression of five fields."""
    if not is_cron(text):
        raise UserError(f"{text!r} is no cron expression: minute hour day month weekday, in UTC, as in '0 3 * * *'")


async def fire_due(store: StoreAccess, now: float) -> list[RunRow]:
    """Queue a run for each due schedule without an active run.

    Missed times give a single run. ``now``: Unix seconds.
    """
    schedules, fired = store.schedules, list[RunRow]()

    def due() -> list[ScheduleRow]:
        timed = [(each, next_time(each.cron, each.fired_at)) for each in schedules.all()]
        ready = [each for each, at in timed if at is not None and at <= now]
        return [each for each in ready if (newest := schedules.newest_run(each.id)) is None or newest.ended]

    for schedule in await asyncio.to_thread(due):
        until = store.clock.calendar()
        body = replace(RunSpec.from_json(schedule.body), decided=(schedule.seen, until)).to_json()
        run = await asyncio.wrap_future(schedules.fire(schedule.id, body, now, until))
        fired += [] if run is None else [run]
    return fired


class EvaluationRuns:
    """Manages the runs and schedules of a store, on one event loop."""

    def __init__(self, around: RunSurroundings, telemetry: Telemetry) -> None:
        self.store, self.config, self._around, self._telemetry = around.store, around.config, around, telemetry
        self.engine = Engine(around, telemetry)
        self._ticking: Every | None = None
        self._trying, self._estimates = asyncio.Semaphore(1), 0

    async def start(self) -> None:
        await self.engine.start()
        self._ticking = Every(_TICK_S, self._tick, "pandaeval-schedules", grace=0.0)

    async def stop(self) -> None:
        """Stop schedules and the current run, which the next start continues."""
        if self._ticking is not None:
            await self._ticking.stop()
        await self.engine.stop()

    async def _tick(self) -> None:
        for _ in await fire_due(self.store, time.time()):
            self._telemetry.add("pandaeval.runs", "scheduled")
            self.engine.wake()

    async def submit(self, spec: RunSpec) -> RunRow:
        """Queue and return a run. Raises ``UserError``."""
        self._check(spec)
        created = await asyncio.wrap_future(self.store.runs.create(spec.to_json()))
        self.engine.wake()
        return created

    async def cancel(self, run_id: str) -> bool:
        """Cancel a run but keep its results; return ``False`` if it is over or missing."""
        done = await asyncio.wrap_future(self.store.runs.cancel(run_id))
        if done:
            self.engine.cancelled(run_id)
        return bool(done)

    async def schedule(self, cron: str, spec: RunSpec) -> ScheduleRow:
        """Add a schedule. Raises ``UserError``."""
        check_cron(cron)
        self._check(spec)
        return await asyncio.wrap_future(self.store.schedules.add(cron, spec.to_json(), time.time()))

    async def dry(self, spec: RunSpec) -> CostEstimate:
        """Estimate a run without calling a model, one at a time. Raises ``UserError``."""
        self._check(spec, dry=True)
        if self._estimates >= _MOST_ESTIMATES:
            raise FullError("too many estimates are in progress: try again in a few seconds")
        self._estimates += 1
        try:
            async with self._trying:
                chosen = await asyncio.to_thread(self._all_chosen, spec)
                return await self._estimate(spec, chosen)
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

    async def _estimate(self, spec: RunSpec, chosen: Sequence[Chosen]) -> CostEstimate:
        if not judged(self.config, spec):
            sessions = {session for _, session in chosen if session}
            return CostEstimate(len(chosen), len(sessions), len(chosen))
        async with self._around.process(spec, 0, f"dry-{secrets.token_hex(4)}") as process:
            try:
                estimate: CostEstimate = await process.ask("estimate", chosen)
            except (UserError, CallFailedError):
                raise
            except Exception as error:  # the process ended, or failed over a trace
                raise EstimateError(f"{type(error).__name__}: {error}") from error
        return estimate
