"""Which metrics run: those that are enabled, and those that they read."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from pandaeval_collector.scoring.metric import Metric


@dataclass(frozen=True, slots=True)
class Running:
    """The metrics that run, in the order of the registry; ``silent``: keys of those that run for session metrics only,
    so that their results are neither shown nor sent."""

    metrics: tuple[Metric[Any, Any], ...]
    silent: frozenset[str]


def running_metrics(registry: Mapping[str, Metric[Any, Any]], enabled: Collection[str] | None) -> Running:
    """``enabled``: keys of metrics of the ``registry``; ``None``: all. What asks a judge runs only where it is enabled:
    it costs money."""
    if enabled is None:
        return Running(tuple(registry.values()), frozenset())
    read = {name for key, metric in registry.items() if key in enabled for name in metric.signals}
    silent = frozenset(
        key
        for key, metric in registry.items()
        if metric.level == "trace" and metric.kind != "llm" and metric.name in read and key not in enabled
    )
    return Running(tuple(metric for key, metric in registry.items() if key in enabled or key in silent), silent)
