"""Operations on schedules of evaluation runs."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from fastapi import APIRouter

from pandaeval_collector.base.errors import UserError
from pandaeval_collector.runs.manager import Runs
from pandaeval_collector.show.api.problems import ProblemError
from pandaeval_collector.show.api.read_threads import Reads
from pandaeval_collector.show.api.run_rows import refused, schedule_row, spec_of
from pandaeval_collector.show.api.run_shapes import ScheduleBody, ScheduleList, ScheduleShape
from pandaeval_collector.store.schedules import ScheduleReads


def schedule_routes(reads: Reads, stored: ScheduleReads, runs: Callable[[], Runs]) -> APIRouter:
    """The operations. ``runs``: gives those who work on runs to what changes something."""
    router = APIRouter()

    @router.get("/schedules", response_model=ScheduleList, summary="Schedules of evaluation runs")
    async def list_() -> ScheduleList:
        def read() -> ScheduleList:
            return ScheduleList(items=[schedule_row(stored, each) for each in stored.all()])

        return await reads.run(read)

    @router.post("/schedules", response_model=ScheduleShape, status_code=201, summary="Run again and again")
    async def add(body: ScheduleBody) -> ScheduleShape:
        if body.run.dry_run:
            raise ProblemError(422, "run.dry_run: a schedule runs in earnest")
        try:
            schedule = await runs().schedule(body.cron, spec_of(runs().config, body.run))
        except UserError as error:
            raise refused(error) from error
        return await reads.run(lambda: schedule_row(stored, schedule))

    @router.delete("/schedules/{schedule_id}", status_code=204, summary="Its runs stay")
    async def remove(schedule_id: str) -> None:
        if not await asyncio.wrap_future(runs().store.schedules.remove(schedule_id)):
            raise _missing(schedule_id)

    @router.post("/schedules/{schedule_id}/pause", response_model=ScheduleShape)
    async def pause(schedule_id: str) -> ScheduleShape:
        """It does not fire until it is resumed."""
        return await paused(schedule_id, True)

    @router.post("/schedules/{schedule_id}/resume", response_model=ScheduleShape)
    async def resume(schedule_id: str) -> ScheduleShape:
        """It fires again; what came meanwhile is in its next run."""
        return await paused(schedule_id, False)

    async def paused(schedule_id: str, value: bool) -> ScheduleShape:
        await asyncio.wrap_future(runs().store.schedules.pause(schedule_id, value, time.time()))

        def read() -> ScheduleShape:
            schedule = stored.find(schedule_id)
            if schedule is None:
                raise _missing(schedule_id)
            return schedule_row(stored, schedule)

        return await reads.run(read)

    return router


def _missing(schedule_id: str) -> ProblemError:
    return ProblemError(404, f"there is no schedule {schedule_id}")
