"""Operations that tell of the whole: rates by metric and agent, and the metrics that there are."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping

from fastapi import FastAPI, Request, Response

from pandaeval_collector.show.api.read_threads import Reads
from pandaeval_collector.show.api.work import Work
from pandaeval_collector.show.report.results import CURES
from pandaeval_collector.show.shapes import (
    ComponentErrors,
    Metrics,
    MetricShape,
    Missing,
    Overview,
    Rate,
)

_COUNTER = "pandaeval.evaluations"


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

    @reads.operation(app, "/metrics", "The metrics that this collector knows")
    def metrics() -> Metrics:
        names = [name for name in MetricShape.model_fields if name != "threshold"]
        return Metrics(
            [
                MetricShape(**{name: getattr(each, name) for name in names}, threshold=threshold)
                for each, threshold in work.metrics()
            ]
        )


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
        Missing(why=why, count=counts.total(), metrics=dict(counts.most_common()), cure=CURES.get(why, ""))
        for why, counts in found.items()
    ]
    return sorted(entries, key=lambda entry: -entry.count)
