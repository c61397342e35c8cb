"""Fires schedules: each at its times, once for all that were missed, and never while its last run is under way."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import time
from collections.abc import Callable

from pandaeval_collector.base.errors import UserError
from pandaeval_collector.base.runtime.cron import is_cron, next_time
from pandaeval_collector.base.telemetry import Telemetry
from pandaeval_collector.runs.spec import RunSpec
from pandaeval_collector.store import Store
from pandaeval_collector.store.run_rows import RunRow, ScheduleRow

_log = logging.getLogger(__name__)

_TICK_S = 1.0


def check_cron(text: str) -> None:
    """Raises ``UserError`` for what is no time table of five fields."""
    if not is_cron(text):
        raise UserError(f"{text!r} is no cron expression: minute hour day month weekday, in UTC, as in '0 3 * * *'")


class Scheduler:
    """Looks at the schedules of a store every second. On one event loop."""

    def __init__(
        self,
        store: Store,
        telemetry: Telemetry,
        fired: Callable[[RunRow], None],
        now: Callable[[], float] = time.time,
    ) -> None:
        """``fired`` hears of every run that is queued; ``now``: Unix seconds."""
        self._store, self._telemetry, self._fired, self._now = store, telemetry, fired, now
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._ticks(), name="pandaeval-schedules")

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def tick(self) -> list[RunRow]:
        """Queues a run for each schedule that is due."""
        due = await asyncio.to_thread(self._due)
        runs = []
        for schedule in due:
            run = await asyncio.wrap_future(self._store.schedules.fire(schedule.id, self._now(), _body))
            if run is not None:
                self._telemetry.add("pandaeval.runs", "scheduled")
                runs.append(run)
                self._fired(run)
        return runs

    def _due(self) -> list[ScheduleRow]:
        return [each for each in self._store.schedules.all() if self._is_due(each)]

    def _is_due(self, schedule: ScheduleRow) -> bool:
        due = None if schedule.paused else next_time(schedule.cron, schedule.fired_at)
        if due is None or due > self._now():
            return False
        newest = self._store.schedules.newest_run(schedule.id)
        return newest is None or newest.ended

    async def _ticks(self) -> None:
        while True:
            try:
                await self.tick()
            except sqlite3.Error as error:
                _log.error("schedules cannot be looked at (%s)", error)
            await asyncio.sleep(_TICK_S)


def _body(body: bytes, seen: float, until: float) -> bytes:
    return RunSpec.from_json(body).decided_in(seen, until).to_json()
