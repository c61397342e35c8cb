"""Operations on rates by metric and agent, and on the metrics of this collector."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping

import orjson
from fastapi import FastAPI, Request, Response

from pandaeval_collector.base.result import metric_of
from pandaeval_collector.show.api.read_threads import Reads
from pandaeval_collector.show.api.work import Work
from pandaeval_collector.show.view.rates import OutcomeCounts
from pandaeval_collector.show.view.rows import ComponentErrors, Metrics, MetricShape, Missing, Overview, Rate
from pandaeval_collector.show.view.unscored import missing
from pandaeval_collector.store.finding import Finder
from pandaeval_collector.store.reader import PAUSED
from pandaeval_collector.store.series import VERDICT

_COUNTER = "pandaeval.evaluations"
_NAMES = {
    "metric": "gen_ai.evaluation.name",
    "level": "pandaeval.level",
    "agent": "gen_ai.agent.name",
    "service": "pandaeval.service",
    "environment": "deployment.environment.name",
}
"""The attributes of a series that name a rate."""
_PASSED = {"true": True, "false": False}


def overview_routes(app: FastAPI, reads: Reads, work: Work, can: Callable[[], list[str]]) -> None:
    """Add the operations on rates and metrics. ``can``: lists the API's operations that change something."""

    @app.get("/overview", response_model=Overview, summary="Rates by metric and agent, and pending work")
    async def whole(request: Request) -> Response:
        raised = await work.component_errors()
        return await reads.answer(request, lambda: _overview(reads.finder, work, can(), raised), beside=raised)

    @reads.operation(app, "/metrics", "The metrics of this collector")
    def metrics() -> Metrics:
        names = [name for name in MetricShape.model_fields if name != "threshold"]
        shapes = []
        for metric, threshold in work.metrics():
            shapes.append(MetricShape(**{name: getattr(metric, name) for name in names}, threshold=threshold))
        return Metrics(shapes)


def rates_of(series: Iterable[tuple[Mapping[str, str], int]]) -> list[Rate]:
    """Return the rates that series of ``pandaeval.evaluations`` count, most failures first."""
    tallies: dict[tuple[str, ...], OutcomeCounts] = {}
    for given, times in series:
        named = tuple(given.get(attribute, "") for attribute in _NAMES.values())
        success = _PASSED.get(str(given.get("pandaeval.passed", "")).lower())
        counts = tallies.setdefault(named, OutcomeCounts())
        counts.add(given.get("pandaeval.outcome"), success, given.get("pandaeval.why"), times, given.get(VERDICT))
    rates = []
    for named, counts in tallies.items():
        names = dict(zip(_NAMES, named, strict=True))
        names["metric"] = metric_of(names["level"], names["metric"])
        rates.append(Rate.model_validate(names | counts.to_dict()))
    return sorted(rates, key=lambda rate: (-rate.failed, rate.metric, rate.agent))


def _overview(finder: Finder, work: Work, operations: list[str], raised: Mapping[tuple[str, str], int]) -> Overview:
    names, rates = finder.names(), rates_of(finder.counters(_COUNTER))
    unscored = missing((f"{rate.level}.{rate.metric}", rate.unscored) for rate in rates)
    overview = Overview(
        rates=rates,
        unscored=[Missing(**entry) for entry in unscored],
        agents=names["agent"],
        services=names["service"],
        environments=names["environment"],
        judge=work.judge,
        judge_paused=[],
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
        overview.jobs, overview.data = work.store.jobs.counts(), str(work.store.path)
        overview.judge_paused = sorted(orjson.loads(work.store.reads.get(PAUSED) or "{}"))
        overview.spent_usd = spending.spent(spending.today(time.time()))
    return overview


def _component_errors(raised: Mapping[tuple[str, str], int]) -> list[ComponentErrors]:
    errors = [ComponentErrors(kind=kind, name=name, count=count) for (kind, name), count in raised.items()]
    return sorted(errors, key=lambda error: (-error.count, error.kind, error.name))
