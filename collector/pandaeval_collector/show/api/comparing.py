"""The operation that compares two filters, such as two versions, models, weeks or environments."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, FastAPI, Query

from pandaeval_collector.base.filters import of_runs
from pandaeval_collector.show.api.filters import filter_parameters
from pandaeval_collector.show.api.names import Names
from pandaeval_collector.show.api.read_threads import Reads
from pandaeval_collector.show.report.comparison import RUNS, FilterComparison, compare_filters
from pandaeval_collector.store.listed import Wanted

GroupA = Annotated[Wanted, Depends(filter_parameters(of_runs(), "a."))]
GroupB = Annotated[Wanted, Depends(filter_parameters(of_runs(), "b."))]
MetricKey = Annotated[str | None, Query(max_length=500, description="Return only the rate of this metric.")]


def comparing_routes(app: FastAPI, reads: Reads, names: Names) -> None:
    """Add the operation."""

    @reads.operation(app, "/compare", "Rates, incidents, latency and cost of two groups of runs")
    def compare(a: GroupA, b: GroupB, metric: MetricKey = None) -> FilterComparison:
        key = metric if metric in (None, RUNS) else names.metric(metric)
        return compare_filters(reads.finder, names.wanted(a), names.wanted(b), key)
