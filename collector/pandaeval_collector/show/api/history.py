"""The operation that tells how runs went over time."""

from __future__ import annotations

import time
from collections import Counter
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel, Field

from pandaeval_collector.show.api.filters import Filters
from pandaeval_collector.show.api.names import Names
from pandaeval_collector.show.api.read_threads import Reads
from pandaeval_collector.show.api.shapes import Milliseconds

_HOUR_MS, _MOST = 3_600_000, 500
Step = Annotated[float, Query(ge=1 / 60, le=8760, description="Hours of a bucket.")]


class TimeBucket(BaseModel):
    """Runs that began from ``at`` on, for one step, and how many of them failed."""

    at: Milliseconds
    runs: int
    failed: int


class History(BaseModel):
    """How runs went over time, oldest first. Buckets without a run are there, too."""

    step_hours: float
    items: list[TimeBucket] = Field(description=f"At most {_MOST}, the newest.")


def history(reads: Reads, names: Names) -> APIRouter:
    """The operation."""
    router = APIRouter()

    @router.get("/history", response_model=History, summary="Runs and failures over time")
    async def over_time(request: Request, wanted: Filters, step: Step = 1.0) -> Response:
        def read() -> History:
            asked, width = names.wanted(wanted), int(step * _HOUR_MS)
            end = asked.until_ms or int(time.time() * 1000)
            oldest = asked.since_ms if asked.since_ms is not None else reads.finder.oldest(asked)
            first = max((end if oldest is None else oldest) // width, end // width + 1 - _MOST) * width
            runs, failed = Counter[int](), Counter[int]()
            for each in reads.finder.over_time(asked, first, width):
                if each.bucket >= 0:
                    runs[each.bucket] += each.runs
                    failed[each.bucket] += each.failed
            count = max((end - first) // width + 1, 0)
            items = [TimeBucket(at=first + at * width, runs=runs[at], failed=failed[at]) for at in range(count)]
            return History(step_hours=step, items=items)

        return await reads.answer(request, read)

    return router
