"""The last drill, as the API tells it: how many planted faults the metrics noticed in the runs that are stored."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from fastapi import APIRouter, Response
from pydantic import BaseModel

from pandaeval_collector.show.api.read_threads import Reads
from pandaeval_collector.show.api.work import Work


class DrillShare(BaseModel):
    """``hits`` of ``n``, with Wilson's 95 % interval; ``null`` where there is none."""

    hits: int
    n: int
    share: float | None
    low: float | None
    high: float | None


class DrilledFault(BaseModel):
    """A fault, planted into so many copies. ``text``: what it is; ``right``: the finding that would be right, noticed,
    or cannot tell where only telemetry is missing; ``by_metric``: the share that each metric noticed."""

    name: str
    family: str
    text: str
    right: str
    noticed: DrillShare
    could_not_tell: DrillShare
    by_metric: dict[str, DrillShare]


class LastDrill(BaseModel):
    """The last drill of this collector; ``at_ms`` is ``null`` before there is one. ``schedule``: when drills are made
    (`drill.schedule`); ``good`` of ``runs`` runs looked good and got faults; ``faults``: the least noticed first;
    ``untouched``: by metric, the share of untouched runs that it fails."""

    schedule: str | None
    at_ms: int | None = None
    runs: int = 0
    good: int = 0
    faults: list[DrilledFault] = []
    untouched: dict[str, DrillShare] = {}


def drill_routes(reads: Reads, work: Work) -> APIRouter:
    """The operation."""
    router = APIRouter()

    @router.get("/drill", response_model=LastDrill, summary="The last drill: how many planted faults were noticed")
    async def last() -> Response:
        return await reads.fresh(lambda: _told(work.drill_schedule, work.drill))

    return router


def _told(schedule: str | None, last: Callable[[], Mapping[str, Any] | None]) -> LastDrill:
    found = last()
    if found is None:
        return LastDrill(schedule=schedule)
    return LastDrill(
        schedule=schedule,
        at_ms=int(1000 * found["at"]),
        runs=found["runs"],
        good=found["good"],
        faults=[
            DrilledFault(name=name, right="cannot tell" if each["family"] == "telemetry" else "noticed", **each)
            for name, each in found["faults"].items()
            if each["n"]
        ],
        untouched=found["untouched"],
    )
