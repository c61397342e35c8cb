"""Checks names of metrics and embedders in the configuration."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TypeVar

from pandaeval_collector.config._messages import closest
from pandaeval_collector.config._problem import Problem
from pandaeval_collector.config._tree import Config

Registry = Iterable[tuple[str, str]]
Scales = Mapping[str, tuple[float, float]]
"""The worst and the best end of the scale of a metric's thresholds, by key."""
T = TypeVar("T")


class MetricNames:
    """All metrics by key (``trace.coherence``) and bare name (``coherence``)."""

    def __init__(self, registry: Registry) -> None:
        self.keys = frozenset(f"{level}.{name}" for level, name in registry)
        self._by_name: dict[str, tuple[str, ...]] = {}
        for key in sorted(self.keys):
            name = key.partition(".")[2]
            self._by_name[name] = (*self._by_name.get(name, ()), key)

    def select(self, name: str) -> tuple[str, ...]:
        """Return the keys of ``name``: a full key, or a key per level for a bare name."""
        return (name,) if name in self.keys else self._by_name.get(name, ())

    def select_threshold(self, name: str, value: float) -> tuple[str, ...]:
        """Return the keys of a threshold: above 1, a bare name of several levels means the turn level (scale 1-5)."""
        keys = self.select(name)
        turn = tuple(key for key in keys if key.startswith("turn."))
        return turn if len(keys) > 1 and value > 1 and turn else keys

    def enabled(self, config: Config) -> frozenset[str]:
        """Return the keys of active metrics. Invalid names select none."""
        if config.metrics.enabled == "all":
            return self.keys
        return frozenset(key for name in config.metrics.enabled for key in self.select(name))

    def thresholds(self, config: Config) -> dict[str, float]:
        """Return configured thresholds by key, in the metric's scale."""
        given = config.metrics.thresholds
        return {key: value for name, value in given.items() for key in self.select_threshold(name, value)}

    def by_key(self, given: Mapping[str, T]) -> dict[str, T]:
        """Return values configured by name (``judge.models``) by key. Full keys take precedence."""
        bare_first = sorted(given.items(), key=lambda item: item[0] in self.keys)
        return {key: value for name, value in bare_first for key in self.select(name)}

    def unknown(self, name: str) -> str:
        meant = closest(name, [*self._by_name, *self.keys])
        return "unknown metric" + (f"; did you mean {meant}?" if meant else "; `pandaeval metrics` lists them")


def check_metrics(config: Config, registry: Registry, scales: Scales | None = None) -> list[Problem]:
    """Find problems with metric names. ``registry``: (level, name) of every metric. ``scales``: non-default scales."""
    names = MetricNames(registry)
    return [*_unknown_names(config, names), *_thresholds(config, names, scales or {})]


def check_embedder(config: Config, schemes: Iterable[str]) -> list[Problem]:
    """Find problems with ``embedding.model``. ``schemes``: known embedders, such as ``litellm`` of ``litellm:NAME``."""
    known = sorted(schemes)
    scheme = config.embedding.model.partition(":")[0]
    if scheme in known:
        return []
    meant = closest(scheme, known)
    message = f"did you mean {meant}?" if meant else f"known are {', '.join(known)}"
    return [Problem("embedding.model", f'"{config.embedding.model}" is not an embedder; {message}')]


def _unknown_names(config: Config, names: MetricNames) -> Iterator[Problem]:
    if config.metrics.enabled != "all":
        for index, name in enumerate(config.metrics.enabled):
            if not names.select(name):
                yield Problem(f"metrics.enabled[{index}]", f"{name}: {names.unknown(name)}")
    for name in config.judge.models:
        if not names.select(name):
            yield Problem(f"judge.models.{name}", names.unknown(name))


def _thresholds(config: Config, names: MetricNames, scales: Scales) -> Iterator[Problem]:
    set_by: dict[str, str] = {}
    for name, value in config.metrics.thresholds.items():
        keys = names.select_threshold(name, value)
        if len(keys) == 1 and keys[0] not in set_by and value <= _best(keys[0], scales):
            set_by[keys[0]] = name
            continue
        if not keys:
            message = names.unknown(name)
        elif len(keys) > 1:
            message = f"is the name of several metrics; write {' or '.join(keys)}"
        elif keys[0] in set_by:
            message = f"sets {keys[0]}, which {set_by[keys[0]]} sets already"
        else:
            message = f"no result can reach {value:g}: scores of {keys[0]} end at {_best(keys[0], scales):g}"
        yield Problem(f"metrics.thresholds.{name}", message)


def _best(key: str, scales: Scales) -> float:
    if key in scales:
        return scales[key][1]
    return 5.0 if key.startswith("turn.") else 1.0
