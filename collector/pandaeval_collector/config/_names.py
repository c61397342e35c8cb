"""Names of metrics and embedders in the configuration, against those that there are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar

from pandaeval_collector.config._messages import closest
from pandaeval_collector.config._problem import Problem
from pandaeval_collector.config._tree import Config

Registry = Iterable[tuple[str, str]]
Scales = Mapping[str, tuple[float, float]]
"""The worst and the best end of the scale of a metric's thresholds, by key."""
T = TypeVar("T")


class MetricNames:
    """All metrics by key (``trace.coherence``) and by bare name (``coherence``)."""

    def __init__(self, registry: Registry) -> None:
        self.keys = frozenset(f"{level}.{name}" for level, name in registry)
        self._by_name: dict[str, tuple[str, ...]] = {}
        for key in sorted(self.keys):
            name = key.partition(".")[2]
            self._by_name[name] = (*self._by_name.get(name, ()), key)

    def select(self, name: str) -> tuple[str, ...]:
        """Returns the keys that ``name`` means: itself as ``level.name``, one for each level for a bare name."""
        return (name,) if name in self.keys else self._by_name.get(name, ())

    def select_threshold(self, name: str, value: float) -> tuple[str, ...]:
        """Selects for a threshold: one value cannot serve two scales, so that a bare name of several levels means the
        turn level above 1 (its scale is 1-5) and stays ambiguous, with several keys, otherwise."""
        found = self.select(name)
        turn = tuple(key for key in found if key.startswith("turn."))
        return turn if len(found) > 1 and value > 1 and turn else found

    def enabled(self, config: Config) -> frozenset[str]:
        """Returns the keys of the metrics that run. Names that ``check_metrics`` refuses select none."""
        if config.metrics.enabled == "all":
            return self.keys
        return frozenset(key for name in config.metrics.enabled for key in self.select(name))

    def thresholds(self, config: Config) -> dict[str, float]:
        """Returns the configured thresholds by key, in the metric's own scale, without defaults."""
        given = config.metrics.thresholds
        return {key: value for name, value in given.items() for key in self.select_threshold(name, value)}

    def by_key(self, given: Mapping[str, T]) -> dict[str, T]:
        """Returns values that are configured by names (``judge.models``, ``judge.samples``) by key; a full key
        outweighs a bare name."""
        bare_first = sorted(given.items(), key=lambda item: item[0] in self.keys)
        return {key: value for name, value in bare_first for key in self.select(name)}

    def unknown(self, name: str) -> str:
        """Returns what to say of a name that is no metric."""
        meant = closest(name, [*self._by_name, *self.keys])
        return "unknown metric" + (f"; did you mean {meant}?" if meant else "; `pandaeval metrics` lists them")


def check_metrics(config: Config, registry: Registry, scales: Scales | None = None) -> list[Problem]:
    """Finds what is wrong with metric names in ``config``, given the (level, name) of every metric there is, and the
    ``scales`` of those that have one of their own.

    The problems have keys but no places; ``resolve`` adds them to what it is given as ``checks``.
    """
    names = MetricNames(registry)
    listed = [] if config.metrics.enabled == "all" else config.metrics.enabled
    problems = [
        Problem(f"metrics.enabled[{index}]", f"{name}: {names.unknown(name)}")
        for index, name in enumerate(listed)
        if not names.select(name)
    ]
    for key, named in (("models", config.judge.models), ("samples", config.judge.samples)):
        problems += [Problem(f"judge.{key}.{name}", names.unknown(name)) for name in named if not names.select(name)]
    given: dict[str, str] = {}
    for name, value in config.metrics.thresholds.items():
        found = names.select_threshold(name, value) or ("",)
        best = (scales or {}).get(found[0], (0.0, 5.0 if found[0].startswith("turn.") else 1.0))[1]
        if not found[0]:
            message = names.unknown(name)
        elif len(found) > 1:
            message = f"is the name of several metrics; write {' or '.join(found)}"
        elif found[0] in given:
            message = f"sets {found[0]}, which {given[found[0]]} sets already"
        elif value > best:
            message = f"no result can reach {value:g}: scores of {found[0]} end at {best:g}"
        else:
            given[found[0]] = name
            continue
        problems.append(Problem(f"metrics.thresholds.{name}", message))
    return problems


def check_embedder(config: Config, schemes: Iterable[str]) -> list[Problem]:
    """Finds what is wrong with ``embedding.model``. ``schemes``: embedders, ``model2vec`` of ``model2vec:NAME``."""
    known = sorted(schemes)
    scheme = config.embedding.model.partition(":")[0]
    if scheme in known:
        return []
    meant = closest(scheme, known)
    message = f"did you mean {meant}?" if meant else f"known are {', '.join(known)}"
    return [Problem("embedding.model", f'"{config.embedding.model}" is not an embedder; {message}')]
