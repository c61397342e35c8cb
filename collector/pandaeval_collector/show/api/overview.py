"""Operations that tell of the whole: rates by metric and agent, and the metrics that there are."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Annotated

from fastapi import FastAPI, Query, Request, Response
from pydantic import BaseModel, Field, RootModel

from pandaeval_collector.show.api.filters import Filters
from pandaeval_collector.show.api.names import Names
from pandaeval_collector.show.api.read_threads import Reads
from pandaeval_collector.show.api.shapes import ComponentErrors, MetricShape, Milliseconds, Missing, Overview, Rate
from pandaeval_collector.show.api.work import Work
from pandaeval_collector.show.report.cures import NOT_ENOUGH, cure

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


def history(app: FastAPI, reads: Reads, names: Names) -> None:
    """Adds the operation on runs and failures over time."""

    @app.get("/history", response_model=History, summary="Runs and failures over time")
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


_COUNTER = "pandaeval.evaluations"


class Metrics(RootModel[list[MetricShape]]):
    """All metrics."""


def overview(app: FastAPI, reads: Reads, work: Work, can: Callable[[], list[str]]) -> None:
    """Adds the operations on rates and metrics. ``can``: lists the API's operations that change something."""

    @app.get("/overview", response_model=Overview, summary="Rates by metric and agent, and what is under way")
    async def whole(request: Request) -> Response:
        raised = await work.component_errors()

        def read() -> Overview:
            names, page, store = reads.finder.names(), work.page, work.store
            rates = _rates(reads.finder.counters(_COUNTER))
            return Overview(
                rates=rates,
                unscored=_missing(rates),
                agents=names["agent"],
                services=names["service"],
                environments=names["environment"],
                judge=work.judge,
                jobs={} if store is None else store.jobs.counts(),
                spent_usd=0.0 if store is None else store.spending.spent(store.spending.today(time.time())),
                daily_usd=work.daily_usd,
                component_errors=_errors(raised),
                can=can(),
                links={} if page is None else dict(page.links),
                refresh_s=None if page is None else page.refresh_s,
                grpc_port=None if page is None else page.grpc_port,
            )

        return await reads.answer(request, read, beside=raised)

    @app.get("/metrics", response_model=Metrics, summary="The metrics that this collector knows")
    async def metrics(request: Request) -> Response:
        names = [name for name in MetricShape.model_fields if name != "threshold"]

        def read() -> Metrics:
            return Metrics(
                [
                    MetricShape(**{name: getattr(each, name) for name in names}, threshold=threshold)
                    for each, threshold in work.metrics()
                ]
            )

        return await reads.answer(request, read)


def _errors(raised: Mapping[tuple[str, str], int]) -> list[ComponentErrors]:
    """Returns the errors of each component, most first."""
    found = sorted(raised.items(), key=lambda each: (-each[1], each[0]))
    return [ComponentErrors(kind=kind, name=name, count=count) for (kind, name), count in found]


_NAMES = {
    "metric": "gen_ai.evaluation.name",
    "level": "pandaeval.level",
    "agent": "gen_ai.agent.name",
    "service": "pandaeval.service",
    "environment": "deployment.environment.name",
}
"""The attributes of a series that a rate is named by."""


def _rates(series: Iterable[tuple[Mapping[str, str], int]]) -> list[Rate]:
    found: dict[tuple[str, ...], Rate] = {}
    for given, times in series:
        names = {name: given.get(attribute, "") for name, attribute in _NAMES.items()}
        rate = found.setdefault(
            tuple(names.values()), Rate(**names, scored=0, assumed=0, passed=0, failed=0, unscored={})
        )
        outcome, passed = given.get("pandaeval.outcome"), str(given.get("pandaeval.passed", "")).lower()
        if outcome == "unscored":
            why = given.get("pandaeval.why", "")
            rate.unscored[why] = rate.unscored.get(why, 0) + times
        elif outcome == "assumed":
            rate.assumed += times
        else:
            rate.scored += times
            rate.passed += times * (passed == "true")
            rate.failed += times * (passed == "false")
    return sorted(found.values(), key=lambda rate: (-rate.failed, rate.metric, rate.agent))


def _missing(rates: Iterable[Rate]) -> list[Missing]:
    """Returns the unscored results by reason, most first."""
    found: dict[str, Counter[str]] = {}
    for rate in rates:
        for why, times in rate.unscored.items():
            found.setdefault(why, Counter())[f"{rate.level}.{rate.metric}"] += times
    entries = [
        Missing(why=why, count=counts.total(), metrics=dict(counts.most_common()), cure=cure(why, NOT_ENOUGH))
        for why, counts in found.items()
    ]
    return sorted(entries, key=lambda entry: -entry.count)
