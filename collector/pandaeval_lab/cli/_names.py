"""The configuration of commands, and the names of metrics, trials included."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any

from pandaeval_collector.base.errors import UserError
from pandaeval_collector.base.filters import in_place_of
from pandaeval_collector.cli._config import STORE, resolve_config, store_settings
from pandaeval_collector.cli._options import option
from pandaeval_collector.config import Config, MetricNames
from pandaeval_collector.scoring.registry import GRADERS, registry

_URL = "Use the data directory of this running collector."
_Url = Annotated[str | None, option(_URL, metavar="URL", envvar="PANDAEVAL_URL")]


def config_with_trials(path: Path | None, overrides: Mapping[str, Any] | None = None) -> Config:
    return with_trials(resolve_config(path, overrides).config)


def with_trials(config: Config) -> Config:
    metrics = config.metrics.model_copy(update={"modules": (GRADERS, *config.metrics.modules)})
    return config.model_copy(update={"metrics": metrics})


def names_of(config: Config) -> MetricNames:
    return MetricNames((metric.level, metric.name) for metric in registry(config.metrics.modules).values())


def selected(config: Config, name: str) -> tuple[str, ...]:
    """Return the keys of a metric's name. Raises ``UserError`` for an unknown name."""
    names = names_of(config)
    if keys := names.select(name):
        return keys
    raise UserError(f"{name}: {names.unknown(name)}")


def check_judge_is_set(config: Config, asked: Iterable[str], with_cases: bool = False) -> None:
    """Raise ``UserError`` if a requested metric needs a missing judge. ``with_cases``: bare names also mean graders."""
    if config.judge.model is not None:
        return
    kinds = {key: metric.kind for key, metric in registry(config.metrics.modules).items()}
    names = names_of(config)

    def meant(name: str) -> list[str]:
        found = names.select(name)
        others = [key for key in found if with_cases or key == name or not key.startswith("trial.")]
        return others or [*found]

    judged = [name for name in asked if (keys := meant(name)) and all(kinds[key] == "llm" for key in keys)]
    if judged:
        raise UserError(f"{', '.join(judged)}: a judge must score this; name a model with --model, or set judge.model")


def _settings(config: Path | None = None, store: Path | None = None, url: str | None = None) -> Config:
    if store is None and url is not None:
        from pandaeval_collector.cli._run_place import data_directory  # imports a client that few commands need

        store = data_directory(url)
    return config_with_trials(config, store_settings(store))


stored = in_place_of("settings", {**STORE, "url": (_Url, None)}, _settings)
"""Gives a command the configuration of the store that it reads, in place of its parameter ``settings``. ``UserError``
if the collector's store is not on this machine."""
