"""Finds all metrics by key: ours, those of entry points ``pandaeval.metrics``, and those of ``metrics.modules``.

A collector does not load the trial metrics in :data:`GRADERS`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.util import find_spec

from pandaeval_collector.base.runtime.modules import ModuleLoadError, load_module
from pandaeval_collector.scoring.custom.files import SUFFIXES, metrics_of
from pandaeval_collector.scoring.metric import Metric
from pandaeval_otel.base.plugins import NotUsableError, Plugin, Plugins, find, installed

_OURS = "pandaeval_collector.scoring.metrics"
GRADERS = "pandaeval_lab.graders"
"""The entry of ``modules`` that adds our trial metrics."""


@cache
def registry(modules: tuple[str, ...] = ()) -> Mapping[str, Metric]:
    """Return every metric by key, with those of ``modules``, which may include :data:`GRADERS`.

    Raises ``ValueError`` for duplicate keys, and :class:`ModuleLoadError` for an unusable module in ``modules``.
    Unusable packages are logged and skipped.
    """
    metrics = {**_ours(), **(_ours(GRADERS) if GRADERS in modules else {})}
    metrics.update((plugin.value.key, plugin.value) for plugin in of_packages().found)
    for module in (each for each in modules if each != GRADERS):
        for own in _own(module):
            if own.key in metrics:
                raise ModuleLoadError(f"{module}: there is a metric {own.key} already; give it another name")
            metrics[own.key] = own
    return dict(sorted(metrics.items()))


@cache
def of_packages() -> Plugins:
    """Return the metrics of installed packages, and the unusable entry points."""
    taken: set[str] = set()

    def check_one(plugin: Plugin) -> None:
        _check_is_metric(plugin.value)
        if plugin.value.key in taken or plugin.value.key in _of_ours(plugin.value):
            raise NotUsableError(f"there is a metric {plugin.value.key} already")
        taken.add(plugin.value.key)

    return installed("pandaeval.metrics", "METRIC", check_one)


def _of_ours(metric: Metric) -> Mapping[str, Metric]:
    return _ours(GRADERS if metric.level == "trial" else _OURS)


@cache
def _ours(package: str = _OURS) -> Mapping[str, Metric]:
    if find_spec(package.partition(".")[0]) is None:  # an image can lack the lab
        return {}
    metrics: dict[str, Metric] = {}
    for metric in find(package, "METRIC"):
        if metric.key in metrics:
            raise ValueError(f"two metrics are called {metric.key}")
        metrics[metric.key] = metric
    return metrics


def _own(module: str) -> tuple[Metric, ...]:
    if module.endswith(SUFFIXES):
        return metrics_of(module)
    held = vars(load_module(module))
    try:
        if "METRIC" in held:
            _check_is_metric(held["METRIC"])
            return (held["METRIC"],)
        metrics = (each for each in held.values() if isinstance(each, Metric))
        found = {id(each): each for each in metrics if _of_ours(each).get(each.key) is not each}
        if not found:
            raise NotUsableError("it holds no METRIC = pandaeval_collector.Metric(…), nor a function below @metric")
        return tuple(found.values())
    except NotUsableError as error:
        raise ModuleLoadError(f"{module}: {error}") from error


def _check_is_metric(value: object) -> None:
    if not isinstance(value, Metric):
        raise NotUsableError("it holds no METRIC = pandaeval_collector.Metric(…)")
