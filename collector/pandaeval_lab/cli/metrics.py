"""``pandaeval metrics``: lists metrics."""

from __future__ import annotations

import re
import sys
from typing import Annotated, Any

from pandaeval_collector.analysis.embedding import Bands, load
from pandaeval_collector.base.score import Why
from pandaeval_collector.cli import _run_options as given
from pandaeval_collector.cli._config import MetricsConfigFile
from pandaeval_collector.cli._options import argument
from pandaeval_collector.cli._output import Listing, console, print_json, show
from pandaeval_collector.scoring.metric import Metric
from pandaeval_collector.scoring.registry import registry
from pandaeval_lab.cli._names import config_with_trials, selected

_METRICS = Listing(("name", "level", "kind", ("threshold", lambda row: f"{row['threshold']:g}"), "needs", "question"))
_JUDGED = frozenset(
    {Why.NOT_SAMPLED, Why.OVER_BUDGET, Why.TIMEOUT, Why.JUDGE_FAILED, Why.INVALID_VERDICT, Why.INJECTION_SUSPECTED}
)
"""Reasons why a judge is not called, or its answer is rejected. The judge's runner sets them, not the metric."""


def metrics(
    name: Annotated[str | None, argument("Show this metric in full.")] = None,
    config: MetricsConfigFile = None,
    format_: given.Format = "table",
) -> None:
    """List the metrics with level, kind and default threshold."""
    resolved = config_with_trials(config)
    known = registry(resolved.metrics.modules)
    bands = load(resolved.embedding.model).bands
    out = console()
    if name is not None:
        keys = selected(resolved, name)
        if format_ == "json":
            return print_json([_facts(known[key], bands) for key in keys])
        for key in keys:
            metric = known[key]
            out.print(f"{key}  ({metric.kind}, version {metric.version})")
            out.print(f"threshold {metric.threshold_for(bands):g}, needs {metric.needs}")
            out.print(f"can be unscored: {', '.join(whys(metric))}\n")
            out.print(re.sub(r"(?::\w+:)?`{1,2}~?([^`]+)`{1,2}", r"\1", description(metric)).strip() + "\n")
        return
    show([_facts(each, bands) for each in known.values()], _METRICS, format_)


def whys(metric: Metric) -> tuple[Why, ...]:
    can = {*metric.unscored, Why.METRIC_ERROR}
    if metric.level == "trial":
        can |= {Why.INCOMPLETE_TRACE, Why.SIMULATOR_FAILED}
    if metric.kind == "llm":
        can |= _JUDGED
    if metric.kind == "llm" and metric.level != "session":
        can.add(Why.INCOMPLETE_TRACE)
    return tuple(why for why in Why if why in can)


def description(metric: Metric) -> str:
    """Return a metric's description: question, text, ``Scale:`` and ``Source:`` lines."""
    return (metric.about or sys.modules[metric.evaluate.__module__].__doc__ or metric.question).strip()


def _facts(metric: Metric, bands: Bands | None) -> dict[str, Any]:
    return {
        "key": metric.key,
        "name": metric.name,
        "level": metric.level,
        "kind": metric.kind,
        "version": metric.version,
        "threshold": metric.threshold_for(bands),
        "needs": metric.needs,
        "question": metric.question,
        "unscored": [str(why) for why in whys(metric)],
    }
