"""Operations on names and pending work, on rates by metric and agent, and on metrics."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Annotated

import orjson
from fastapi import FastAPI, Query, Request, Response
from pydantic import BaseModel

from pandaeval_collector.analysis.stats.corrected_rate import CorrectedRate
from pandaeval_collector.base.filters import MOST_TEXT
from pandaeval_collector.base.result import metric_of
from pandaeval_collector.labels.rates import AgentRate, pass_rates
from pandaeval_collector.show.api.filters import Filters, Window, limited_to_window
from pandaeval_collector.show.api.names import Names
from pandaeval_collector.show.api.read_threads import Reads
from pandaeval_collector.show.api.work import Work
from pandaeval_collector.show.view.rates import OutcomeCounts
from pandaeval_collector.show.view.rows import (
    ComponentErrors,
    CorrectedShare,
    Metrics,
    MetricShape,
    Missing,
    Overview,
    WindowRate,
)
from pandaeval_collector.show.view.unscored import missing
from pandaeval_collector.store.chunks import StoreFullError
from pandaeval_collector.store.finding import Finder
from pandaeval_collector.store.rates import read_rates
from pandaeval_collector.store.reader import PAUSED

AttributeKey = Annotated[
    str, Query(max_length=MOST_TEXT, description="Name of the attribute, such as service.version, or user.")
]

_NAMES = re.compile(r"(?<![\w.])(?:[\w.]+(?:Error|Exception)(?:: | - )){2,}")
"""Exception names that libraries put in front of each other's message."""


class AttributeValues(BaseModel):
    """At most 200 values of an attribute."""

    values: list[str]


class Rates(BaseModel):
    """Rates of a window, most failures first, and corrected rates of all judged runs."""

    rates: list[WindowRate]
    unscored: list[Missing]
    corrected: list[CorrectedShare]


def overview_routes(app: FastAPI, reads: Reads, names: Names, work: Work, can: Callable[[], list[str]]) -> None:
    """Add the operations on rates and metrics. ``can``: lists operations that change data."""

    @app.get("/overview", response_model=Overview, summary="Names that filters can contain, and pending work")
    async def whole(request: Request) -> Response:
        raised, down = await work.component_errors(), [*await work.sinks_down()]
        return await reads.answer(
            request, lambda: _overview(reads.finder, work, can(), raised, down), beside=(raised, down)
        )

    @reads.operation(app, "/rates", "Rates by metric and agent in a time window")
    def rates(wanted: Filters, window: Window = "all") -> Rates:
        counted = read_rates(reads.finder, limited_to_window(names.wanted(wanted), window, int(time.time() * 1000)))
        found = window_rates(counted)
        unscored = missing((f"{rate.level}.{rate.metric}", rate.unscored) for rate in found if rate.agent is None)
        shares = [Missing(**entry) for entry in unscored]
        return Rates(rates=found, unscored=shares, corrected=_corrected(reads.finder))

    @reads.operation(app, "/attributes", "Stored values of an attribute, for use in filters, newest first")
    def attributes(key: AttributeKey) -> AttributeValues:
        if key == "user":
            return AttributeValues(values=reads.finder.users())
        return AttributeValues(values=reads.finder.attribute_values(key))

    @reads.operation(app, "/metrics", "The metrics of this collector")
    def metrics() -> Metrics:
        fields = [name for name in MetricShape.model_fields if name != "threshold"]
        shapes = []
        for metric, threshold in work.metrics():
            shapes.append(MetricShape(**{name: getattr(metric, name) for name in fields}, threshold=threshold))
        return Metrics(shapes)


def window_rates(counted: Iterable[tuple[str, str | None, str, int]]) -> list[WindowRate]:
    """Return the rates of :func:`read_rates`, most failures first, with totals."""
    tallies: dict[tuple[str, str | None], OutcomeCounts] = {}
    for metric, agent, verdict, times in counted:
        of_all = () if metric.startswith("session.") else (None,)  # a session may have several agents
        for each in (agent, *of_all):
            tallies.setdefault((metric, each), OutcomeCounts()).add_verdict(verdict, times)
    rates = []
    for (key, agent), counts in tallies.items():
        level, _, name = key.partition(".")
        rates.append(WindowRate(metric=name, level=level, agent=agent, **counts.to_dict()))
    return sorted(rates, key=lambda rate: (-rate.failed, rate.metric, rate.agent or ""))


def _corrected(finder: Finder) -> list[CorrectedShare]:
    return [_share(each, each.rate) for each in finder.labelled(pass_rates) if each.rate is not None]


def _share(of: AgentRate, rate: CorrectedRate) -> CorrectedShare:
    interval = {"value": rate.value, "low": rate.low, "high": rate.high}
    return CorrectedShare(metric=of.metric, agent=of.agent, labels=of.n, judge=of.judge, **interval)


def _overview(
    finder: Finder, work: Work, operations: list[str], raised: Mapping[tuple[str, str], int], down: list[str]
) -> Overview:
    names = finder.names()
    overview = Overview(
        metrics=sorted(f"{level}.{metric_of(level, name)}" for name, level in finder.scored()),
        agents=names["agent"],
        services=names["service"],
        environments=names["environment"],
        judge=work.judge,
        judge_paused=[],
        judge_error=None,
        sinks_down=down,
        store_full=None,
        jobs={},
        spent_usd=0.0,
        daily_usd=work.daily_usd,
        component_errors=_component_errors(raised),
        can=operations,
        links={},
        page=work.page is not None,
        data=None,
        grpc_port=None,
    )
    if work.page is not None:
        overview.links, overview.grpc_port = dict(work.page.links), work.page.grpc_port
    if work.store is not None:
        spending = work.store.spending
        overview.jobs, overview.data = work.store.jobs.counts(), str(work.store.path.absolute())
        overview.judge_paused = sorted(orjson.loads(work.store.reads.get(PAUSED) or "{}"))
        error = work.store.jobs.last_error()
        overview.judge_error = None if error is None else _NAMES.sub("", error, count=1)
        if work.store_limit is not None and (used := work.store.reads.used_bytes()) >= work.store_limit:
            overview.store_full = str(StoreFullError(used, work.store_limit))
        overview.spent_usd = spending.spent(spending.today(time.time()))
    return overview


def _component_errors(raised: Mapping[tuple[str, str], int]) -> list[ComponentErrors]:
    errors = [ComponentErrors(kind=kind, name=name, count=count) for (kind, name), count in raised.items()]
    return sorted(errors, key=lambda error: (-error.count, error.kind, error.name))
