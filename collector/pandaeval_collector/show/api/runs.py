"""Operations on evaluation runs and schedules."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from typing import Annotated

import orjson
from fastapi import FastAPI, Query, Response

from pandaeval_collector.base.errors import UserError
from pandaeval_collector.judge.call import CallFailedError
from pandaeval_collector.runs.compare import compared
from pandaeval_collector.runs.manager import EstimateError, EvaluationRuns
from pandaeval_collector.runs.spec import NotAllowedError
from pandaeval_collector.show.api.cursors import CursorText, Limit, cursor_of, number_of
from pandaeval_collector.show.api.names import Names, one_of
from pandaeval_collector.show.api.problems import WRITES, ProblemError
from pandaeval_collector.show.api.read_threads import Reads
from pandaeval_collector.show.api.run_shapes import (
    Comparison,
    DryRun,
    RunBody,
    RunDetail,
    RunList,
    RunResults,
    RunShape,
    ScheduleBody,
    ScheduleList,
    ScheduleShape,
)
from pandaeval_collector.store.runs import FullError, RunRow, RunTable
from pandaeval_collector.store.schedules import Schedules

Id = Annotated[str, Query(max_length=64, description="ID of a run.")]


def run_reads_routes(app: FastAPI, reads: Reads, stored: RunTable, names: Names) -> None:
    """Add the operations that read runs, also without a collector."""

    @reads.operation(app, "/runs", "Evaluation runs, newest first", tagged=False)
    def list_(cursor: CursorText = None, limit: Limit = 50) -> RunList:
        rows = stored.newest(number_of(cursor), limit + 1)
        more = cursor_of((0.0, rows[limit - 1].no)) if len(rows) > limit else None
        return RunList(items=[*map(RunShape.of, rows[:limit])], next=more)

    @reads.operation(
        app, "/runs/compare", "Comparison of two evaluation runs, or of a run with the live results", tagged=False
    )
    def compare(
        a: Id, b: Annotated[str, Query(max_length=64, description="ID of another run, or live.")] = "live"
    ) -> Comparison:
        first, second = _run(stored, a), None if b == "live" else _run(stored, b)
        shown = None if second is None else RunShape.of(second)
        return Comparison(a=RunShape.of(first), b=shown, metrics=compared(stored, first, second))

    @reads.operation(app, "/runs/{run_id}", "An evaluation run and its progress", tagged=False)
    def show(run_id: str) -> RunDetail:
        return RunDetail.read(stored, _run(stored, run_id))

    @reads.operation(app, "/runs/{run_id}/results", "Results of an evaluation run, in order of arrival", tagged=False)
    def results(
        run_id: str,
        cursor: CursorText = None,
        limit: Limit = 100,
        metric: Annotated[str | None, Query(max_length=500, description="Return only results of this metric.")] = None,
    ) -> RunResults:
        key = None if metric is None else names.metric(metric)
        bodies, more = stored.results(_run(stored, run_id).no, number_of(cursor) or 0, limit, key)
        following = None if more is None else cursor_of((0.0, more))
        return RunResults(items=[orjson.loads(body) for body in bodies], next=following)


def runs_routes(app: FastAPI, reads: Reads, stored: RunTable, runs: EvaluationRuns, names: Names) -> None:
    """Add the operations that change runs."""

    @app.post(
        "/runs",
        response_model=RunShape | DryRun,
        status_code=201,
        responses=WRITES,
        summary="Start an evaluation run, or only estimate its cost (dry_run)",
    )
    async def start(body: RunBody, response: Response) -> RunShape | DryRun:
        with run_errors_as_problems():
            spec = body.spec(runs.config)
            spec = replace(spec, wanted=await reads.run(lambda: names.wanted(spec.wanted)))
            if body.dry_run:
                response.status_code = 200
                return DryRun(**asdict(await runs.dry(spec)))
            return RunShape.of(await runs.submit(spec))

    @app.post("/runs/{run_id}/cancel", response_model=RunShape, responses=WRITES, summary="Cancel an evaluation run")
    async def cancel(run_id: str) -> RunShape:
        id_ = (await reads.run(lambda: _run(stored, run_id))).id
        done = await runs.cancel(id_)
        run = await reads.run(lambda: _run(stored, id_))
        if not done:
            raise ProblemError(409, f"run {id_} has ended already")
        return RunShape.of(run)


def schedule_routes(app: FastAPI, reads: Reads, stored: Schedules, runs: EvaluationRuns) -> None:
    @reads.operation(app, "/schedules", "Schedules of evaluation runs", tagged=False)
    def list_() -> ScheduleList:
        return ScheduleList(items=[ScheduleShape.read(stored, each) for each in stored.all()])

    @app.post("/schedules", response_model=ScheduleShape, status_code=201, responses=WRITES, summary="Add a schedule")
    async def add(body: ScheduleBody) -> ScheduleShape:
        if body.run.dry_run:
            raise ProblemError(422, "run.dry_run: a schedule cannot be a dry run")
        with run_errors_as_problems():
            schedule = await runs.schedule(body.cron, body.run.spec(runs.config))
        return await reads.run(lambda: ScheduleShape.read(stored, schedule))

    @app.delete(
        "/schedules/{schedule_id}", status_code=204, responses=WRITES, summary="Delete a schedule, but not its runs"
    )
    async def remove(schedule_id: str) -> None:
        if not await asyncio.wrap_future(runs.store.schedules.remove(schedule_id)):
            raise ProblemError(404, f"there is no schedule {schedule_id}")


def _run(stored: RunTable, id_: str) -> RunRow:
    run = stored.find(id_) or stored.find(one_of(id_, stored.ids_from(id_)) or "")
    if run is None:
        raise ProblemError(404, f"there is no run {id_}")
    return run


@contextmanager
def run_errors_as_problems() -> Iterator[None]:
    """Raise 422 for an impossible run or ruling, 400 for one not allowed over HTTP, 429 for a full queue, 503 if an
    estimate fails."""
    try:
        yield
    except FullError as error:
        raise ProblemError(429, str(error)) from error
    except NotAllowedError as error:
        raise ProblemError(400, str(error)) from error
    except UserError as error:
        raise ProblemError(422, str(error)) from error
    except (CallFailedError, EstimateError) as error:
        raise ProblemError(503, str(error)) from error
